// SPDX-License-Identifier: BSL-1.0
// Connections that are closed, cancelled or too late while somebody waits for them: TCP and unix alike.
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/net.hpp>

namespace conformance_net_cancelling {

using namespace std::chrono_literals;
using ramie::address;
using ramie::deadline;
using ramie::tcp_listener;
using ramie::tcp_stream;
using ramie::unix_stream;
using ramie::testing::wait_all_blocked;
using namespace test;

TEST_CASE("close ends what others wait for on that socket", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    ramie::nursery n;
    std::atomic<int> ended{0};
    const auto expect_end = [&](std::error_code ec) {
      EXPECT(found, ec == std::errc::bad_file_descriptor);
      ++ended;
    };
    for (int i = 0; i < 3; ++i) n.spawn([&] { expect_end(read_error(near)); });
    n.spawn([&] { expect_end(fill_buffers(near)); });
    wait_all_blocked();
    EXPECT(found, ended == 0);
    near.close();
    n.join();
    EXPECT(found, ended == 4, !near.is_open());
    (void)far;
  });
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] { EXPECT(found, error_of([&] { (void)listener.accept(); }) == std::errc::bad_file_descriptor); });
    }
    wait_all_blocked();
    listener.close();
    n.join();
  });
}

TEST_CASE("a fiber that is cancelled while it waits for a connection takes nothing from it", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    std::atomic<int> cancelled{0};
    const auto until_cancelled = [&](auto f) {
      test::count_cancelled(cancelled, f);
      found.expect(false);
    };
    {
      ramie::nursery n;
      std::string byte(1, '\0');
      n.spawn([&] { until_cancelled([&] { (void)near.read_some(room(byte)); }); });
      n.spawn([&] { until_cancelled([&] { far.read_exactly(room(byte)); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 2);
    near.write_all(bytes("a"));
    far.write_all(bytes("b"));
    EXPECT(found, test::take(far, 1) == "a", test::take(near, 1) == "b");
    near.write_all(bytes("first"));
    {
      ramie::nursery n;
      n.spawn([&] { until_cancelled([&] { (void)fill_buffers(near); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 3);
    EXPECT(found, test::take(far, 5) == "first");
  });
}

TEST_CASE("a fiber that is cancelled while it accepts or connects leaves nothing behind", "[conformance][net]") {
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    silent_host silent;
    std::atomic<int> cancelled{0}, connected{0};
    {
      ramie::nursery n;
      const auto until_cancelled = [&](auto f) {
        test::count_cancelled(cancelled, f);
        ++connected;
      };
      n.spawn([&] { until_cancelled([&] { (void)listener.accept(); }); });
      n.spawn([&] { until_cancelled([&] { (void)tcp_stream::connect(silent.where()); }); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 2, connected == 0);
    auto near = tcp_stream::connect(listener.local_address());
    auto far = listener.accept();
    near.write_all(bytes("still there"));
    EXPECT(found, test::take(far, 11) == "still there");
  });
}

TEST_CASE("every operation of a cancelled fiber throws, also one that need not wait", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    far.write_all(bytes("there"));
    int thrown = 0;
    std::string text(5, '\0');
    std::error_code ec;
    const auto expect_thrown = [&](auto f) { thrown += !ramie::with_timeout(0s, f); };
    expect_thrown([&] { (void)near.read_some(room(text)); });
    expect_thrown([&] { (void)near.read_some(room(text), ec); });
    expect_thrown([&] { (void)near.read_some(std::span<std::byte>(), ec); });
    expect_thrown([&] { (void)near.write_some(bytes("x")); });
    expect_thrown([&] { near.write_all(std::span<const std::byte>()); });
    EXPECT(found, thrown == 5);
    EXPECT(found, test::take(near, 5) == "there");
    near.close();
    std::decay_t<decltype(near)> never;
    for (auto* const s : {&near, &never}) {
      expect_thrown([&] { (void)s->read_some(room(text), ec); });
      expect_thrown([&] { (void)s->write_all(bytes("x"), ec); });
    }
    EXPECT(found, thrown == 9);
  });
  on_each_io([](findings& found) {
    int thrown = 0;
    std::error_code ec;
    std::string text(5, '\0');
    const auto expect_thrown = [&](auto f) { thrown += !ramie::with_timeout(0s, f); };
    tcp_listener no_listener;
    ramie::unix_datagram no_datagrams;
    const auto local = address::unix_abstract("ramie-nobody-listens-here");
    expect_thrown([&] { (void)no_listener.accept(ec); });
    expect_thrown([&] { (void)no_datagrams.receive(room(text), ec); });
    expect_thrown([&] { (void)no_datagrams.send_to(bytes("x"), local, ec); });
    expect_thrown([&] { (void)unix_stream::connect(local, ec); });
    // To none of which a connection can be begun.
    const std::vector nowhere{address::parse("224.0.0.1:1"), address::parse("224.0.0.1:2")};
    expect_thrown([&] { (void)ramie::connect(nowhere, ec); });
    expect_thrown([&] { (void)ramie::resolve(std::string_view("a\0b", 3), 80, ec); });
    EXPECT(found, thrown == 6);
  });
}

TEST_CASE("what comes too late is timed_out, and what is there counts although it is late", "[conformance][net]") {
  over_each_connection([](findings& found, auto& near, auto& far) {
    EXPECT(found, read_error(near, deadline(1ms)) == std::errc::timed_out);
    EXPECT(found, error_of([&] {
                    std::string text(1, '\0');
                    near.read_exactly(room(text), deadline(1ms));
                  }) == std::errc::timed_out);
    EXPECT(found, fill_buffers(near, deadline(5ms)) == std::errc::timed_out);
    if (test::io_is_faulty) return;  // what is there may not be at first
    far.write_all(bytes("ab"));
    std::string one(1, '\0');
    EXPECT(found, near.read_some(room(one)) == 1);
    EXPECT(found, near.read_some(room(one), deadline(ramie::now() - 1s)) == 1, one == "b");
  });
  on_each_io([](findings& found) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    std::error_code ec;
    EXPECT(found, !listener.accept(ec, deadline(1ms)).is_open(), ec == std::errc::timed_out);
    silent_host silent;
    found.expect(!tcp_stream::connect(silent.where(), ec, deadline(1ms)).is_open());
    EXPECT(found, ec == std::errc::timed_out);
    EXPECT(found,
           error_of([&] { (void)tcp_stream::connect(silent.where(), deadline(1ms)); }) == std::errc::timed_out);
  });
}

TEST_CASE("deadlines of sockets go by the runtime's clock", "[conformance][net][clock]") {
  test::on_each_io_by_clock([](findings& found, ramie::manual_clock& clock) {
    auto [near, far] = test::tcp_pair();
    std::atomic<bool> ended{false};
    ramie::nursery n;
    n.spawn([&, &in = near] {
      EXPECT(found, read_error(in, deadline(1h)) == std::errc::timed_out);
      ended = true;
    });
    wait_all_blocked();
    clock.advance(59min);
    wait_all_blocked();
    found.expect(!ended);
    clock.advance(1min);
    n.join();
  });
}

}  // namespace conformance_net_cancelling
