// SPDX-License-Identifier: BSL-1.0
// A time at which a scope is cancelled. The owner of the scope adds the entry and must remove it before the
// scope is closed.
#pragma once

#include <chrono>
#include <cstddef>
#include <ramie/source_location.hpp>

namespace ramie::detail {

class cancel_scope;

struct deadline_entry {
  std::chrono::steady_clock::time_point when;
  cancel_scope* target = nullptr;
  source_location where;
  std::size_t at = none;  // in the timekeeper's heap

  static constexpr std::size_t none = ~std::size_t{0};
};

// In the scope's runtime. A time that has passed cancels at once. add throws std::bad_alloc or
// std::system_error; remove may be called whether the entry is in or not.
void add_deadline(deadline_entry& entry);
void remove_deadline(deadline_entry& entry) noexcept;

}  // namespace ramie::detail
