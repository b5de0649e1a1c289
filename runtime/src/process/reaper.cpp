// SPDX-License-Identifier: BSL-1.0
// Who reaps children that were detached: a thread that is there while there are any, and belongs to no runtime.
#include <sys/epoll.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "child.hpp"

namespace ramie::detail {

namespace {

class reaper {
 public:
  void take(unique_fd pidfd) {
    const std::lock_guard hold(lock_);
    if (count_ == 0) open();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = pidfd.get();
    const auto added = outcome_of([&] { return ::epoll_ctl(all_.get(), EPOLL_CTL_ADD, pidfd.get(), &event); });
    try {
      throw_if(error_of(added), "process::detach");
      if (count_ == 0) start();
    } catch (...) {
      if (added == 0) (void)::epoll_ctl(all_.get(), EPOLL_CTL_DEL, pidfd.get(), nullptr);
      if (count_ == 0) all_ = unique_fd();
      throw;
    }
    ++count_;
    (void)pidfd.release();
  }

 private:
  void open() {
    const auto fd = outcome_of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
    throw_if(error_of(fd), "process::detach");
    all_ = unique_fd(static_cast<int>(fd));
  }

  // The program's signals are not for it.
  void start() {
    sigset_t every, before;
    (void)::sigfillset(&every);
    (void)::pthread_sigmask(SIG_SETMASK, &every, &before);
    const struct restored {
      const sigset_t& mask;
      ~restored() { (void)::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } afterwards{before};
    std::thread([this] { work(); }).detach();
  }

  void work() noexcept {
    int all = 0;
    {
      const std::lock_guard hold(lock_);  // start() has returned
      all = all_.get();
    }
    for (bool more = true; more;) {
      epoll_event event{};
      if (outcome_of([&] { return ::epoll_wait(all, &event, 1, -1); }) == 1) more = bury(event.data.fd);
    }
  }

  // False: there are no others. One that a debugger has is not ours to reap yet: it stays, and so does its event.
  [[nodiscard]] bool bury(int fd) noexcept {
    siginfo_t info{};
    const auto reaped =
        outcome_of([&] { return ::waitid(static_cast<idtype_t>(3), static_cast<id_t>(fd), &info, WEXITED | WNOHANG); });
    if (reaped == 0 && info.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return true;
    }
    const std::lock_guard hold(lock_);
    (void)::epoll_ctl(all_.get(), EPOLL_CTL_DEL, fd, nullptr);
    (void)::close(fd);
    if (--count_ != 0) return true;
    all_ = unique_fd();
    return false;
  }

  std::mutex lock_;
  std::size_t count_ = 0;  // 0: no thread, or one that is about to end and touches nothing any more
  unique_fd all_;
};

}  // namespace

void reap_later(unique_fd pidfd) {
  static reaper& only = *new reaper;  // its thread may outlive main
  only.take(std::move(pidfd));
}

}  // namespace ramie::detail
