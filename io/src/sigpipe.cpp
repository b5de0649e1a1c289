// SPDX-License-Identifier: BSL-1.0
#include "sigpipe.hpp"

#include <atomic>
#include <csignal>

namespace ramie::io_internal {

namespace {

std::atomic<bool> sigpipe_unwanted{false};

}  // namespace

void ignore_sigpipe() noexcept {
  static std::atomic<bool> ignored{false};  // not set while the program has a handler, which may be removed later
  if (ignored.load(std::memory_order_relaxed)) return;
  // Before the handler is read: whoever restores the default action after that sees this.
  sigpipe_unwanted.store(true);
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return;
  if (now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  if (::sigaction(SIGPIPE, &now, nullptr) == 0) ignored.store(true, std::memory_order_relaxed);
}

bool sigpipe_is_unwanted() noexcept {
  return sigpipe_unwanted.load();
}

}  // namespace ramie::io_internal
