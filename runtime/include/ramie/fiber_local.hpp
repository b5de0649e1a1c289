// SPDX-License-Identifier: BSL-1.0
// One value per fiber: what thread_local is to threads.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <ramie/version.hpp>

namespace ramie::runtime_internal {

struct local_node {
  std::uint64_t key;
  local_node* next = nullptr;
  void (*destroy)(local_node*) noexcept;
  local_node* (*copy)(const local_node&);  // null: children do not inherit it
};

[[nodiscard]] std::uint64_t next_local_key() noexcept;
// Of the calling fiber or plain thread.
[[nodiscard]] local_node* find_local(std::uint64_t key) noexcept;
// Takes the node over, also when it throws (std::bad_alloc).
void add_local(local_node* node);

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Whether a spawned fiber starts with a copy of its spawner's value.
enum class inherit : bool { no, yes };

// A value that each fiber, and each plain thread, has for itself: made on first use, destroyed when the fiber
// ends, after its function and what that captured. With inherit::yes a spawned fiber starts with a copy of its
// spawner's value (T must be copyable then). It moves with the fiber from worker to worker. Usually a static
// object; it may be destroyed while values live.
template <class T, inherit ByChildren = inherit::no>
class fiber_local {
 public:
  // No value is made yet.
  fiber_local() noexcept : key_(::ramie::runtime_internal::next_local_key()) {}
  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  // The caller's own, value-initialised on first use. Any fiber or plain thread. Not a cancellation point. Throws
  // std::bad_alloc and what making T throws. * and -> are the same.
  [[nodiscard]] T& get() {
    if (T* const there = find()) return *there;
    return add(T());
  }
  [[nodiscard]] T& operator*() { return get(); }
  [[nodiscard]] T* operator->() { return &get(); }

  // The caller's own, or null if it has none yet. Any fiber or plain thread. Not a cancellation point.
  [[nodiscard]] T* find() const noexcept {
    auto* const node = static_cast<cell*>(::ramie::runtime_internal::find_local(key_));
    return node != nullptr ? &node->value : nullptr;
  }

  // Makes this the caller's own value. Any fiber or plain thread. Not a cancellation point. Throws std::bad_alloc, and
  // what moving T throws.
  void set(T value) {
    if (T* const there = find()) {
      *there = std::move(value);
    } else {
      add(std::move(value));
    }
  }

 private:
  struct cell : ::ramie::runtime_internal::local_node {
    T value;
    template <class V>
    cell(std::uint64_t id, V&& v) : local_node{id, nullptr, &cell::drop, copier()}, value(std::forward<V>(v)) {}

    static void drop(local_node* node) noexcept { delete static_cast<cell*>(node); }
    static constexpr auto copier() noexcept -> local_node* (*)(const local_node&) {
      if constexpr (ByChildren == inherit::yes) {
        return [](const local_node& node) -> local_node* {
          return new cell(node.key, std::as_const(static_cast<const cell&>(node).value));
        };
      } else {
        return nullptr;
      }
    }
  };

  T& add(T&& value) {
    auto* const node = new cell(key_, std::move(value));
    ::ramie::runtime_internal::add_local(node);
    return node->value;
  }

  const std::uint64_t key_;
};

}  // namespace ramie::inline v0
