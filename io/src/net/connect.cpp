// SPDX-License-Identifier: BSL-1.0
// Connecting to one of several addresses (RFC 8305). The calling fiber or thread makes all attempts itself: their
// non-blocking descriptors are in an epoll set, and the caller waits for the set to be readable. So cancellation and
// deadlines work as for any descriptor, and the destructor of `attempts` closes everything.
//
// Rejected: a fiber for each attempt. A plain thread has no nursery to spawn them in, and the attempts that lost would
// have to be cancelled and waited for.
#include <ramie/resolve.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <ramie/cancel.hpp>
#include <ramie/error.hpp>

#include "net.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

constexpr std::chrono::milliseconds attempt_delay{250};  // RFC 8305: Connection Attempt Delay
const wait_reason waits_for_any{"connect to any of several addresses"};

class attempts {
 public:
  explicit attempts(std::size_t most) { under_way_.reserve(most); }
  ~attempts() {
    for (const int fd : under_way_) ::close(fd);
  }
  attempts(const attempts&) = delete;
  attempts& operator=(const attempts&) = delete;

  [[nodiscard]] std::int32_t open() {
    const int fd = outcome_of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
    if (fd >= 0) set_ = open_descriptor::adopt(fd);
    return std::min(fd, 0);
  }
  [[nodiscard]] bool empty() const noexcept { return under_way_.empty(); }
  // 0, or -errno if the attempt can't begin.
  [[nodiscard]] std::int32_t begin(const address& to) noexcept {
    const int fd =
        outcome_of([&] { return ::socket(native_family(to), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    if (fd < 0) return fd;
    under_way_.push_back(fd);
    int result = outcome_of([&] { return ::connect(fd, native(to), native_size(to)); });
    if (result == 0 || result == -EINPROGRESS || result == -EALREADY) {  // already: it was begun and interrupted
      epoll_event wanted{};
      wanted.events = EPOLLOUT;
      wanted.data.fd = fd;
      result = call_on(set_, [&](int set) { return ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted); });
    }
    if (result != 0) drop(fd);
    return result;
  }
  // Waits until an attempt has ended, successfully or not: its descriptor. Else -errno.
  [[nodiscard]] std::int32_t next_ended(deadline until) {
    platform::io_operation op;
    op.code = platform::io_code::ready;
    op.flags = POLLIN;
    const std::int32_t result = perform(set_, op, waits_for_any, until);
    if (result < 0) return result;
    epoll_event happened{};
    const int count = call_on(set_, [&](int set) { return ::epoll_wait(set, &happened, 1, 0); });
    return count == 1 ? happened.data.fd : -EAGAIN;
  }
  // 0: it is connected.
  [[nodiscard]] static std::int32_t verdict(int fd) noexcept {
    int error = 0;
    socklen_t size = sizeof error;
    const int result = outcome_of([&] { return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size); });
    return result != 0 ? result : -error;
  }
  // Removed from the set before it is closed: a child process that has not called exec yet may hold a copy, for which
  // the set would go on to report this number, although another descriptor may have it by then.
  void drop(int fd) noexcept {
    std::erase(under_way_, fd);
    (void)call_on(set_, [fd](int set) { return ::epoll_ctl(set, EPOLL_CTL_DEL, fd, nullptr); });
    ::close(fd);
  }
  // The destructor closes the others.
  [[nodiscard]] opened take(int fd) {
    std::erase(under_way_, fd);
    (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);  // the runtime sets it if it wants it
    return {open_descriptor::adopt(fd), 0};
  }

 private:
  descriptor_ref set_;
  std::vector<int> under_way_;
};

// There is no route to the address: a machine without IPv6 says so of half of a host's addresses.
bool is_unreachable(std::int32_t error) noexcept {
  return error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT;
}

// The state of one call.
class connect_race {
 public:
  connect_race(std::span<const address> candidates, deadline until)
      : rest_(candidates), until_(until), under_way_(candidates.size()) {}

  [[nodiscard]] opened run() {
    check_cancelled();  // also if nothing can be begun
    if (const std::int32_t error = under_way_.open(); error < 0) return {{}, error};
    for (;;) {
      while (!rest_.empty() && (under_way_.empty() || deadline(next_at_).expired())) begin_next();
      if (under_way_.empty()) return {{}, error_};
      const bool last = rest_.empty();
      const std::int32_t ended = under_way_.next_ended(last ? until_ : deadline(std::min(next_at_, until_.when())));
      if (ended == -EAGAIN || (ended == -ETIMEDOUT && !until_.expired())) continue;
      if (ended < 0) return {{}, ended};
      const std::int32_t error = attempts::verdict(ended);
      if (error == 0) return under_way_.take(ended);
      under_way_.drop(ended);
      failed(error);
    }
  }

 private:
  void begin_next() {
    const address& to = rest_.front();
    rest_ = rest_.subspan(1);
    next_at_ = time_after(attempt_delay);
    if (const std::int32_t error = under_way_.begin(to); error < 0) failed(error);
  }
  void failed(std::int32_t error) noexcept {
    if (!is_unreachable(error) || is_unreachable(error_) || error_ == 0) error_ = error;
    next_at_ = std::chrono::steady_clock::time_point::min();  // at once
  }

  std::span<const address> rest_;
  const deadline until_;
  attempts under_way_;
  std::chrono::steady_clock::time_point next_at_ = std::chrono::steady_clock::time_point::min();
  std::int32_t error_ = 0;  // of the last reachable address, else of the last one
};

opened connect_any(std::span<const address> candidates, deadline until) {
  if (candidates.empty()) throw usage_error("ramie: connect: there is no address to connect to. Pass at least one.");
  for (const address& a : candidates) expect_kind(socket_kind::internet, a, "ramie: connect");
  return candidates.size() == 1 ? open_connected(candidates.front(), until) : connect_race(candidates, until).run();
}

}  // namespace

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

tcp_stream connect(std::span<const address> candidates, deadline until) {
  return tcp_stream(io_internal::value_of(io_internal::connect_any(candidates, until), nullptr, "ramie: connect"));
}
tcp_stream connect(std::span<const address> candidates, std::error_code& ec, deadline until) {
  return tcp_stream(io_internal::value_of(io_internal::connect_any(candidates, until), &ec, "ramie: connect"));
}

}  // namespace ramie::inline v0
