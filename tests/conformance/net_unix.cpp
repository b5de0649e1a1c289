// SPDX-License-Identifier: BSL-1.0
// What only unix sockets have: names of this machine, and who is at the other end.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/net.hpp>

namespace conformance_net_unix {

using ramie::address;
using ramie::unix_datagram;
using ramie::unix_listener;
using ramie::unix_stream;
using test::bytes;
using test::findings;
using test::on_each_io;

std::string unique_name() {
  static std::atomic<int> count{0};
  return "ramie-test-" + std::to_string(::getpid()) + '-' + std::to_string(++count);
}

TEST_CASE("unix sockets listen at a path or at a name of their own", "[conformance][net]") {
  on_each_io([](findings& found) {
    const auto path = (std::filesystem::temp_directory_path() / unique_name()).string();
    const test::finally removed([&] { std::filesystem::remove(path); });
    for (const auto& where : {address::unix_path(path), address::unix_abstract(unique_name())}) {
      auto listener = unix_listener::bind(where);
      found.expect(listener.local_address() == where);
      std::error_code ec;
      found.expect(!unix_listener::bind(where, {}, ec).is_open() && ec == std::errc::address_in_use);
      ramie::nursery n;
      n.spawn([&] {
        auto s = listener.accept();
        found.expect(s.local_address() == where);
        test::echo(s);
      });
      auto s = unix_stream::connect(where, ec);
      found.expect(!ec && s.peer_address() == where);
      auto [in, out] = std::move(s).split();
      out.write_all(bytes("through a file, or not"));
      out.finish();
      found.expect(test::take_all(in) == "through a file, or not");
      n.join();
    }
    found.expect(std::filesystem::exists(path));
  });
}

TEST_CASE("a unix socket knows who is at the other end", "[conformance][net]") {
  const auto [left, right] = unix_stream::pair();
  for (const unix_stream* const s : {&left, &right}) {
    const auto who = s->peer_credentials();
    CHECK(who.process == ::getpid());
    CHECK(who.user == ::geteuid());
    CHECK(who.group == ::getegid());
  }
  CHECK(test::error_of([] { (void)unix_stream().peer_credentials(); }) == std::errc::bad_file_descriptor);
}

TEST_CASE("a unix socket without a name can send", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto to = unix_datagram::bind(address::unix_abstract(unique_name()));
    auto from = unix_datagram::unbound();
    from.send_to(bytes("anonymous"), to.local_address());
    std::string text(20, '\0');
    address sender = to.local_address();
    const auto got = to.receive_from(test::room(text), sender);
    found.expect(got.size == 9 && sender.path().empty());
    from.connect(to.local_address());
    from.send(bytes("again"));
    found.expect(to.receive(test::room(text)).size == 5);
  });
}

TEST_CASE("who connects to a unix socket whose backlog is full waits for room", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = unix_listener::bind(address::unix_abstract(unique_name()), {.backlog = 0});
    const auto first = unix_stream::connect(listener.local_address());
    std::error_code ec;
    const auto until = ramie::deadline::after(std::chrono::milliseconds(2));
    found.expect(!unix_stream::connect(listener.local_address(), ec, until).is_open());
    found.expect(ec == std::errc::timed_out);
    ramie::nursery n;
    n.spawn([&] { found.expect(unix_stream::connect(listener.local_address()).is_open()); });
    for (int i = 0; i < 2; ++i) (void)listener.accept();
    n.join();
  });
}

}  // namespace conformance_net_unix
