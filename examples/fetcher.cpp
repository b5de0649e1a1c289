// SPDX-License-Identifier: BSL-1.0
// Fetches many documents by HTTP: so many at once, so many begun a second, each tried again if it fails.
//
//   fetcher [--rate N] [--parallel N] HOST PORT PATH …
//   fetcher --test       starts a server of its own, which fails now and then, and fetches from that
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <ramie/buffered.hpp>
#include <ramie/nursery.hpp>
#include <ramie/rate_limiter.hpp>
#include <ramie/resolve.hpp>
#include <ramie/retry.hpp>
#include <ramie/runtime.hpp>
#include <ramie/semaphore.hpp>
#include <ramie/stream.hpp>
#include <ramie/tcp.hpp>
#include <ramie/time.hpp>

namespace {

using namespace std::chrono_literals;

struct job {
  std::string host;
  std::uint16_t port = 0;
  std::uint64_t rate = 10;     // begun a second
  std::uint64_t parallel = 4;  // at once
  std::vector<std::string> paths{};
};

struct document {
  int status = 0;
  std::string content;
};

constexpr std::size_t largest = 16 * 1024 * 1024;

// One attempt. HTTP/1.0: the document ends with the connection.
document fetch(const job& j, const std::string& path) {
  const auto until = ramie::deadline(10s);
  auto stream = ramie::connect(j.host, j.port, until);
  stream.write_all(ramie::bytes_of("GET " + path + " HTTP/1.0\r\nHost: " + j.host + "\r\n\r\n"), until);
  ramie::buffered_reader from(stream);
  std::string line;
  document d;
  if (!from.read_line(line, 8192, until) || !line.starts_with("HTTP/1.") || line.size() < 12) {
    throw std::runtime_error("no answer in HTTP");
  }
  std::from_chars(line.data() + 9, line.data() + 12, d.status);
  while (from.read_line(line, 8192, until) && !line.empty()) {
  }
  ramie::read_to_end(from, d.content, largest, until);
  if (d.status >= 500) throw std::runtime_error("status " + std::to_string(d.status));
  return d;
}

struct tally {
  std::atomic<int> fetched{0}, failed{0};
  std::atomic<std::uint64_t> bytes{0};
};

void fetch_and_tell(const job& j, const std::string& path, ramie::rate_limiter& rate, tally& t) try {
  const ramie::retry_policy policy{.attempts = 4, .first_delay = 20ms};
  const document d = ramie::retry(policy, [&] {
    rate.acquire();
    return fetch(j, path);
  });
  t.fetched += 1;
  t.bytes += d.content.size();
  std::printf("%d %8zu %s\n", d.status, d.content.size(), path.c_str());
} catch (const std::exception& e) {
  t.failed += 1;
  std::printf("failed: %s: %s\n", path.c_str(), e.what());
}

void fetch_all(const job& j, tally& t) {
  ramie::rate_limiter rate(j.rate, std::max<std::uint64_t>(1, j.rate / 10));
  ramie::semaphore places(j.parallel);
  ramie::nursery n;
  for (const std::string& path : j.paths) {
    places.acquire();
    n.spawn([&] {
      fetch_and_tell(j, path, rate, t);
      places.release();
    });
  }
  n.join();
}

// What the test talks to: "/n" is n * n bytes, n below 100, and every third of them fails the first time.
struct small_server {
  ramie::tcp_listener listener = ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0));
  std::atomic<int> requests{0}, at_once{0}, most_at_once{0};
  std::array<std::atomic<bool>, 100> asked{};

  void answer(ramie::tcp_stream& peer) {
    const int now = ++at_once;
    for (int most = most_at_once; now > most && !most_at_once.compare_exchange_weak(most, now);) {
    }
    ramie::buffered_reader from(peer);
    std::string line, first;
    (void)from.read_line(first);
    while (from.read_line(line) && !line.empty()) {
    }
    ++requests;
    const std::size_t n = std::strtoul(first.c_str() + std::string_view("GET /").size(), nullptr, 10) % asked.size();
    const bool fails = !asked[n].exchange(true) && n % 3 == 0;
    ramie::sleep_for(2ms);
    --at_once;
    const std::string head = fails ? "HTTP/1.0 503 Not now\r\n\r\n" : "HTTP/1.0 200 OK\r\n\r\n";
    peer.write_all(ramie::bytes_of(head + std::string(fails ? 0 : n * n, 'x')));
  }
  void serve() {
    ramie::nursery n;
    for (;;) {
      n.spawn([this, peer = listener.accept()]() mutable { answer(peer); });
    }
  }
};

int test() {
  small_server server;
  ramie::nursery n;
  n.spawn([&] { server.serve(); });
  job j{.host = "127.0.0.1", .port = server.listener.local_address().port(), .rate = 200, .parallel = 8};
  std::uint64_t wanted = 0;
  for (unsigned i = 0; i < 100; ++i) {
    j.paths.push_back("/" + std::to_string(i));
    wanted += i * i;
  }
  tally t;
  const auto start = std::chrono::steady_clock::now();
  fetch_all(j, t);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  n.cancel();
  n.join();
  // 200 a second, of which a tenth of a second's may come at once.
  const double least = (server.requests - 20) / 200.0;
  std::printf("%d fetched, %llu bytes, %d requests in %.2f s, at most %d at once\n", t.fetched.load(),
              static_cast<unsigned long long>(t.bytes.load()), server.requests.load(), seconds,
              server.most_at_once.load());
  const bool all = t.fetched == 100 && t.failed == 0 && t.bytes == wanted;
  return all && seconds > 0.95 * least && server.most_at_once <= 8 && server.requests == 134 ? 0 : 1;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n == 0) throw std::runtime_error("not a number");
  return n;
}

int run(int argc, char** argv) {
  job j;
  int i = 1;
  for (; i + 1 < argc && std::string_view(argv[i]).starts_with("--"); i += 2) {
    (std::string_view(argv[i]) == "--rate" ? j.rate : j.parallel) = number(argv[i + 1]);
  }
  if (argc - i < 3) {
    std::fputs("fetcher [--rate N] [--parallel N] HOST PORT PATH …\n", stderr);
    return 2;
  }
  j.host = argv[i];
  j.port = static_cast<std::uint16_t>(number(argv[i + 1]));
  j.paths.assign(argv + i + 2, argv + argc);
  tally t;
  fetch_all(j, t);
  return t.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return ramie::run([&] { return argc == 2 && std::string_view(argv[1]) == "--test" ? test() : run(argc, argv); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "fetcher: %s\n", e.what());
  return 1;
}
