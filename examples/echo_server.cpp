// SPDX-License-Identifier: BSL-1.0
// Sends back what it is sent. A fiber for each connection, until SIGINT or SIGTERM.
//
//   echo_server [ADDRESS]     127.0.0.1:7777 unless one is given
//   echo_server --test        talks to itself for a moment
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <ramie/nursery.hpp>
#include <ramie/runtime.hpp>
#include <ramie/stream.hpp>
#include <ramie/tcp.hpp>

#include "serve_until_signal.hpp"

namespace {

void echo(ramie::tcp_stream& peer) try {
  peer.set_no_delay(true);
  std::array<std::byte, 16 * 1024> bytes;
  while (const std::size_t n = peer.read_some(bytes)) peer.write_all(std::span(bytes).first(n));
} catch (const std::system_error&) {
  // The peer is gone without shutting down. The other connections stay.
}

// Until it is cancelled, and with it all that it has begun.
void serve(ramie::tcp_listener& listener) {
  ramie::nursery connections;
  for (;;) {
    connections.spawn([peer = listener.accept()]() mutable { echo(peer); });
  }
}

// Whether `rounds` messages, each longer than the one before, come back as they were.
bool converses(const ramie::address& server, int rounds) {
  auto stream = ramie::tcp_stream::connect(server);
  for (int i = 1; i <= rounds; ++i) {
    const std::string message(static_cast<std::size_t>(i * i), static_cast<char>('a' + i % 26));
    std::string answer(message.size(), '\0');
    stream.write_all(ramie::bytes_of(message));
    stream.read_exactly(std::as_writable_bytes(std::span(answer)));
    if (answer != message) return false;
  }
  stream.shutdown(ramie::shutdown_part::write);
  std::byte none;
  return stream.read_some(std::span(&none, 1)) == 0;
}

int test() {
  auto listener = ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0));
  const ramie::address here = listener.local_address();
  ramie::nursery server;
  server.spawn([&] { serve(listener); });
  std::atomic<int> good = 0;
  ramie::with_nursery([&](ramie::nursery& clients) {
    for (int i = 0; i < 50; ++i) {
      clients.spawn([&] { good += converses(here, 100) ? 1 : 0; });
    }
  });
  server.cancel();
  server.join();
  std::printf("%d of 50 clients had their echo\n", good.load());
  return good.load() == 50 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const char* const where = argc > 1 ? argv[1] : "127.0.0.1:7777";
  return ramie::run(
      [&] { return where == std::string_view("--test") ? test() : serve_until_signal("echo", where, serve); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "echo_server: %s\n", e.what());
  return 1;
}
