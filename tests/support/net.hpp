// SPDX-License-Identifier: BSL-1.0
// For tests of sockets: every mechanism, several worker counts, and no descriptor left behind.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/cancelling.hpp>
#include <support/each_mechanism.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>
#include <support/io_faults.hpp>

#include "runtime/src/sched/scheduler.hpp"

namespace test {

// While it lives, or until it lets go, no descriptor can be had.
class no_descriptors {
 public:
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int probe = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    taken_.reserve(256);
    taken_.push_back(probe);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(probe) + 64;
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = 0; (fd = ::fcntl(probe, F_DUPFD_CLOEXEC, 0)) >= 0;) taken_.push_back(fd);
  }
  ~no_descriptors() {
    let_go();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;
  void let_go() {
    for (const int fd : taken_) ::close(fd);
    taken_.clear();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

// Transfers may be short, and what is ready may not be at first.
inline const bool io_is_faulty = plan_io_faults_of_environment();

// f(options) for every mechanism and worker count; it leaves as many descriptors open as it found.
template <class F>
void with_each_io(F f) {
  for (const auto choice : each_mechanism()) {
    for (const unsigned workers : {1u, 2u, 4u}) {
      INFO("mechanism " << static_cast<int>(choice) << ", workers " << workers);
      auto o = with_workers(workers);
      o.io = choice;
      const auto before = open_descriptors();
      f(o);
      CHECK(open_descriptors() == before);
    }
  }
}

// The same for f(found) as a fiber, with and without chaos.
template <class F>
void on_each_io(F f) {
  with_each_io([&](ramie::options o) {
    for (const bool chaos : {false, true}) {
      INFO("chaos " << chaos);
      if (chaos) o.chaos = ramie::chaos_mode{o.workers + 5};
      findings found;
      ramie::run(o, [&] { f(found); });
      CHECK(found.wrong() == "");
    }
  });
}

inline bool any_io(ramie::io_choice) {
  return true;
}

// The same for f(found, clock), without chaos: time passes only by the clock.
template <class F>
void on_each_io_by_clock(F f, bool (*suits)(ramie::io_choice) = any_io) {
  with_each_io([&](ramie::options o) {
    if (!suits(o.io)) return;
    ramie::manual_clock clock;
    o.clock = &clock;
    findings found;
    ramie::run(o, [&] { f(found, clock); });
    CHECK(found.wrong() == "");
  });
}

// Returns when all other fibers are blocked, and none of them by an operation.
inline void wait_all_asleep() {
  const auto& workers = ramie::runtime_internal::current_context().local->runs_in->pool.workers();
  const auto operates = [](const auto& w) { return w->io.under_way() != 0; };
  do {
    ramie::yield();
    ramie::testing::wait_all_blocked();
  } while (std::any_of(workers.begin(), workers.end(), operates));
  ramie::testing::wait_all_blocked();  // those whose operation has just ended
}

inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::span<std::byte> room(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

// What comes, until so much has come or the stream ends.
template <class Stream>
std::string take(Stream& from, std::size_t count) {
  std::string text(count, '\0');
  std::error_code ec;
  text.resize(from.read_exactly(room(text), ec));
  if (ec && ec != ramie::stream_errc::end_of_stream) throw std::system_error(ec, "take");
  return text;
}

// Until the stream ends.
template <class Stream>
std::string take_all(Stream& from, std::size_t at_once = 1024) {
  std::string all, part(at_once, '\0');
  while (const auto n = from.read_some(room(part))) all.append(part, 0, n);
  return all;
}

// Sends back what comes, until the stream ends.
template <class Stream>
void echo(Stream& with, std::size_t at_once = 1024) {
  std::string part(at_once, '\0');
  while (const auto n = with.read_some(room(part))) with.write_all(bytes(part).first(n));
}

// Two ends of a connection that was made by a listener, for fibers and threads.
inline std::pair<ramie::tcp_stream, ramie::tcp_stream> tcp_pair() {
  auto listener = ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0));
  auto near = ramie::tcp_stream::connect(listener.local_address());
  auto far = listener.accept();
  near.set_no_delay(true);
  far.set_no_delay(true);
  return {std::move(near), std::move(far)};
}

// f(found, near, far) as a fiber, with the ends of a TCP connection and of one of unix sockets.
template <class F>
void over_each_connection(F f) {
  on_each_io([&](findings& found) {
    auto [near, far] = tcp_pair();
    f(found, near, far);
    auto [left, right] = ramie::unix_stream::pair();
    f(found, left, right);
  });
}

// f(), in which the fiber is expected to be cancelled: counts it if it is, and passes it on.
template <class F>
void count_cancelled(std::atomic<int>& count, F f) {
  try {
    f();
  } catch (const ramie::cancelled&) {
    ++count;
    throw;
  }
}

// What a read of one byte ends with.
template <class Stream>
std::error_code read_error(Stream& from, ramie::deadline until = {}) {
  std::string byte(1, '\0');
  std::error_code ec;
  (void)from.read_some(room(byte), ec, until);
  return ec;
}

// Writes as much as the buffers hold, and then waits.
template <class Stream>
std::error_code fill_buffers(Stream& to, ramie::deadline until = {}) {
  const std::string much(1 << 20, 'x');
  std::error_code ec;
  for (int i = 0; i < 64 && !ec; ++i) (void)to.write_all(bytes(much), ec, until);
  return ec;
}

// Nobody answers there: the backlog is full. Somebody does once there is room, when TCP tries again.
struct silent_host {
  ramie::tcp_listener listener = ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0), {.backlog = 0});
  ramie::tcp_stream fills_it = ramie::tcp_stream::connect(listener.local_address());
  [[nodiscard]] ramie::address where() const { return listener.local_address(); }
};

// Nobody listens there, and as long as it lives nobody else can: the port is taken.
class refusing_host {
 public:
  refusing_host() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto any_port = ramie::address::ipv4_loopback(0);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::bind(fd_, static_cast<const sockaddr*>(any_port.data()), static_cast<socklen_t>(any_port.size())) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      throw std::system_error(errno, std::system_category(), "refusing_host");
    }
    where_ = ramie::address::from_native(&bound, size);
  }
  ~refusing_host() { (void)::close(fd_); }
  refusing_host(const refusing_host&) = delete;
  refusing_host& operator=(const refusing_host&) = delete;
  [[nodiscard]] const ramie::address& where() const { return where_; }

 private:
  const int fd_;
  ramie::address where_;
};

// Text that shows where a piece of it comes from.
inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

}  // namespace test
