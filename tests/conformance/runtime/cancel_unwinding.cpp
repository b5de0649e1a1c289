// SPDX-License-Identifier: BSL-1.0
// Cancellation of a fiber that unwinds with an exception: scopes opened in its destructors cancel what is inside them,
// scopes from before wait until it has unwound.
//
// A test whose fiber would wait for ever opens a door when time has passed and everybody is blocked: what was not
// cancelled then says so.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/each_mechanism.hpp>
#include <support/finally.hpp>
#include <support/findings.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_cancel_unwinding {

using namespace std::chrono_literals;
using ramie::cancelled;
using ramie::nursery;
using ramie::testing::wait_all_blocked;
using test::findings;
using test::with_workers;
using test::runtime_internal::gate;

// f() in a destructor, while an exception unwinds.
template <class F>
void while_unwinding(F f) {
  struct unwound {};
  try {
    const test::finally at_the_end(f);
    throw unwound();
  } catch (const unwound&) {
  }
}

// body(found, door) as a fiber of a runtime whose time is past an hour when everybody has come to rest, and then the
// door opens.
template <class Body>
void until_the_door_opens(Body body) {
  for (const unsigned workers : {1u, 2u}) {
    ramie::manual_clock clock;
    auto o = with_workers(workers);
    o.clock = &clock;
    findings found;
    test::reports reported;
    ramie::runtime rt(o);
    rt.run([&] {
      gate door;
      nursery n;
      n.spawn([&] { body(found, door); });
      wait_all_blocked();
      clock.advance(1h);
      wait_all_blocked();
      door.open();
      n.join();
    });
    INFO("workers " << workers);
    CHECK(found.wrong() == "");
    CHECK(reported.taken().empty());
    CHECK(rt.stats().total.cancel_redelivered == 0);
  }
}

TEST_CASE("a timeout inside a destructor fires while an exception unwinds", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    while_unwinding([&] {
      found.expect(!ramie::with_timeout(1s, [&] { test::wait_at(door); }));
      found.expect(!ramie::with_deadline(ramie::now(), [] { ramie::check_cancelled(); }));
      found.expect(!ramie::with_timeout(0s, [] { ramie::yield(); }));
      bool asked = false;
      found.expect(ramie::with_timeout(0s, [&] { asked = ramie::stop_requested(); }));
      found.expect(asked);
      found.expect(!ramie::stop_requested());
    });
  });
}

TEST_CASE("every wait inside a destructor can be timed out", "[conformance][cancel][unwinding]") {
  using wait = void (*)(gate&);
  for (const wait w : std::vector<wait>{
           [](gate&) { (void)ramie::channel<int>(0).recv(); },
           [](gate&) { (void)ramie::channel<int>(0).send(1); },
           [](gate&) { ramie::select(ramie::on_recv(ramie::channel<int>(0), [](std::optional<int>) {})); },
           [](gate&) { ramie::sleep_for(10h); },
           [](gate&) { ramie::semaphore(0).acquire(); },
           [](gate& door) {
             const ramie::shield nothing_from_outside;
             (void)ramie::with_timeout(1s, [&] { test::wait_at(door); });
             throw std::runtime_error("only the shielded part");
           },
           [](gate& door) {
             nursery n;
             n.spawn([&door] { test::wait_at(door); });
             n.join();  // its children are inside the timeout, too
           },
       }) {
    ramie::testing::virtual_clock clock;
    auto o = with_workers(1);
    o.clock = &clock;
    bool timed_out = false;
    ramie::run(o, [&] {
      gate never;
      while_unwinding([&] {
        try {
          timed_out = !ramie::with_timeout(1ms, [&] { w(never); });
        } catch (const std::runtime_error&) {
          timed_out = true;
        }
      });
    });
    CHECK(timed_out);
  }
}

TEST_CASE("a nursery inside a destructor is cut short by its child's failure", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    while_unwinding([&] {
      bool cut = false, failed = false;
      try {
        nursery n;
        n.spawn([] { throw std::runtime_error("broken"); });
        try {
          test::wait_at(door);
        } catch (const cancelled& c) {
          cut = n.owns(c) && c.cause() != nullptr;
        }
        n.join();
      } catch (const std::runtime_error&) {
        failed = true;
      }
      found.expect(cut);
      found.expect(failed);
      try {
        ramie::with_nursery([&](nursery& n) {
          n.spawn([] { throw std::runtime_error("broken"); });
          test::wait_at(door);
        });
        found.expect(false);
      } catch (const std::runtime_error&) {
      }
      ramie::with_nursery([&](nursery& n) {
        n.cancel_after(1s);
        n.spawn([&] { test::wait_at(door); });
        test::wait_at(door);
        found.expect(false);
      });
    });
  });
}

TEST_CASE("a join inside a destructor, and a shutdown, end in time", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    while_unwinding([&] {
      nursery n;
      n.spawn({.name = "stubborn"}, [&] { test::wait_at(door); });
      found.expect(!ramie::with_timeout(1s, [&] { n.join(); }));  // from within another scope
      EXPECT(found, n.shutdown(0s).stragglers == std::vector<std::string>{"stubborn"});
      n.join();
    });
  });
}

TEST_CASE("a scope from before waits until its fiber has unwound", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    std::vector<std::string> said;
    const bool in_time = ramie::with_timeout(1s, [&] {
      while_unwinding([&] {
        test::wait_at(door);  // the timeout comes meanwhile
        said.emplace_back(ramie::stop_requested() ? "asked to stop" : "went on");
        ramie::check_cancelled();
        // Both are cancelled, and only the inner one can be delivered here.
        found.expect(!ramie::with_timeout(0s, [] { ramie::yield(); }));
        said.emplace_back("inner one delivered");
        {
          const ramie::shield shielded;
          found.expect(!ramie::with_timeout(0s, [] { ramie::yield(); }));
        }
      });
      said.emplace_back("unwound");
      ramie::yield();
      said.emplace_back("not reached");
    });
    found.expect(!in_time);
    EXPECT(found, said == (std::vector<std::string>{"went on", "inner one delivered", "unwound"}));
  });
}

TEST_CASE("a join is not cut by a scope from before its fiber unwound", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    nursery n;
    n.spawn([&] { test::wait_at(door); });
    bool joined = false;
    (void)ramie::with_timeout(1s, [&] {
      while_unwinding([&] {
        n.join();  // a second exception would end the program
        joined = true;
      });
    });
    found.expect(joined);
  });
}

TEST_CASE("each level of unwinding has its own scopes", "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    while_unwinding([&] {
      bool inner = true, went_on = false;
      const bool outer = ramie::with_timeout(1s, [&] {
        while_unwinding([&] {
          inner = ramie::with_timeout(2s, [&] { test::wait_at(door); });
          ramie::yield();
          went_on = true;
        });
        test::wait_at(door);
      });
      found.expect(!inner);
      found.expect(went_on);
      found.expect(!outer);
    });
  });
}

// The nursery was opened with one exception in flight, but not one of the child's.
TEST_CASE("a child of a nursery opened in a destructor is not interrupted while it unwinds",
          "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    while_unwinding([&] {
      std::atomic<int> cleaned{0};
      gate never;
      nursery n;
      n.cancel_after(1s);
      for (int i = 0; i < 2; ++i) {
        n.spawn([&] {
          const test::finally at_the_end([&] {
            test::wait_at(door);
            ++cleaned;
          });
          test::wait_at(never);
        });
        if (i == 0) ramie::yield();  // the other one starts above the join, on one worker
      }
      n.join();
      EXPECT(found, cleaned == 2);
    });
  });
}

// As its owner: else the owner would wait for ever for what a child was to do.
TEST_CASE("children of a nursery opened in a destructor are not reached by a scope from before",
          "[conformance][cancel][unwinding]") {
  until_the_door_opens([](findings& found, gate& door) {
    std::vector<std::string> said;
    std::optional<int> answer;
    const bool in_time = ramie::with_timeout(1s, [&] {
      while_unwinding([&] {
        ramie::channel<int> results(0);
        nursery n;
        const std::stop_token stop = n.get_stop_token();
        n.spawn([&] {
          test::wait_at(door);  // the timeout comes meanwhile
          nursery inner;
          inner.spawn([&] { (void)results.send(1); });
          inner.join();
        });
        answer = results.recv();
        n.spawn([&] { said.emplace_back("a child that starts later"); });
        n.join();
        found.expect(!stop.stop_requested());
      });
      said.emplace_back("unwound");
      ramie::yield();
      said.emplace_back("not reached");
    });
    found.expect(!in_time);
    EXPECT(found, answer == 1);
    EXPECT(found, said == (std::vector<std::string>{"a child that starts later", "unwound"}));
  });
}

// Input and output, where a fiber is told and ends its operation first.

using ramie::runtime_internal::descriptor_ref;
using ramie::runtime_internal::open_descriptor;

std::array<descriptor_ref, 2> make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::bad_alloc();
  return {open_descriptor::adopt(ends[0]), open_descriptor::adopt(ends[1])};
}
std::int32_t receive(const descriptor_ref& from) {
  static const ramie::runtime_internal::wait_reason why{"test of unwinding"};
  char text[8];
  ramie::platform::io_operation op;
  op.code = ramie::platform::io_code::receive;
  op.memory = text;
  op.count = sizeof text;
  return from->perform(op, why, open_descriptor::never);
}
void send(const descriptor_ref& to) {
  (void)to->with_fd([](int fd) { return static_cast<int>(::send(fd, "data", 4, 0)); });
}

TEST_CASE("input while unwinding is not ended by a scope from before", "[conformance][io][unwinding]") {
  test::with_each_mechanism([](findings& found) {
    auto ends = make_pair();
    std::int32_t got = 0;
    bool told_later = false;
    nursery others;
    others.spawn([&] {
      nursery n;
      n.spawn([&] {
        while_unwinding([&] {
          n.cancel();
          got = receive(ends[0]);
        });
        try {
          ramie::yield();
        } catch (const cancelled&) {
          told_later = true;
          throw;
        }
      });
      n.join();
    });
    wait_all_blocked();  // an operation that is ended and begun again never rests
    send(ends[1]);
    others.join();
    EXPECT(found, got == 4);
    found.expect(told_later);
  });
}

TEST_CASE("input inside a destructor is ended by a scope that was opened there", "[conformance][io][unwinding]") {
  for (const auto which : test::each_mechanism()) {
    for (const unsigned workers : {1u, 2u}) {
      ramie::manual_clock clock;
      auto o = with_workers(workers);
      o.io = which;
      o.clock = &clock;
      std::atomic<bool> timed_out{false};
      std::int32_t after = 0;
      ramie::run(o, [&] {
        auto ends = make_pair();
        nursery n;
        n.spawn([&] {
          while_unwinding([&] {
            timed_out.store(!ramie::with_timeout(1s, [&] { (void)receive(ends[0]); }));
            after = receive(ends[0]);
          });
        });
        wait_all_blocked();
        clock.advance(2s);
        while (!timed_out.load()) ramie::yield();
        send(ends[1]);
        n.join();
      });
      INFO("mechanism " << static_cast<int>(which) << " workers " << workers);
      CHECK(after == 4);
    }
  }
}

}  // namespace conformance_cancel_unwinding
