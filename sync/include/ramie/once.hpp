// SPDX-License-Identifier: BSL-1.0
// What is done once, by whoever comes first; the others wait for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct once_core {
  static constexpr const char* name = "once_flag or once_cell";
  static constexpr std::uint32_t running = 1, waiting = 2, done = 4;  // sync/src/once_core.hpp
  atomic<std::uint32_t> word{0};
  atomic<const void*> owner{nullptr};  // who does it; builds with checks
  wait_queue waiters;

  // Pairs with the release of once_end.
  [[nodiscard]] bool is_done() const noexcept { return word.load(std::memory_order_acquire) == done; }
  [[nodiscard]] const char* in_use() const noexcept {
    return (word.load(std::memory_order_relaxed) & running) != 0 ? "somebody is initialising" : nullptr;
  }
};

// ours: the caller has to do it, and to call once_end.
enum class once_begun : std::uint8_t { ours, done, too_late };
[[nodiscard]] once_begun once_begin(once_core& o, sync_time until);
void once_end(once_core& o, bool done) noexcept;

// False: another has been at it for too long.
template <class F>
bool do_once(once_core& o, sync_time until, F&& f) {
  if (o.is_done()) return true;
  const once_begun how = once_begin(o, until);
  if (how != once_begun::ours) return how == once_begun::done;
  struct attempt {
    once_core& of;
    bool succeeded = false;
    ~attempt() { once_end(of, succeeded); }
  } mine{o};
  std::forward<F>(f)();
  mine.succeeded = true;
  return true;
}

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// For call_once. Constant-initialised. Builds with checks end the program with a message when it is destroyed while
// somebody's call is running.
class once_flag : ::ramie::sync_internal::sync_object<::ramie::sync_internal::once_core> {
 public:
  once_flag() noexcept = default;

 private:
  template <class F, class... Args>
  friend bool call_once_until(once_flag& flag, deadline until, F&& f, Args&&... args);
};

// Calls f(args…) unless a call by this flag has returned before; waits while another's call is running. If f throws, or
// is cancelled, that goes to its caller, and the next who waits tries. f may wait, but not for this flag: builds with
// checks end the program with a message. Any fiber or thread. A cancellation point where it has to wait or to call, and
// none once it is done: that is one load. Throws `cancelled`, what f throws, std::bad_alloc on a thread's first wait.
//
// _until, _for: wait for another's call no longer than that. False: too late, and f was not called. f itself has no
// deadline. Also throws std::bad_alloc or std::system_error if the deadline can't be kept.
template <class F, class... Args>
[[nodiscard]] bool call_once_until(once_flag& flag, deadline until, F&& f, Args&&... args) {
  return ::ramie::sync_internal::do_once(
      flag.core_, until.when(), [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); });
}
template <class Rep, class Period, class F, class... Args>
[[nodiscard]] bool call_once_for(once_flag& flag, std::chrono::duration<Rep, Period> limit, F&& f, Args&&... args) {
  return call_once_until(flag, limit, std::forward<F>(f), std::forward<Args>(args)...);
}
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  (void)call_once_until(flag, {}, std::forward<F>(f), std::forward<Args>(args)...);
}

// A value that is made once, by whoever needs it first. Empty, being made, or there for good. Constant-initialised.
// Fibers of any runtime and plain threads may use one; what happened before the value was made is seen by who gets it.
template <class T>
class once_cell {
 public:
  constexpr once_cell() noexcept : nothing_{} {}
  ~once_cell() {
    const auto word = core_.word.load(std::memory_order_acquire);
    if (word == ::ramie::sync_internal::once_core::done) {
      std::destroy_at(std::addressof(value_));
    } else if (const char* const that = core_.in_use()) {
      ::ramie::sync_internal::destroyed_in_use(core_.name, that);
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
    return *get_or_init_until({}, std::forward<F>(make));
  }
  // The same, like call_once_until. Null: too late.
  template <class F>
  [[nodiscard]] T* get_or_init_until(deadline until, F&& make) {
    const bool is_there = ::ramie::sync_internal::do_once(core_, until.when(), [&] {
      ::new (static_cast<void*>(std::addressof(value_))) T(std::invoke(std::forward<F>(make)));
    });
    return is_there ? std::addressof(value_) : nullptr;
  }
  template <class Rep, class Period, class F>
  [[nodiscard]] T* get_or_init_for(std::chrono::duration<Rep, Period> limit, F&& make) {
    return get_or_init_until(limit, std::forward<F>(make));
  }
  // Makes the value of the arguments. False: there was one already, or somebody else has just made one. Any fiber or
  // thread. A cancellation point where it has to wait or to make it: throws `cancelled`. Throws what the constructor
  // throws, and the cell is still empty then; std::bad_alloc on a thread's first wait.
  template <class... Args>
  bool emplace(Args&&... args) {
    bool mine = false;
    (void)::ramie::sync_internal::do_once(core_, ::ramie::sync_internal::never, [&] {
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
  ::ramie::sync_internal::once_core core_;
};

}  // namespace ramie::inline v0
