// SPDX-License-Identifier: BSL-1.0
// Something that becomes true and stays so for whoever waits for it: a task's end, news for a receiver. How select
// waits for it without knowing what it is. Not part of the API.
#pragma once

#include <cstdint>

namespace ramie::detail {

struct keyed_waiter;
struct join_ops;

struct join_target {
  const join_ops* ops = nullptr;  // null: never true
  void* what = nullptr;
  void* home = nullptr;
  std::uint64_t number = 0;
};

struct join_ops {
  // Around everything else: keeps the target there. enter throws usage_error if it is gone.
  void (*enter)(const join_target& target);
  void (*leave)(const join_target& target) noexcept;
  // Whether it has become true.
  bool (*done)(const join_target& target) noexcept;
  // As of a waitable; the waiter may be completed although it is not true yet.
  bool (*publish)(const join_target& target, keyed_waiter& node);
  void (*unpublish)(const join_target& target, keyed_waiter& node) noexcept;
};

}  // namespace ramie::detail
