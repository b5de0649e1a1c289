// SPDX-License-Identifier: BSL-1.0
// Accepting when the machine has no descriptor to spare.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/net.hpp>

namespace {

// What the next calls of accept4 fail with; errno, first one last.
std::vector<int> planned;
std::mutex planning;

int next_planned() {
  std::lock_guard hold(planning);
  if (planned.empty()) return 0;
  const int error = planned.back();
  planned.pop_back();
  return error;
}

}  // namespace

// Takes the place of the C library's: loopback loses no connection, and the machine is not short of anything.
extern "C" int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  static const auto real = reinterpret_cast<decltype(&::accept4)>(::dlsym(RTLD_NEXT, "accept4"));
  if (const int error = next_planned()) {
    errno = error;
    return -1;
  }
  return real(fd, peer, size, flags);
}

namespace conformance_net_accepting {

using namespace std::chrono_literals;
using ramie::address;
using ramie::tcp_listener;
using ramie::tcp_stream;
using test::findings;

// What is used for the first time may need a descriptor itself: UndefinedBehaviorSanitizer looks at the objects of a class
// that is new to it through a pipe.
void use_once(tcp_listener& listener, ramie::manual_clock& clock) {
  ramie::nursery n;
  n.spawn([] { ramie::sleep_for(1ms); });
  n.spawn([&] { (void)listener.accept(); });
  ramie::testing::wait_all_blocked();
  (void)tcp_stream::connect(listener.local_address());
  clock.advance(1ms);
  n.join();
  ramie::nursery in_vain;
  in_vain.spawn([&] { (void)test::error_of([&] { (void)listener.accept(ramie::deadline(1ms)); }); });
  in_vain.spawn([&] { (void)listener.accept(); });
  ramie::testing::wait_all_blocked();
  clock.advance(1ms);
  in_vain.cancel();
  in_vain.join();
}

// f(found, clock, listener) with a connection that waits to be accepted, and time that stands still.
template <class F>
void with_a_guest(F f, bool (*suits)(ramie::io_choice) = test::any_io) {
  const auto with_listener = [&](findings& found, ramie::manual_clock& clock) {
    auto listener = tcp_listener::bind(address::ipv4_loopback(0));
    use_once(listener, clock);
    const auto guest = tcp_stream::connect(listener.local_address());
    f(found, clock, listener);
  };
  test::on_each_io_by_clock(with_listener, suits);
}

TEST_CASE("accept waits while there is no descriptor for another connection, and then goes on", "[conformance][net]") {
  with_a_guest([](findings& found, ramie::manual_clock& clock, tcp_listener& listener) {
    std::atomic<bool> accepted{false};
    test::no_descriptors none;
    ramie::nursery n;
    n.spawn([&] {
      const auto s = listener.accept();
      found.expect(s.is_open());
      accepted = true;
    });
    test::wait_all_asleep();
    clock.advance(1ms);  // tries in vain; the next time is 2 ms later
    test::wait_all_asleep();
    none.let_go();
    clock.advance(1ms);
    test::wait_all_asleep();
    found.expect(!accepted);
    clock.advance(1ms);
    n.join();
    found.expect(accepted);
  });
}

TEST_CASE("accept tries ten times a second at least, however long there is no descriptor", "[conformance][net]") {
  with_a_guest([](findings& found, ramie::manual_clock& clock, tcp_listener& listener) {
    std::atomic<bool> accepted{false};
    test::no_descriptors none;
    ramie::nursery n;
    n.spawn([&] {
      (void)listener.accept();
      accepted = true;
    });
    for (int i = 0; i < 20; ++i) {
      test::wait_all_asleep();
      clock.advance(100ms);
    }
    test::wait_all_asleep();
    none.let_go();
    clock.advance(99ms);
    test::wait_all_asleep();
    found.expect(!accepted);
    clock.advance(1ms);
    n.join();
  });
}

TEST_CASE("with an error_code, accept says at once that there is no descriptor", "[conformance][net]") {
  with_a_guest([](findings& found, ramie::manual_clock&, tcp_listener& listener) {
    std::error_code ec;
    {
      test::no_descriptors none;
      address peer;
      EXPECT(found, !listener.accept(ec).is_open(), ec == std::errc::too_many_files_open);
      EXPECT(found, !listener.accept(peer, ec).is_open(), ec == std::errc::too_many_files_open);
    }
    EXPECT(found, listener.accept(ec).is_open(), !ec);
  });
}

TEST_CASE("a deadline and a cancellation end an accept that waits for descriptors", "[conformance][net]") {
  with_a_guest([](findings& found, ramie::manual_clock& clock, tcp_listener& listener) {
    std::atomic<int> ended{0};
    test::no_descriptors none;
    ramie::nursery n;
    n.spawn([&] {
      const auto late = test::error_of([&] { (void)listener.accept(ramie::deadline(50ms)); });
      EXPECT(found, late == std::errc::timed_out);
      ++ended;
    });
    for (int i = 0; i < 49; ++i) {
      test::wait_all_asleep();
      EXPECT(found, ended == 0);
      clock.advance(1ms);
    }
    test::wait_all_asleep();
    clock.advance(1ms);
    n.join();
    EXPECT(found, ended == 1);
    ramie::nursery others;
    others.spawn([&] { test::count_cancelled(ended, [&] { (void)listener.accept(); }); });
    test::wait_all_asleep();
    others.cancel("enough");
    others.join();
    EXPECT(found, ended == 2);
  });
}

void plan(std::vector<int> errors) {
  std::lock_guard hold(planning);
  planned = std::move(errors);
}
std::size_t still_planned() {
  std::lock_guard hold(planning);
  return planned.size();
}

// Whether accept4 is what accepts.
bool calls_accept4(ramie::io_choice choice) {
  return choice != ramie::io_choice::io_uring;
}

TEST_CASE("a connection that is broken before it is accepted is passed over", "[conformance][net]") {
  const std::vector lost{ENONET, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN, ENOPROTOOPT, EPROTO, ECONNABORTED};
  const auto both = [&](findings& found, tcp_listener& listener) {
    for (const bool with_code : {false, true}) {
      const auto guest = tcp_stream::connect(listener.local_address());
      plan(lost);
      std::error_code ec;
      address peer;
      const auto s = with_code ? listener.accept(peer, ec) : listener.accept(peer);
      EXPECT(found, !ec, peer == guest.local_address(), still_planned() == 0);
    }
    const auto guest = tcp_stream::connect(listener.local_address());
    plan({EPERM});
    EXPECT(found, test::error_of([&] { (void)listener.accept(); }) == std::errc::operation_not_permitted);
  };
  test::with_each_io([&](ramie::options o) {
    if (!calls_accept4(o.io)) return;
    findings found;
    ramie::run(o, [&] {
      auto listener = tcp_listener::bind(address::ipv4_loopback(0));
      both(found, listener);
    });
    CHECK(found.wrong() == "");
  });
  findings found;  // a plain thread
  auto listener = tcp_listener::bind(address::ipv4_loopback(0));
  both(found, listener);
  CHECK(found.wrong() == "");
}

TEST_CASE("whatever the machine is short of, accept waits, and says so if it is asked to", "[conformance][net]") {
  with_a_guest(
      [](findings& found, ramie::manual_clock& clock, tcp_listener& listener) {
        const std::vector shortages{ENOMEM, ENOBUFS, ENFILE, EMFILE};
        for (const int one : shortages) {
          plan({one});
          std::error_code ec;
          EXPECT(found, !listener.accept(ec).is_open(), ec == std::error_code(one, std::system_category()));
        }
        plan(shortages);
        std::atomic<bool> accepted{false};
        ramie::nursery n;
        n.spawn([&] {
          (void)listener.accept();
          accepted = true;
        });
        for (std::size_t left = shortages.size(); left-- > 0;) {
          test::wait_all_asleep();
          EXPECT(found, still_planned() == left, !accepted);
          clock.advance(std::chrono::milliseconds(1 << (shortages.size() - left - 1)));
        }
        n.join();
        found.expect(accepted);
      },
      calls_accept4);
}

}  // namespace conformance_net_accepting
