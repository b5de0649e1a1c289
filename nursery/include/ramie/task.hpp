// SPDX-License-Identifier: BSL-1.0
// What spawn returns: a handle on one child's result.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <ramie/cancel.hpp>
#include <ramie/deadline.hpp>
#include <ramie/detail/ready_source.hpp>
#include <ramie/detail/task_block.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

struct task_handle {
  task_block* block = nullptr;
  nursery_core* home = nullptr;
  std::uint64_t life = 0;  // of the nursery: a later one may use the same memory
};
// What a core begins with. (It is a complete type in the library only.)
[[nodiscard]] inline std::uint64_t life_of(const nursery_core& n) noexcept {
  return reinterpret_cast<const with_lives&>(n).life.load(std::memory_order_acquire);
}

// Throw usage_error, cancelled. The second returns whether the task has ended; it may also throw std::bad_alloc.
void await_task(const task_handle& handle);
[[nodiscard]] bool await_task_until(const task_handle& handle, deadline until);
void rethrow_failure(const task_handle& handle);  // returns if the task has a value
void value_taken(const task_handle& handle);      // throws usage_error if it was before
[[nodiscard]] bool task_done(const task_handle& handle);
bool cancel_task(const task_handle& handle, cancel_reason reason);  // throws usage_error, std::bad_alloc
void drop_task(task_block& task, nursery_core& home, std::uint64_t life) noexcept;
[[nodiscard]] ready_source task_ready_source(const task_handle& handle) noexcept;
[[noreturn]] void no_such_task(const char* function);

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

// A child of a nursery, seen by whoever spawned it. The child does not depend on the handle: drop it, and the
// child goes on; its nursery waits for it. Use it while the nursery lives: before its destructor, from any fiber or
// plain thread (those outside the nursery's tree must know that it lives). Movable, not copyable.
template <class R>
class task {
 public:
  using result_type = R;

  task() noexcept = default;  // empty: no child behind it
  task(task&& other) noexcept : handle_(other.release()) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  // A handle that can be seen never to have left the function that spawned is let go by who has spawned. If that is the
  // nursery's owner, there is no call. (Not with clang, which may see that of a coroutine's handle, too: there it may be
  // another thread's.)
  ~task() {
#if defined(__GNUC__) && !defined(__clang__)
    if (__builtin_constant_p(stayed_) && stayed_ && by_owner_ &&
        nursery_internal::life_of(*handle_.home) == handle_.life &&
        handle_.block->marks.load(std::memory_order_acquire) == 0) {
      handle_.block->dropped.store(true, std::memory_order_release);
      return;
    }
#endif
    reset();
  }

  // Waits for the child's end and returns its value or rethrows its failure; throws `cancelled` if the child was
  // cancelled: the caller's own, if it is cancelled, too, else the child's (cancelled::is_own). A value can be taken
  // once. A cancellation point, unless the child has ended already. Throws usage_error if the handle is empty, its
  // nursery is gone or the value was taken.
  R get() {
    wait();
    return take();
  }

  // Like get(), but not beyond `until`. Of a value: std::optional of it, empty if the child has not ended by then; of a
  // reference, std::optional of std::reference_wrapper; of void, whether the child has ended. The child goes on, and
  // the handle is as good as before. A cancellation point like get(). Throws what get() throws, and std::bad_alloc or
  // std::system_error if the time can't be kept.
  auto get_until(deadline until) {
    if constexpr (std::is_void_v<R>) {
      if (!wait_until(until)) return false;
      take();
      return true;
    } else if constexpr (std::is_reference_v<R>) {
      using reference = std::reference_wrapper<std::remove_reference_t<R>>;
      return wait_until(until) ? std::optional<reference>(take()) : std::optional<reference>();
    } else {
      return wait_until(until) ? std::optional<std::remove_cv_t<R>>(take()) : std::optional<std::remove_cv_t<R>>();
    }
  }
  template <class Rep, class Period>
  auto get_for(std::chrono::duration<Rep, Period> limit) {
    return get_until(limit);
  }

  // Waits for the child's end, whatever it is. A cancellation point, unless the child has ended already: throws
  // `cancelled`. Throws usage_error if the handle is empty or its nursery is gone, std::bad_alloc on a thread's first
  // wait.
  void wait() {
    nursery_internal::await_task(handle("task::wait"));
  }

  // Like wait(), but not beyond `until`: whether the child has ended. Throws usage_error like get(), and std::bad_alloc
  // or std::system_error if the time can't be kept.
  [[nodiscard]] bool wait_until(deadline until) {
    return nursery_internal::await_task_until(handle("task::wait_until"), until);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(limit);
  }

  // Whether the child has ended. Not a cancellation point. Throws usage_error like get().
  [[nodiscard]] bool done() const {
    return nursery_internal::task_done(handle("task::done"));
  }

  // Cancels this child and what it has opened (its nurseries and their children), not its siblings: it ends as
  // cancelled, which does not fail its nursery, or, if it has not started, without running. Returns whether this call
  // was the first, and the child had not ended. Not a cancellation point. Throws usage_error like get(),
  // std::bad_alloc.
  bool cancel(std::string why = {}, source_location where = source_location::current()) {
    return nursery_internal::cancel_task(handle("task::cancel"), {cancel_kind::requested, std::move(why), where});
  }

  // Whether there is a child behind this handle: not after reset(), nor after a move from here. Any fiber or thread,
  // one at a time. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return handle_.block != nullptr; }

  // Lets go of the child, which goes on; the handle is empty then. Idempotent. Whoever has the handle, any fiber or
  // thread. Never waits; not a cancellation point.
  void reset() noexcept {
    if (!valid()) return;
    const nursery_internal::task_handle gone = release();
    nursery_internal::drop_task(*gone.block, *gone.home, gone.life);  // in registers: it is called after most spawns
  }

 private:
  friend class nursery;
  friend struct runtime_internal::ready_access;
  // As spawned.
  task(const nursery_internal::task_handle& spawned, bool by_owner) noexcept
      : handle_(spawned), stayed_(true), by_owner_(by_owner) {}
  [[nodiscard]] nursery_internal::task_handle release() noexcept {
    stayed_ = false;
    return std::exchange(handle_, {});
  }
  [[nodiscard]] const nursery_internal::task_handle& handle(const char* function) const {
    if (!valid()) nursery_internal::no_such_task(function);
    return handle_;
  }

  // An empty handle is never ready.
  [[nodiscard]] runtime_internal::ready_source as_ready_source() const noexcept {
    return valid() ? nursery_internal::task_ready_source(handle_) : runtime_internal::ready_source{};
  }

  // The child has ended.
  R take() {
    nursery_internal::rethrow_failure(handle_);
    if constexpr (!std::is_void_v<R>) {
      auto& holder = static_cast<nursery_internal::result_holder<R>&>(*handle_.block);
      if constexpr (std::is_reference_v<R>) {
        return static_cast<R>(*holder.value());
      } else {
        nursery_internal::value_taken(handle_);
        return std::move(holder.value());
      }
    }
  }

  nursery_internal::task_handle handle_;
  bool stayed_ = false;  // it is what spawn returned, not what that was moved to; not empty
  bool by_owner_ = false;
};

}  // namespace ramie::inline v0
