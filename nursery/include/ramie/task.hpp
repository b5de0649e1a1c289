// SPDX-License-Identifier: BSL-1.0
// What spawn returns: a handle on one child's result.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <ramie/detail/joinable.hpp>
#include <ramie/detail/task_record.hpp>

namespace ramie::detail {

struct task_handle {
  task_record* record = nullptr;
  nursery_core* home = nullptr;
  std::uint64_t life = 0;  // of the nursery: a later one may use the same memory
};

void await_task(const task_handle& handle);       // throws usage_error, cancelled
void rethrow_failure(const task_handle& handle);  // returns if the task has a value
void value_taken(const task_handle& handle);      // throws usage_error if it was before
[[nodiscard]] bool task_done(const task_handle& handle);
void drop_task(task_record& task, nursery_core& home, std::uint64_t life) noexcept;
[[nodiscard]] join_target task_join_target(const task_handle& handle) noexcept;
[[noreturn]] void no_such_task();

}  // namespace ramie::detail

namespace ramie::inline v0 {

// A child of a nursery, seen by whoever spawned it. The child does not depend on the handle: drop it, and the
// child goes on; its nursery waits for it. Use it while the nursery lives: before its destructor, from any fiber or
// plain thread (those outside the nursery's tree must know that it lives). Movable, not copyable.
template <class R>
class task {
 public:
  using result_type = R;

  task() noexcept = default;
  explicit task(const ::ramie::detail::task_handle& handle) noexcept : handle_(handle) {}
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~task() { reset(); }

  // Waits for the child's end and returns its value or rethrows its failure; throws `cancelled` if the child was
  // cancelled: the caller's own, if it is cancelled, too, else the child's (cancelled::is_own). A value can be taken
  // once. A cancellation point, unless the child has ended already. Throws usage_error if the handle is empty, its
  // nursery is gone or the value was taken.
  R get() {
    wait();
    ::ramie::detail::rethrow_failure(handle_);
    if constexpr (!std::is_void_v<R>) {
      auto& holder = static_cast<::ramie::detail::result_holder<R>&>(*handle_.record);
      if constexpr (std::is_reference_v<R>) {
        return static_cast<R>(*holder.value());
      } else {
        ::ramie::detail::value_taken(handle_);
        return std::move(holder.value());
      }
    }
  }

  // Waits for the child's end, whatever it is. A cancellation point, unless the child has ended already.
  void wait() {
    if (handle_.record == nullptr) ::ramie::detail::no_such_task();
    ::ramie::detail::await_task(handle_);
  }

  // Whether the child has ended. Not a cancellation point. Throws usage_error like get().
  [[nodiscard]] bool done() const {
    if (handle_.record == nullptr) ::ramie::detail::no_such_task();
    return ::ramie::detail::task_done(handle_);
  }

  // Whether there is a child behind this handle.
  [[nodiscard]] bool valid() const noexcept { return handle_.record != nullptr; }

  // For select's on_join; not part of the API. An empty handle is never ready.
  [[nodiscard]] ::ramie::detail::join_target join_source() const noexcept {
    return valid() ? ::ramie::detail::task_join_target(handle_) : ::ramie::detail::join_target{};
  }

  // Lets go of the child, which goes on.
  void reset() noexcept {
    if (handle_.record == nullptr) return;
    const ::ramie::detail::task_handle gone = std::exchange(handle_, {});
    ::ramie::detail::drop_task(*gone.record, *gone.home, gone.life);  // in registers: it is called after most spawns
  }

 private:
  ::ramie::detail::task_handle handle_;
};

}  // namespace ramie::inline v0
