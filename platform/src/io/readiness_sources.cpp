// SPDX-License-Identifier: BSL-1.0
// epoll and poll as sources of readiness. Both also watch an eventfd (the bell), by which a sleep is interrupted.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/platform/atomic.hpp>

#include "io_mechanisms.hpp"
#include "readiness.hpp"

namespace ramie::platform {

namespace {

// Readable from ring() until clear().
class bell {
 public:
  bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "ramie: eventfd") {}
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  void ring() const noexcept { (void)!::eventfd_write(fd_.get(), 1); }  // fails only if it is readable already
  void clear() const noexcept {
    eventfd_t count = 0;
    (void)!::eventfd_read(fd_.get(), &count);
  }

 private:
  const unique_fd fd_;
};

// Only a call that sleeps clears the bell: one that merely polls must not take it from a sleeper.
bool sleeps(time_point until) noexcept {
  return until != time_point::min();
}

// Null: no timeout.
const timespec* span_until(time_point until, timespec& room) noexcept {
  if (until == io_backend::never) return nullptr;
  const auto [seconds, nanoseconds] = time_left(until);
  room = {seconds, nanoseconds};
  return &room;
}

int whole_milliseconds(const timespec* span) noexcept {
  if (span == nullptr) return -1;
  constexpr long longest = 24L * 3600 * 1000;
  return static_cast<int>(std::min(span->tv_sec, longest / 1000) * 1000 + (span->tv_nsec + 999'999) / 1'000'000);
}

class epoll_source final : public readiness_source {
 public:
  epoll_source() : fd_(::epoll_create1(EPOLL_CLOEXEC), "ramie: epoll_create1") {
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = bell_.fd();
    if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, bell_.fd(), &e) != 0) {
      throw std::system_error(errno, std::system_category(), "ramie: epoll_ctl");
    }
  }

  [[nodiscard]] io_mechanism mechanism() const noexcept override { return io_mechanism::epoll; }

  [[nodiscard]] int arm(std::int32_t fd, std::uint32_t events) noexcept override {
    epoll_event e{};
    e.events = events | EPOLLONESHOT;  // POLLIN … are EPOLLIN …
    e.data.fd = fd;
    if (::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, fd, &e) == 0) return 0;
    if (errno == ENOENT && (events == 0 || ::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &e) == 0)) return 0;
    return errno == EPERM ? EOPNOTSUPP : errno;  // a regular file
  }

  [[nodiscard]] std::size_t collect(std::span<event> out, time_point until) noexcept override {
    epoll_event found[most];
    timespec room;
    const int count = wait(found, static_cast<int>(std::min(out.size(), most)), span_until(until, room));
    std::size_t told = 0;
    for (int i = 0; i < count; ++i) {
      if (found[i].data.fd == bell_.fd()) {
        if (sleeps(until)) bell_.clear();
      } else {
        out[told++] = {found[i].data.fd, found[i].events};
      }
    }
    return told;
  }

  void interrupt() noexcept override { bell_.ring(); }

 private:
  static constexpr std::size_t most = 64;  // few: collect() runs on the stack of a fiber that has just parked

  [[nodiscard]] int wait(epoll_event* found, int room, const timespec* span) noexcept {
#if defined(SYS_epoll_pwait2)
    if (exact_.load(std::memory_order_relaxed)) {
      const long count = ::syscall(SYS_epoll_pwait2, fd_.get(), found, room, span, nullptr, 0);
      if (count >= 0 || errno != ENOSYS) return static_cast<int>(count);
      exact_.store(false, std::memory_order_relaxed);
    }
#endif
    return ::epoll_wait(fd_.get(), found, room, whole_milliseconds(span));
  }

  const unique_fd fd_;
  const bell bell_;
  atomic<bool> exact_{true};
};

// The list of watched descriptors is copied before each sleep; arming another one interrupts the sleep.
class poll_source final : public readiness_source {
 public:
  [[nodiscard]] io_mechanism mechanism() const noexcept override { return io_mechanism::poll; }

  [[nodiscard]] int arm(std::int32_t fd, std::uint32_t events) noexcept override {
    std::lock_guard hold(mutex_);
    const auto at = std::ranges::find(armed_, fd, &pollfd::fd);
    if (at != armed_.end()) {
      at->events = static_cast<short>(events);
    } else if (events != 0) {
      try {
        armed_.push_back({fd, static_cast<short>(events), 0});
      } catch (const std::bad_alloc&) {
        return ENOMEM;
      }
    }
    if (asleep_ != 0 && events != 0) bell_.ring();
    return 0;
  }

  [[nodiscard]] std::size_t collect(std::span<event> out, time_point until) noexcept override {
    std::vector<pollfd> watched;
    {
      std::lock_guard hold(mutex_);
      std::erase_if(armed_, [](const pollfd& p) { return p.events == 0; });
      try {
        watched.reserve(armed_.size() + 1);
      } catch (const std::bad_alloc&) {
        return 0;  // nothing is lost: they stay armed
      }
      watched.push_back({bell_.fd(), POLLIN, 0});
      watched.insert(watched.end(), armed_.begin(), armed_.end());
      ++asleep_;
    }
    timespec room;
    const int count = ::ppoll(watched.data(), watched.size(), span_until(until, room), nullptr);
    std::lock_guard hold(mutex_);
    --asleep_;
    if (count <= 0) return 0;
    if (watched[0].revents != 0 && sleeps(until)) bell_.clear();
    std::size_t told = 0;
    for (std::size_t i = 1; i < watched.size() && told < out.size(); ++i) {
      if (watched[i].revents != 0 && disarm(watched[i].fd)) {
        out[told++] = {watched[i].fd, static_cast<std::uint32_t>(watched[i].revents)};
      }
    }
    return told;
  }

  void interrupt() noexcept override { bell_.ring(); }

 private:
  // False: another thread has collected it meanwhile.
  [[nodiscard]] bool disarm(std::int32_t fd) noexcept {
    const auto at = std::ranges::find(armed_, fd, &pollfd::fd);
    return at != armed_.end() && std::exchange(at->events, short{0}) != 0;
  }

  const bell bell_;
  mutex mutex_;
  std::vector<pollfd> armed_;
  unsigned asleep_ = 0;
};

}  // namespace

std::unique_ptr<io_backend> make_epoll_backend() {
  return std::make_unique<readiness_backend>(std::make_unique<epoll_source>());
}

std::unique_ptr<io_backend> make_poll_backend() {
  return std::make_unique<readiness_backend>(std::make_unique<poll_source>());
}

}  // namespace ramie::platform
