// SPDX-License-Identifier: BSL-1.0
// What is done once, by whoever comes first; the others wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

struct once_core {
  static constexpr std::uint32_t running = 1, waiting = 2, done = 4;  // channel/src/sync/once_core.hpp
  atomic<std::uint32_t> word{0};
  atomic<const void*> owner{nullptr};  // who is at it; builds with checks
  line waiters;

  // Pairs with the release of once_end.
  [[nodiscard]] bool is_done() const noexcept { return word.load(std::memory_order_acquire) == done; }
};

// True: the caller is to do it, and to say how that ended. False: it is done.
[[nodiscard]] bool once_begin(once_core& o);
void once_end(once_core& o, bool done) noexcept;
void once_destroyed(const once_core& o) noexcept;

template <class F>
void do_once(once_core& o, F&& f) {
  if (o.is_done() || !once_begin(o)) return;
  struct attempt {
    once_core& of;
    bool succeeded = false;
    ~attempt() { once_end(of, succeeded); }
  } mine{o};
  std::forward<F>(f)();
  mine.succeeded = true;
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

// For call_once. Constant-initialised. Builds with checks end the program with a message when it is destroyed while
// somebody is at it.
class once_flag {
 public:
  once_flag() noexcept = default;
  ~once_flag() {
    if ((core_.word.load(std::memory_order_relaxed) & ::ramie::detail::once_core::running) != 0) [[unlikely]]
      ::ramie::detail::once_destroyed(core_);
  }
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);
  ::ramie::detail::once_core core_;
};

// Calls f(args…) unless a call by this flag has returned before; waits while another is at it. If f throws, or is
// cancelled, that goes to its caller, and the next who waits tries. f may wait, but not for this flag: builds with
// checks end the program with a message. Any fiber or thread. A cancellation point where it has to wait or to call, and
// none once it is done: that is one load. Throws `cancelled`, what f throws, std::bad_alloc on a thread's first wait.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  ::ramie::detail::do_once(flag.core_, [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); });
}

// A value that is made once, by whoever needs it first. Empty, being made, or there for good. Constant-initialised.
// Fibers of any runtime and plain threads may use one; what happened before the value was made is seen by who gets it.
template <class T>
class once_cell {
 public:
  constexpr once_cell() noexcept : nothing_{} {}
  ~once_cell() {
    const auto word = core_.word.load(std::memory_order_acquire);
    if (word == ::ramie::detail::once_core::done) {
      std::destroy_at(std::addressof(value_));
    } else if (word != 0) {
      ::ramie::detail::once_destroyed(core_);
    }
  }
  once_cell(const once_cell&) = delete;
  once_cell& operator=(const once_cell&) = delete;

  // The value, or null. One acquire load; not a cancellation point.
  [[nodiscard]] T* get() noexcept { return core_.is_done() ? std::addressof(value_) : nullptr; }
  [[nodiscard]] const T* get() const noexcept { return core_.is_done() ? std::addressof(value_) : nullptr; }

  // The value; if there is none, it is made of what make() returns. Otherwise like call_once.
  template <class F>
  T& get_or_init(F&& make) {
    ::ramie::detail::do_once(
        core_, [&] { ::new (static_cast<void*>(std::addressof(value_))) T(std::invoke(std::forward<F>(make))); });
    return value_;
  }
  // False: there was one already, or somebody else has just made one. A cancellation point where it has to wait.
  template <class... Args>
  bool emplace(Args&&... args) {
    bool mine = false;
    ::ramie::detail::do_once(core_, [&] {
      ::new (static_cast<void*>(std::addressof(value_))) T(std::forward<Args>(args)...);
      mine = true;
    });
    return mine;
  }

 private:
  static_assert(std::is_object_v<T> && std::is_nothrow_destructible_v<T>);
  union {
    char nothing_;
    T value_;
  };
  ::ramie::detail::once_core core_;
};

}  // namespace ramie::inline v0
