// SPDX-License-Identifier: BSL-1.0
// Graceful shutdown of a service: stop accepting, let the work under way finish, wait for it up to a deadline, report
// what is left.
//
//   shutdown_source  for the one who ends the service: request(), then wait_pending()
//   shutdown_token   for those who work: requested(), wait(), on_request(), guard()
//   work_guard       a piece of work under way
//
// This cancels nothing; nurseries do that (nursery::cancel, nursery::shutdown).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ramie/source_location.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/detail/ready_source.hpp>
#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

class shutdown_core;
struct guarded_work;

template <class F>
concept shutdown_action = std::invocable<std::add_lvalue_reference_t<std::decay_t<F>>>;

// A callback for the request. Listed in the core from its registration until it is called or destroyed.
class shutdown_hook {
 public:
  shutdown_hook(const shutdown_hook&) = delete;
  shutdown_hook& operator=(const shutdown_hook&) = delete;

 protected:
  explicit shutdown_hook(std::shared_ptr<shutdown_core> core) noexcept : core_(std::move(core)) {}
  ~shutdown_hook() = default;
  void enlist() noexcept;   // by the most derived constructor, last
  void dismiss() noexcept;  // by the most derived destructor, first

 private:
  friend class shutdown_core;
  virtual void call() noexcept = 0;

  std::shared_ptr<shutdown_core> core_;
  shutdown_hook *previous_ = nullptr, *next_ = nullptr;
  bool listed_ = false;
};

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

// One piece of work under way: wait_pending() waits until the guard is destroyed or done() is called. May be moved to
// another fiber or thread, and ended there. Empty after a move or done(). Any fiber or plain thread, one at a time.
class work_guard {
 public:
  // What this object guarded before is done. Not a cancellation point, nor is the destructor.
  work_guard(work_guard&& other) noexcept : core_(std::move(other.core_)), work_(std::exchange(other.work_, nullptr)) {}
  work_guard& operator=(work_guard&& other) noexcept {
    if (this != &other) {
      done();
      core_ = std::move(other.core_);
      work_ = std::exchange(other.work_, nullptr);
    }
    return *this;
  }
  ~work_guard() { done(); }

  // Ends the work. Idempotent. Never waits; not a cancellation point.
  void done() noexcept;
  // Whether it guards work that is not done. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return work_ != nullptr; }

 private:
  friend class shutdown_token;
  work_guard(std::shared_ptr<::ramie::io_internal::shutdown_core> core,
             ::ramie::io_internal::guarded_work* work) noexcept
      : core_(std::move(core)), work_(work) {}

  std::shared_ptr<::ramie::io_internal::shutdown_core> core_;
  ::ramie::io_internal::guarded_work* work_;
};

// What token.on_request() returns: registered until it is destroyed, like std::stop_callback.
template <std::invocable F>
class [[nodiscard]] shutdown_callback final : private ::ramie::io_internal::shutdown_hook {
 public:
  ~shutdown_callback() { dismiss(); }

 private:
  friend class shutdown_token;
  template <class From>
  shutdown_callback(std::shared_ptr<::ramie::io_internal::shutdown_core> core, From&& f)
      : ::ramie::io_internal::shutdown_hook(std::move(core)), f_(std::forward<From>(f)) {
    enlist();
  }
  void call() noexcept override { static_cast<void>(std::invoke(f_)); }

  F f_;
};

// Tells workers of a service that shutdown was requested. Copies are cheap. Any number of fibers and plain threads may
// use one at once. A case of select: on_ready(token, f) happens when shutdown has been requested.
class shutdown_token {
 public:
  // Whether shutdown was requested. Never waits; not a cancellation point.
  [[nodiscard]] bool requested() const noexcept;

  // Waits until shutdown is requested. False: the deadline has passed. A cancellation point on every call: throws
  // `cancelled`; std::bad_alloc or std::system_error if the deadline can't be kept.
  bool wait(deadline until = {}) const;

  // Calls f() once when shutdown is requested, on the fiber or thread that requests it; if it has been requested
  // already, at once and here. The destructor of the returned object unregisters f, or waits until it returns if
  // another fiber or thread is calling it. f must not throw, which ends the program, and must not wait. Most close a
  // listener or a channel, so that the fiber that waits there goes on. Never waits; not a cancellation point. Throws
  // what moving f throws.
  template <::ramie::io_internal::shutdown_action F>
  [[nodiscard]] auto on_request(F&& f) const -> shutdown_callback<std::decay_t<F>> {
    return shutdown_callback<std::decay_t<F>>(core_, std::forward<F>(f));
  }

  // Counts a piece of work as under way, also after the request: work that is being finished may need more work. The
  // report of work that is not done in time shows the name, which is copied, and `where`. Never waits; not a
  // cancellation point. Throws std::bad_alloc.
  [[nodiscard]] work_guard guard(std::string_view name = {}, source_location where = source_location::current()) const;
  // The same for work that need not begin: nothing is returned after the request. Work is counted or refused: none
  // begins uncounted. Never waits; not a cancellation point. Throws std::bad_alloc.
  [[nodiscard]] std::optional<work_guard> try_guard(std::string_view name = {},
                                                    source_location where = source_location::current()) const;

  // A standard token that is stopped by the request, after the callbacks of on_request(); for nursery::cancel_on,
  // std::jthread and the like. Its callbacks must not wait, either. Not a cancellation point.
  [[nodiscard]] std::stop_token get_stop_token() const noexcept;

 private:
  friend class shutdown_source;
  friend struct ::ramie::runtime_internal::ready_access;
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept;
  explicit shutdown_token(std::shared_ptr<::ramie::io_internal::shutdown_core> core) noexcept
      : core_(std::move(core)) {}

  std::shared_ptr<::ramie::io_internal::shutdown_core> core_;
};

// What wait_pending() and report() return.
struct pending_report {
  std::size_t pending = 0;         // pieces of work under way
  std::vector<std::string> names;  // of each its name, if it has one, and the place where it was guarded; oldest first
  // Whether nothing was left.
  [[nodiscard]] bool all_done() const noexcept { return pending == 0; }
};

// Requests shutdown. Copies share one state. Any number of fibers and plain threads may use one at once.
class shutdown_source {
 public:
  // Throws std::bad_alloc.
  shutdown_source();

  // A token for those who work. Not a cancellation point.
  [[nodiscard]] shutdown_token get_token() const noexcept { return shutdown_token(core_); }

  // Requests shutdown: calls what on_request() has registered, the latest first, and ends all waits for it. False: it
  // was requested before; that other call may not have returned yet. Never waits; not a cancellation point.
  bool request() noexcept;
  // Whether shutdown was requested. Never waits; not a cancellation point.
  [[nodiscard]] bool requested() const noexcept { return get_token().requested(); }

  // Waits until no work is under way or the deadline has passed, and returns what is left. Does not request shutdown. A
  // cancellation point on every call; throws std::bad_alloc, and std::system_error if the deadline can't be kept.
  pending_report wait_pending(deadline until = {}) const;

  // How much work is under way now. A snapshot. Never waits; not a cancellation point.
  [[nodiscard]] std::size_t pending() const noexcept;
  // The same, and which. Never waits; not a cancellation point. Throws std::bad_alloc.
  [[nodiscard]] pending_report report() const;

 private:
  std::shared_ptr<::ramie::io_internal::shutdown_core> core_;
};

}  // namespace ramie::inline v0
