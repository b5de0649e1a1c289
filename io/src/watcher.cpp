// SPDX-License-Identifier: BSL-1.0
#include "watcher.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <thread>

#include "errors.hpp"
#include "system_call.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

constexpr std::chrono::milliseconds until_asked_again{10};
constexpr std::uint64_t bell_number = 0;

// What one thread watches. A thread that has been told to end is waited for without the lock; meanwhile a new one may
// have begun, with a set of its own.
struct watched_set {
  struct entry {
    int fd;
    watched* by;
  };
  unique_fd epoll;
  unique_fd bell;  // an eventfd in the same set: the thread is to end
  std::map<std::uint64_t, entry> entries;
  bool over = false;
  std::thread thread;
};

std::int64_t add_to(const watched_set& set, int fd, std::uint32_t events, std::uint64_t number) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return outcome_of([&] { return ::epoll_ctl(set.epoll.get(), EPOLL_CTL_ADD, fd, &event); });
}

// The lock covers all that is in a set but its epoll and its bell, which stay until its thread ends.
class watcher {
 public:
  std::uint64_t add(int fd, std::uint32_t events, watched& by, const char* what) {
    std::unique_lock hold(lock_);
    if (current_ == nullptr) current_ = begin(what);
    const std::uint64_t number = ++last_number_;
    try {
      current_->entries.emplace(number, watched_set::entry{fd, &by});
      throw_if(error_of(add_to(*current_, fd, events, number)), what);
    } catch (...) {
      current_->entries.erase(number);
      end_if_idle(hold);
      throw;
    }
    return number;
  }

  void remove(std::uint64_t number) noexcept {
    std::unique_lock hold(lock_);
    if (current_ == nullptr) return;
    take_out(*current_, number);
    end_if_idle(hold);
  }

 private:
  [[nodiscard]] std::shared_ptr<watched_set> begin(const char* what) {
    auto set = std::make_shared<watched_set>();
    const auto epoll = outcome_of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
    throw_if(error_of(epoll), what);
    set->epoll = unique_fd(static_cast<int>(epoll));
    const auto bell = outcome_of([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    throw_if(error_of(bell), what);
    set->bell = unique_fd(static_cast<int>(bell));
    throw_if(error_of(add_to(*set, set->bell.get(), EPOLLIN, bell_number)), what);
    start_thread(set, what);
    return set;
  }

  // The program's signals are not for it.
  void start_thread(const std::shared_ptr<watched_set>& set, const char* what) {
    sigset_t every, before;
    (void)::sigfillset(&every);
    (void)::pthread_sigmask(SIG_SETMASK, &every, &before);
    const struct restored {
      const sigset_t& mask;
      ~restored() { (void)::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } afterwards{before};
    try {
      set->thread = std::thread([this, set] { work(*set); });
    } catch (const std::system_error& e) {
      throw_if({e.code().value(), std::system_category()}, what);
    }
  }

  void work(watched_set& set) noexcept {
    for (bool more = true; more;) {
      epoll_event event{};
      const auto count = outcome_of([&] { return ::epoll_wait(set.epoll.get(), &event, 1, -1); });
      if (count == 1) more = tell(set, event.data.u64);
    }
  }

  // False: the thread is to end.
  [[nodiscard]] bool tell(watched_set& set, std::uint64_t number) noexcept {
    std::unique_lock hold(lock_);
    if (set.over) return false;
    const auto found = set.entries.find(number);
    if (found == set.entries.end()) return true;  // removed meanwhile
    watched& by = *found->second.by;
    switch (by.on_ready()) {
      case watched::then::keep: return true;
      case watched::then::ask_again:
        hold.unlock();
        std::this_thread::sleep_for(until_asked_again);
        return true;
      case watched::then::remove: break;
    }
    take_out(set, number);
    by.removed();
    if (!set.entries.empty()) return true;
    current_ = nullptr;  // nobody else ends this thread
    set.thread.detach();
    set.epoll = unique_fd();
    set.bell = unique_fd();
    return false;
  }

  // Closing alone would not take a descriptor out of the set while a child that is being started has a copy.
  static void take_out(watched_set& set, std::uint64_t number) noexcept {
    const auto found = set.entries.find(number);
    if (found == set.entries.end()) return;
    (void)::epoll_ctl(set.epoll.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    set.entries.erase(found);
  }

  void end_if_idle(std::unique_lock<std::mutex>& hold) noexcept {
    if (!current_->entries.empty()) return;
    const auto idle = std::move(current_);
    idle->over = true;
    hold.unlock();
    (void)!::eventfd_write(idle->bell.get(), 1);
    idle->thread.join();
  }

  std::mutex lock_;
  std::shared_ptr<watched_set> current_;  // null: there is no thread
  std::uint64_t last_number_ = bell_number;
};

watcher& only_watcher() {
  static watcher& only = *new watcher;  // its thread may outlive main
  return only;
}

}  // namespace

std::uint64_t watch(int fd, std::uint32_t events, watched& by, const char* what) {
  return only_watcher().add(fd, events, by, what);
}

void unwatch(std::uint64_t number) noexcept {
  if (number != 0) only_watcher().remove(number);
}

}  // namespace ramie::io_internal
