// SPDX-License-Identifier: BSL-1.0
// The end of a service, in order: stop accepting, let what is under way finish, wait no longer than that, say what was
// left.
//
//   shutdown_source  whoever decides that it is over: request(), then wait_pending()
//   shutdown_token   whoever works for it: requested(), wait(), closes(), guard()
//   work_guard       a piece of work under way
//
// Nothing is cancelled by this; that is what nurseries are for (nursery::cancel, nursery::shutdown).
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

#include <ramie/time.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

class shutdown_core;
struct guarded_work;

template <class F>
concept shutdown_action = std::invocable<std::add_lvalue_reference_t<std::decay_t<F>>>;

// Something to be called when shutdown is requested. Listed in the core from its registration until it is called or
// gone.
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

}  // namespace ramie::detail

namespace ramie::inline v0 {

// One piece of work under way: wait_pending() waits until it is gone. Moves from fiber to fiber; any fiber or thread
// may end it, once. Empty after a move or done().
class work_guard {
 public:
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

  // The work has ended. Never waits; not a cancellation point.
  void done() noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return work_ != nullptr; }

 private:
  friend class shutdown_token;
  work_guard(std::shared_ptr<::ramie::detail::shutdown_core> core, ::ramie::detail::guarded_work* work) noexcept
      : core_(std::move(core)), work_(work) {}

  std::shared_ptr<::ramie::detail::shutdown_core> core_;
  ::ramie::detail::guarded_work* work_;
};

// What token.closes() returns. Bound to its block, like std::stop_callback.
template <std::invocable F>
class [[nodiscard]] shutdown_callback final : private ::ramie::detail::shutdown_hook {
 public:
  ~shutdown_callback() { dismiss(); }

 private:
  friend class shutdown_token;
  template <class From>
  shutdown_callback(std::shared_ptr<::ramie::detail::shutdown_core> core, From&& f)
      : ::ramie::detail::shutdown_hook(std::move(core)), f_(std::forward<From>(f)) {
    enlist();
  }
  void call() noexcept override { static_cast<void>(std::invoke(f_)); }

  F f_;
};

// How those who work learn that it is over. Copies are cheap. Any number of fibers and plain threads may use one at
// once.
class shutdown_token {
 public:
  // Whether it was requested. Never waits; not a cancellation point.
  [[nodiscard]] bool requested() const noexcept;

  // Waits until it is requested. False: too late. A cancellation point on every call: throws `cancelled`;
  // std::bad_alloc or std::system_error if the time can't be kept.
  bool wait(deadline until = {}) const;

  // Calls f() once, when shutdown is requested, on the fiber or thread that requests it; at once, here, if it was
  // before. While it is registered, that is: the destructor of what is returned takes it back, or waits for its end if
  // somebody else is just calling it. f must not throw, which ends the program, and must not wait: it closes a listener
  // or a channel, so that the fiber that waits there goes on. Throws what moving f throws.
  template <::ramie::detail::shutdown_action F>
  [[nodiscard]] auto closes(F&& f) const -> shutdown_callback<std::decay_t<F>> {
    return shutdown_callback<std::decay_t<F>>(core_, std::forward<F>(f));
  }

  // Counts a piece of work as under way, also if shutdown has been requested: work that is being finished may need
  // more. The name is copied, and shown with `where` if it is not done in time. Throws std::bad_alloc.
  [[nodiscard]] work_guard guard(std::string_view name = {}, source_location where = source_location::current()) const;
  // The same, unless shutdown has been requested: for work that need not begin. It is counted, or it is refused: none
  // slips past a request.
  [[nodiscard]] std::optional<work_guard> try_guard(std::string_view name = {},
                                                    source_location where = source_location::current()) const;

  // A token that is asked to stop with it, after the callbacks of closes(); for nursery::cancel_on, std::jthread and
  // such. Its callbacks must not wait, either.
  [[nodiscard]] std::stop_token get_stop_token() const noexcept;

 private:
  friend class shutdown_source;
  explicit shutdown_token(std::shared_ptr<::ramie::detail::shutdown_core> core) noexcept : core_(std::move(core)) {}

  std::shared_ptr<::ramie::detail::shutdown_core> core_;
};

// What wait_pending() found.
struct pending_report {
  std::size_t pending = 0;         // pieces of work that are not done
  std::vector<std::string> names;  // each with its name, if it has one, and the place where it was guarded
  [[nodiscard]] bool all_done() const noexcept { return pending == 0; }
};

// Copies are the same source. Any fiber or thread may use it.
class shutdown_source {
 public:
  // Throws std::bad_alloc.
  shutdown_source();

  [[nodiscard]] shutdown_token get_token() const noexcept { return shutdown_token(core_); }

  // It is over: calls what closes() registered, the last one first, and lets all go on who wait for it. False: somebody
  // has requested it before, and may not be done with that. Not a cancellation point.
  bool request() noexcept;
  [[nodiscard]] bool requested() const noexcept { return get_token().requested(); }

  // Waits until no guard is held, or until then, and says which are. Does not request anything. A cancellation point on
  // every call; throws std::bad_alloc, and std::system_error if the time can't be kept.
  pending_report wait_pending(deadline until = {}) const;

  // Guards held now, and which they are. Never wait; not cancellation points.
  [[nodiscard]] std::size_t pending() const noexcept;
  [[nodiscard]] pending_report report() const;

 private:
  std::shared_ptr<::ramie::detail::shutdown_core> core_;
};

}  // namespace ramie::inline v0
