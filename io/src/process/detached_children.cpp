// SPDX-License-Identifier: BSL-1.0
// Children that were detached are reaped by the watcher's thread, whatever becomes of everybody else.
#include <sys/epoll.h>

#include <memory>

#include "../watcher.hpp"
#include "child.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

// Owned by the watcher once it is watched.
class detached_child final : public watched {
 public:
  explicit detached_child(unique_fd pidfd) noexcept : pidfd_(std::move(pidfd)) {}
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }
  // A child that a debugger holds can't be reaped yet.
  [[nodiscard]] then on_ready() noexcept override {
    siginfo_t info;
    return reap(pidfd_.get(), info) == 0 ? then::ask_again : then::remove;
  }
  void removed() noexcept override { delete this; }

 private:
  const unique_fd pidfd_;
};

}  // namespace

void reap_later(unique_fd pidfd) {
  auto child = std::make_unique<detached_child>(std::move(pidfd));
  (void)watch(child->pidfd(), EPOLLIN, *child, "ramie: process::detach");
  (void)child.release();
}

}  // namespace ramie::io_internal
