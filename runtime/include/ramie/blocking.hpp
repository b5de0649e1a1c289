// SPDX-License-Identifier: BSL-1.0
// Calls that block a thread, made by fibers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/detail/callable.hpp>
#include <ramie/version.hpp>

namespace ramie::runtime_internal {

// blocking(), type-erased.
void run_blocking(void (*call)(void*), void* data);

class detachable_call {
 public:
  virtual ~detachable_call() = default;
  virtual void call() = 0;
};
// Returns when the call has returned, with `work` in its place; if it throws `cancelled`, it may have kept `work`.
void run_detachable(std::unique_ptr<detachable_call>& work);

// Room for what a call returns.
template <class R>
class call_result {
 public:
  template <class F>
  void take_from(F& f) {
    if constexpr (std::is_reference_v<R>) {
      R&& value = std::invoke(f);
      value_ = std::addressof(value);
    } else {
      value_.emplace(std::invoke(f));
    }
  }
  R give() {
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(*value_);
    } else {
      return std::move(*value_);
    }
  }

 private:
  std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, std::optional<R>> value_{};
};
template <>
class call_result<void> {
 public:
  template <class F>
  void take_from(F& f) {
    std::invoke(f);
  }
  void give() {}
};

template <class F, class R>
class detachable_function final : public detachable_call {
 public:
  template <class From>
  explicit detachable_function(From&& from) : f_(std::forward<From>(from)) {}
  void call() override { result_.take_from(f_); }
  R give() { return result_.give(); }

 private:
  F f_;
  call_result<R> result_;
};

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Runs f() on a thread of the runtime's blocking pool while the calling fiber waits and its worker runs others; returns
// what f returns, or throws what it throws. For calls that block or compute for long: files, name lookups, libraries.
//
// The pool starts a thread if none is idle, up to options.max_blocking_threads; beyond that calls are queued. f runs
// outside of any fiber: there, this_fiber, now() and every operation of ramie behave as on a plain thread, and
// blocking() just calls its argument, as it does on every plain thread.
//
// A cancellation point: throws `cancelled`. A call that is still queued is then removed and never runs. One that
// runs is not interrupted: blocking() waits for its end, drops its result, and throws `cancelled`; if f has thrown,
// that failure is reported (set_report_handler). A call that has ended before the cancellation came counts. Throws
// std::system_error or std::bad_alloc if there is no thread and none can be started; f has not been called then.
template <class F>
auto blocking(F&& f) -> ::ramie::runtime_internal::call_gives_t<F&> {
  static_assert(std::is_invocable_v<F&>,
                "ramie: blocking(f) calls f() without arguments, and f can't be called like that.");
  ::ramie::runtime_internal::call_result<::ramie::runtime_internal::call_gives_t<F&>> result;
  auto call = [&] { result.take_from(f); };
  ::ramie::runtime_internal::run_blocking([](void* c) { (*static_cast<decltype(call)*>(c))(); }, &call);
  return result.give();
}

// Says that a blocking call may be left behind: blocking(detach_on_cancel, f).
struct detach_on_cancel_t {
  explicit detach_on_cancel_t() = default;
};
inline constexpr detach_on_cancel_t detach_on_cancel{};

// The same for a call that the caller may abandon: f is moved or copied to the heap first, and if the fiber is
// cancelled while f runs, blocking() throws `cancelled` at once. f then finishes by itself and is destroyed on its
// thread; what it returns is dropped, what it throws is reported. It must not use anything that ends with the fiber.
// The runtime's destructor waits for it. Throws what blocking(f) throws, and what moving or copying f throws.
template <class F>
auto blocking(detach_on_cancel_t, F&& f) -> ::ramie::runtime_internal::call_keeps_t<std::decay_t<F>&> {
  using result = ::ramie::runtime_internal::call_keeps_t<std::decay_t<F>&>;
  using function = ::ramie::runtime_internal::detachable_function<std::decay_t<F>, result>;
  std::unique_ptr<::ramie::runtime_internal::detachable_call> work = std::make_unique<function>(std::forward<F>(f));
  ::ramie::runtime_internal::run_detachable(work);
  return static_cast<function&>(*work).give();
}

}  // namespace ramie::inline v0
