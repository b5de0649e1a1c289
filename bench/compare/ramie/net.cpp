// SPDX-License-Identifier: BSL-1.0
// A fiber a connection.
#include <array>

#include <compare/ramie/ramie.hpp>
#include <compare/server.hpp>

namespace compare {

namespace {
void echo_all(ramie::tcp_stream& peer) {
  std::array<std::byte, 4096> data;
  std::error_code ec;
  while (const std::size_t got = peer.read_some(data, ec)) {
    if (ec) return;
    peer.write_all(std::span(data).first(got), ec);
    if (ec) return;
  }
}
}  // namespace

result echo(unsigned workers, const sizes&) {
  std::thread(serve_until_stdin_closes).detach();
  ramie::run(with(workers), [] {
    auto listener = ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0));
    announce(listener.local_address().port());
    ramie::nursery n;
    for (;;) {
      n.spawn([peer = listener.accept()]() mutable {
        peer.set_no_delay(true);
        echo_all(peer);
      });
    }
  });
  fail("the server ended");
}

}  // namespace compare
