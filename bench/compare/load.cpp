// SPDX-License-Identifier: BSL-1.0
// The load of the echo benchmarks, the same for every server: one thread, epoll, a closed loop. Each connection sends
// 64 bytes, waits until all of them are back, and sends again.
//
//   compare-load PORT CONNECTIONS WARMUP_MS MS
//
// prints "begin" when it is warm, then one line of JSON: requests a second, percentiles of their times in µs, and the
// part of the time that this thread was busy. With 0 ms it only holds the connections until its standard input is
// closed.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>

#include <compare/program.hpp>

namespace {

using namespace compare;

constexpr std::size_t message = 64;
constexpr int patience_ms = 5'000;

// Counts of times in ns. A bucket is a 64th of the power of two below: at most 1.6 % of the figure wide.
class histogram {
 public:
  void add(long ns) noexcept { ++counts_[bucket(static_cast<std::uint64_t>(ns))]; }
  [[nodiscard]] long total() const noexcept {
    long all = 0;
    for (const long c : counts_) all += c;
    return all;
  }
  // The middle of the bucket, in µs.
  [[nodiscard]] double at(double share) const noexcept {
    auto left = static_cast<long>(share * static_cast<double>(total()));
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      if ((left -= counts_[b]) < 0) return (low(b) + low(b + 1)) / 2e3;
    }
    return 0;
  }

 private:
  static constexpr unsigned bits = 6, side = 1u << bits;
  static std::size_t bucket(std::uint64_t v) noexcept {
    if (v < side) return static_cast<std::size_t>(v);
    const auto shift = static_cast<unsigned>(std::bit_width(v)) - bits - 1;
    return shift * side + static_cast<std::size_t>(v >> shift);
  }
  static double low(std::size_t b) noexcept {
    if (b < 2 * side) return static_cast<double>(b);
    return static_cast<double>((std::uint64_t{side} + b % side) << (b / side - 1));
  }
  std::array<long, (64 - bits + 1) * side> counts_{};
};

struct connection {
  int fd;
  std::uint32_t number;
  bool answered = false;   // ever
  long sent = 0;           // when
  std::size_t have = 0;    // bytes of the echo
  char out[message] = {};  // begins with a number that changes
  char in[message] = {};
};

class clients {
 public:
  clients(unsigned port, long connections) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) fail("no epoll");
    all_.reserve(static_cast<std::size_t>(connections));
    for (long i = 0; i < connections; ++i) add(port);
  }

  void begin() {
    for (connection& c : all_) request(c, now_ns());
  }

  // Goes on for that long, and until everybody has been answered; what is under way at the end counts for the next
  // time.
  void run(long ms, histogram& times) {
    const long start = now_ns(), end = start + ms * 1'000'000, too_late = end + patience_ms * 1'000'000l;
    epoll_event ready[1024];
    for (long now = start; now < end || never_answered_ != 0;) {
      const int count = ::epoll_wait(epoll_, ready, 1024, patience_ms);
      if (count <= 0 || now > too_late) fail("the server does not answer");
      for (int i = 0; i < count; ++i) now = answer(all_[ready[i].data.u32], times);
    }
  }

 private:
  void add(unsigned port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(static_cast<std::uint16_t>(port));
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
      fail(std::string("connecting: ") + std::strerror(errno));
    }
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.u32 = static_cast<std::uint32_t>(all_.size());
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) != 0) fail("epoll_ctl");
    all_.push_back({fd, e.data.u32});
    ++never_answered_;
  }

  void request(connection& c, long now) {
    c.number += static_cast<std::uint32_t>(all_.size());
    std::memcpy(c.out, &c.number, sizeof c.number);
    c.have = 0;
    c.sent = now;
    if (::send(c.fd, c.out, message, MSG_NOSIGNAL) != message) fail("a request did not go out");
  }

  // Returns the time.
  long answer(connection& c, histogram& times) {
    const ssize_t got = ::recv(c.fd, c.in + c.have, message - c.have, MSG_DONTWAIT);
    const long now = now_ns();
    if (got < 0 && errno == EAGAIN) return now;
    if (got <= 0) fail("the server closed a connection");
    c.have += static_cast<std::size_t>(got);
    if (c.have < message) return now;
    require(std::memcmp(c.in, c.out, message) == 0, "another echo");
    times.add(now - c.sent);
    if (!std::exchange(c.answered, true)) --never_answered_;
    request(c, now);
    return now;
  }

  int epoll_;
  std::vector<connection> all_;
  long never_answered_ = 0;
};

void say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

void measure(clients& all, long warmup_ms, long ms) {
  histogram cold, times;
  all.begin();
  all.run(warmup_ms, cold);
  say("begin");
  const double cpu = cpu_ms();
  const auto start = stopwatch::now();
  all.run(ms, times);
  const double seconds = std::chrono::duration<double>(stopwatch::now() - start).count();
  std::printf(R"({"requests": %ld, "rate": %.1f, "p50": %.2f, "p99": %.2f, "busy": %.3f})", times.total(),
              static_cast<double>(times.total()) / seconds, times.at(0.5), times.at(0.99),
              (cpu_ms() - cpu) / 1e3 / seconds);
  say("");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: compare-load PORT CONNECTIONS WARMUP_MS MS");
  const auto argument = [&](int i) { return std::strtol(argv[i], nullptr, 10); };
  clients all(static_cast<unsigned>(argument(1)), argument(2));
  if (argument(4) > 0) {
    measure(all, argument(3), argument(4));
  } else {
    say("begin");
    while (std::getchar() != EOF) {
    }
  }
}
