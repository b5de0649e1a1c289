// SPDX-License-Identifier: BSL-1.0
// A thread that sees when descriptors become ready, for those who wait without an operation of their own: selects on
// signals and on ends of children, by fibers of any runtime and by plain threads; selects on descriptors, by plain
// threads; and children that were detached. It belongs to no runtime and exists while something is watched.
//
// Rejected: an operation of the runtime's I/O driver for each select that waits, as `wait()` has it. A plain thread
// that waits in a select has no driver; and each wait would cost a submission, a cancellation and a wait for its end,
// where a descriptor that stays in an epoll set costs nothing.
#pragma once

#include <cstdint>
#include <mutex>

#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/ready.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

// What is called when a descriptor is ready.
class watched {
 public:
  enum class then : std::uint8_t {
    keep,       // go on watching
    ask_again,  // nothing has come although the descriptor is ready: call again in 10 ms
    remove,     // stop watching, and call removed()
  };
  // Called by the watcher's thread, with its lock: neither waits nor calls watch or unwatch.
  [[nodiscard]] virtual then on_ready() noexcept = 0;
  virtual void removed() noexcept {}

 protected:
  ~watched() = default;
};

// Watches a descriptor, which stays open until it is unwatched, for epoll events. Returns a number for unwatch, never
// 0. Throws std::system_error with `what`, std::bad_alloc: nothing has changed then.
[[nodiscard]] std::uint64_t watch(int fd, std::uint32_t events, watched& by, const char* what);
// `by` is not called any more when this returns. Does nothing for one that was removed, or 0. If it was the last one
// this waits for the thread to end, which takes no time worth mentioning.
void unwatch(std::uint64_t number) noexcept;

// Waiters that are all woken, without an outcome, to check again what they wait for. None of them is handed anything.
class recheck_list {
 public:
  void add(waiter& node) noexcept {
    const std::lock_guard hold(lock_);
    waiters_.add(node);
  }
  // Idempotent.
  void remove(waiter& node) noexcept {
    const std::lock_guard hold(lock_);
    waiters_.remove(node);
  }
  void wake_all() noexcept {
    const std::lock_guard hold(lock_);
    for (const waiter* node = waiters_.first(); node != nullptr; node = node->next) waker(*node).wake();
  }

 private:
  platform::spin_lock lock_;
  wait_list waiters_;
};

// As a case of select: a source that is watched from the first select on, and stays so. A select takes what has come
// into a Source::taken, which the case holds. The source is kept alive by the case's user.
template <class Source>
inline constexpr ready_ops watched_ready_ops{
    [](const ready_source& from, void* memory) -> waiter& {
      static_cast<Source*>(from.what)->begin_watching();
      return make_ready_node<waiter>(memory);
    },
    [](const ready_source&, waiter&) noexcept {},
    [](const ready_source& from, waiter&) {
      return static_cast<Source*>(from.what)->try_take(*static_cast<typename Source::taken*>(from.home));
    },
    [](const ready_source& from, waiter& node) noexcept { return static_cast<Source*>(from.what)->publish(node); },
    [](const ready_source& from, waiter& node) noexcept { static_cast<Source*>(from.what)->unpublish(node); }};

}  // namespace ramie::io_internal
