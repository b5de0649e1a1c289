// SPDX-License-Identifier: BSL-1.0
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <ramie/cancel.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_child{"process"};

// A child that has ended can't be reaped while a debugger is attached, although its pidfd is readable: try again after
// this time.
constexpr std::chrono::milliseconds reap_retry{10};

constexpr auto by_pidfd = static_cast<idtype_t>(3);  // P_PIDFD

exit_status status_from(const siginfo_t& info) noexcept {
  return info.si_code == CLD_EXITED ? exit_status::exited(info.si_status) : exit_status::killed(info.si_status);
}

}  // namespace

std::int64_t reap(int pidfd, siginfo_t& info, int flags) noexcept {
  info = {};
  const auto result =
      outcome_of([&] { return ::waitid(by_pidfd, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | flags); });
  return result < 0 ? result : info.si_pid != 0 ? 1 : 0;
}

std::int64_t open_pidfd(int id) noexcept {
  return outcome_of([&] { return ::syscall(SYS_pidfd_open, id, 0); });
}

std::int64_t pidfd_refused() noexcept {
  const auto self = open_pidfd(::getpid());
  if (self < 0) return self == -EPERM || self == -EINVAL ? -ENOSYS : self;
  const unique_fd fd(static_cast<int>(self));
  siginfo_t info;
  return reap(fd.get(), info) == -ECHILD ? 0 : -ENOSYS;  // we are not our own child
}

std::unique_ptr<child> child::adopt(int id, std::error_code& ec) {
  struct guard {
    int id;
    ~guard() {
      // Reaped already, because the program lets the system reap its children: the id may be another process's.
      if (id == 0 || ::waitpid(id, nullptr, WNOHANG) != 0) return;
      (void)::kill(id, SIGKILL);
      (void)outcome_of([this] { return ::waitpid(id, nullptr, 0); });
    }
  } unless_taken{id};  // ends the child on every way out but the last
  const auto fd = open_pidfd(id);
  ec = error_of(fd);
  if (ec) return nullptr;
  auto pidfd = open_descriptor::adopt(static_cast<int>(fd));
  std::unique_ptr<child> taken(new child(id, std::move(pidfd)));
  unless_taken.id = 0;
  return taken;
}

child::~child() {
  unwatch(watch_number_);
  exit_status unused = exit_status::unknown();
  if (over_ || try_reap(unused) != 0) return;
  (void)kill(SIGKILL);
  wait_for_the_end();
}

void child::wait_for_the_end() noexcept {
  exit_status unused = exit_status::unknown();
  try {
    const shield until_it_has_ended;
    const auto result = wait(unused, {});
    if (result == 0 || result == -ECHILD) return;
  } catch (...) {
    // The wait could not be begun.
  }
  wait_by_this_thread();  // no other way to wait is left; a killed child ends soon
}

// Blocks the thread. By the pidfd: the process id may be another child's if somebody else has reaped this one.
void child::wait_by_this_thread() noexcept {
  exit_status unused = exit_status::unknown();
  for (;;) {
    (void)pidfd_->with_fd([](int fd) {
      pollfd ended{fd, POLLIN, 0};
      return ::poll(&ended, 1, -1);
    });
    if (try_reap(unused) != 0) return;
    std::this_thread::sleep_for(reap_retry);
  }
}

bool child::is_over() noexcept {
  const std::lock_guard hold(lock_);
  return over_;
}

std::int32_t child::try_reap(exit_status& status) noexcept {
  const std::lock_guard hold(lock_);
  if (over_) {
    if (status_) status = *status_;
    return status_ ? 1 : -ECHILD;
  }
  siginfo_t info;
  const int result = pidfd_->with_fd([&](int fd) { return static_cast<int>(reap(fd, info)); });
  if (result == 0) return 0;
  over_ = true;
  if (result < 0) return result;
  status = status_.emplace(status_from(info));
  return 1;
}

std::int32_t child::wait(exit_status& status, deadline until) {
  for (;;) {
    platform::io_operation op;
    op.code = is_over() ? platform::io_code::nothing : platform::io_code::ready;
    op.flags = POLLIN;
    const auto ready = pidfd_->perform(op, waits_for_child, until.when());
    if (ready < 0) return ready;
    const auto result = try_reap(status);
    if (result != 0) return result < 0 ? result : 0;
    if (now() >= until.when()) return -ETIMEDOUT;
    sleep_until(std::min(until.when(), now() + reap_retry));
  }
}

std::int32_t child::kill(int signal) noexcept {
  const std::lock_guard hold(lock_);
  if (over_) return -ESRCH;
  return call_on(pidfd_, [&](int fd) { return ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0); });
}

// Select ------------------------------------------------------------------------------------------------

void child::begin_watching() {
  const std::lock_guard hold(watch_lock_);
  if (watch_number_ == 0) watch_number_ = watch(pidfd_->number(), EPOLLIN, *this, "ramie: on_exit");
}

// A child that a debugger holds has not ended for us.
watched::then child::on_ready() noexcept {
  siginfo_t info;
  if (reap(pidfd_->number(), info, WNOWAIT) == 0) return then::ask_again;
  ended_.store(true, std::memory_order_release);  // pairs with the acquire in publish
  selects_.wake_all();
  return then::remove;
}

bool child::publish(waiter& node) noexcept {
  selects_.add(node);
  // Listed first: whoever sets it later finds the node.
  if (!ended_.load(std::memory_order_acquire)) return true;
  selects_.remove(node);
  return false;
}

bool child::try_take(exit_status& status) {
  const auto result = try_reap(status);
  throw_if(error_of(result), "ramie: on_exit");
  return result == 1;
}

ready_source exit_source(child* of, exit_status& status) noexcept {
  return of != nullptr ? ready_source{&watched_ready_ops<child>, of, &status, 0} : ready_source{};
}

void child::detach() {
  const std::lock_guard hold(lock_);
  if (over_) return;
  const int copy = call_on(pidfd_, [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); });
  throw_if(error_of(copy), "ramie: process::detach");
  reap_later(unique_fd(copy));
  over_ = true;
}

}  // namespace ramie::io_internal
