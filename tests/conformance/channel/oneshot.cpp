// SPDX-License-Identifier: BSL-1.0
// oneshot: one value, once.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/throwing_moves.hpp>
#include <support/starting_line.hpp>
#include <support/test.hpp>

namespace conformance_channel_oneshot {

using namespace std::chrono_literals;
using ramie::channel_status;
using ramie::make_oneshot;
using ramie::nursery;
using namespace test;

// Something is done while it is being moved, once.
class intercepted {
 public:
  static inline std::function<void()> in_a_move;
  explicit intercepted(int v) : value(std::make_unique<int>(v)) {}
  intercepted(intercepted&& other) noexcept : value(std::move(other.value)) {
    if (const auto act = std::exchange(in_a_move, nullptr)) act();
  }
  std::unique_ptr<int> value;
};
class reassignable : public intercepted {
 public:
  using intercepted::intercepted;
  reassignable(reassignable&&) noexcept = default;
  reassignable& operator=(reassignable&& other) noexcept {
    value = std::move(other.value);
    return *this;
  }
};

TEST_CASE("a oneshot carries one value", "[conformance][flavours][oneshot]") {
  as_thread_and_fiber([](findings& found) {
    auto [tx, rx] = make_oneshot<std::unique_ptr<int>>();
    EXPECT(found, tx.valid(), rx.valid(), !tx.is_closed());
    EXPECT(found, rx.try_recv().status() == channel_status::would_block);
    auto mine = std::make_unique<int>(5);
    EXPECT(found, tx.send(std::move(mine)), mine == nullptr);
    found.expect(!tx.valid());
    const auto got = rx.recv();
    EXPECT(found, got, **got == 5);
    EXPECT(found, !rx.recv(), rx.try_recv().status() == channel_status::closed);  // it was taken
    auto text = make_oneshot<std::string>();
    const std::string constant(100, 'c');
    EXPECT(found, text.tx.send(constant), constant.size() == 100);
    auto r = text.rx.try_recv();
    EXPECT(found, r, r->size() == 100, text.rx.recv_for(1h).status() == channel_status::closed);
  });
}

TEST_CASE("an end of a oneshot that goes is noticed by the other", "[conformance][flavours][oneshot]") {
  as_thread_and_fiber([](findings& found) {
    auto one = make_oneshot<int>();
    one.tx = {};
    EXPECT(found, !one.rx.recv(), one.rx.try_recv().status() == channel_status::closed);
    auto two = make_oneshot<std::unique_ptr<int>>();
    two.rx = {};
    auto mine = std::make_unique<int>(1);
    EXPECT(found, two.tx.is_closed(), !two.tx.send(std::move(mine)), mine != nullptr);
    found.expect(!two.tx.valid());  // it has let go either way
  });
  as_fiber([](findings& found, auto&) {
    auto one = make_oneshot<int>();
    nursery n;
    auto waits = n.spawn([&] { return one.rx.recv(); });
    ramie::yield();
    found.expect(!waits.done());
    one.tx = {};
    found.expect(!waits.get());
    n.join();
  });
}

TEST_CASE("a receiver that goes during the send: the value comes back", "[conformance][flavours][oneshot]") {
  const auto returned = [](auto element) {
    auto ends = make_oneshot<decltype(element)>();
    intercepted::in_a_move = [&] { ends.rx = {}; };  // after the sender has looked
    const bool sent = ends.tx.send(std::move(element));
    return !sent && element.value != nullptr && *element.value == 8 && !ends.tx.valid();
  };
  static_assert(!std::is_move_assignable_v<intercepted> && std::is_move_assignable_v<reassignable>);
  intercepted::in_a_move = nullptr;
  CHECK(returned(intercepted(8)));
  CHECK(returned(reassignable(8)));
}

TEST_CASE("a oneshot value is destroyed once, whatever becomes of the ends", "[conformance][flavours][oneshot]") {
  test::census all;
  as_thread_and_fiber([&](findings& found) {
    for (int order = 0; order < 6; ++order) {
      auto ends = make_oneshot<test::citizen>();
      if (order == 0) continue;  // never sent
      if (order == 1) ends.rx = {};
      test::citizen someone(all);
      const bool sent = ends.tx.send(std::move(someone));
      EXPECT(found, sent == (order != 1));
      if (order == 2) ends.rx = {};                              // sent, not received
      if (order == 3) found.expect(ends.rx.recv().has_value());  // received
      if (order == 4) (void)ends.rx.try_recv();
      if (order == 5) auto elsewhere = std::move(ends.rx);
    }
  });
  CHECK(all.made.load() == 10);
  CHECK(all.alive() == 0);
}

TEST_CASE("a oneshot with a deadline", "[conformance][flavours][oneshot][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    auto [tx, rx] = make_oneshot<int>();
    EXPECT(found, rx.recv_for(0s).status() == channel_status::timed_out);
    EXPECT(found, rx.recv_until(ramie::now() - 1s).status() == channel_status::timed_out);
    nursery n;
    auto late = n.spawn([&, &r = rx] { return r.recv_for(1s).status(); });
    ramie::yield();
    clock.advance(999ms);
    ramie::yield();
    found.expect(!late.done());
    clock.advance(1ms);
    EXPECT(found, late.get() == channel_status::timed_out);
    auto in_time = n.spawn([&, &r = rx] { return r.recv_for(1s).to_optional(); });
    ramie::yield();
    found.expect(tx.send(3));
    clock.advance(2s);  // it was there before, though nobody has run since
    EXPECT(found, in_time.get() == 3);
    n.join();
  });
}

TEST_CASE("a cancelled wait leaves the oneshot as it was", "[conformance][flavours][oneshot][cancel]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    auto ends = make_oneshot<int>();
    std::optional<int> got;
    for (const bool sent_meanwhile : {false, true}) {
      bool ended = true;
      nursery n;
      n.spawn([&] { ended = ramie::with_timeout(1s, [&] { got = ends.rx.recv(); }); });
      ramie::yield();
      clock.advance(1s);
      if (sent_meanwhile) found.expect(ends.tx.send(4));  // woken already, and has not run yet
      n.join();
      EXPECT(found, ended == got.has_value());
    }
    if (!got) got = ends.rx.recv();
    EXPECT(found, got == 4);
  });
}

TEST_CASE("a oneshot is one allocation", "[conformance][flavours][oneshot]") {
  if (test::sanitized) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  const auto at_first = test::allocations();
  auto ends = make_oneshot<std::array<int, 50>>();
  CHECK(test::allocations() == at_first + 1);
  ends.tx.send({});
  CHECK(ends.rx.recv().has_value());
  CHECK(test::allocations() == at_first + 1);
}

// However the ends meet, the receiver wakes, and its wait is over when it returns: the frame may be used again at once.
TEST_CASE("sender and receiver of a oneshot meet at any moment", "[conformance][flavours][oneshot]") {
  const int rounds = test::scaled(5'000, 500);
  for (const unsigned setup : {1u, 2u, 4u, 100u}) {
    findings found;
    auto o = with_workers(setup < 100 ? setup : 2);
    if (setup >= 100) o.chaos = ramie::chaos_mode{setup};
    ramie::run(o, [&] {
      for (int round = 0; round < rounds; ++round) {
        auto ends = make_oneshot<int>();
        nursery n;
        n.spawn([&, tx = std::move(ends.tx)]() mutable {
          for (int i = 0; i < round % 16; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
          if (round % 5 != 0 && !tx.send(round)) EXPECT(found, round % 7 == 0);
        });
        if (round % 7 != 0) EXPECT(found, ends.rx.recv() == (round % 5 != 0 ? std::optional(round) : std::nullopt));
        ends.rx = {};
        n.join();
      }
    });
    CHECK(found.wrong() == "");
  }
}

TEST_CASE("threads and fibers meet by oneshots", "[conformance][flavours][oneshot]") {
  findings found;
  ramie::channel<ramie::oneshot_receiver<int>> calls(0);
  std::thread outside([&] {
    int number = 0;
    for (auto& rx : calls) EXPECT(found, rx.recv() == number++);
  });
  ramie::run(with_workers(1), [&] {
    for (int round = 0; round < test::scaled(1'000, 100); ++round) {
      auto ends = make_oneshot<int>();
      calls.send(std::move(ends.rx));
      found.expect(ends.tx.send(round));
    }
  });
  calls.close();
  outside.join();
  CHECK(found.wrong() == "");
}

// The send comes at every moment of the wait: both start at once, after a wait without sleep.
TEST_CASE("a oneshot is sent while its receiver goes to sleep", "[conformance][flavours][oneshot]") {
  const int rounds = test::scaled(20'000, 2'000);
  findings found;
  ramie::oneshot_ends<int> ends;
  test::starting_line made, sent;
  std::thread outside([&] {
    for (int round = 1; round <= rounds; ++round) {
      made.meet();
      for (int i = 0; i < round % 1'024; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      found.expect(ends.tx.send(round));
      sent.meet();
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    ends = make_oneshot<int>();
    made.meet();
    EXPECT(found, ends.rx.recv() == round);
    sent.meet();
  }
  outside.join();
  CHECK(found.wrong() == "");
}

TEST_CASE("a oneshot whose value throws when it is moved", "[conformance][flavours][oneshot]") {
  as_thread_and_fiber([](findings& found) {
    auto ends = make_oneshot<throwing>();
    throwing mine(6);
    EXPECT(found, falls(1, [&] { ends.tx.send(std::move(mine)); }), mine.value() == 6);
    EXPECT(found, ends.tx.valid(), ends.rx.try_recv().status() == channel_status::would_block);
    found.expect(ends.tx.send(std::move(mine)));
    found.expect(falls(1, [&] { (void)ends.rx.recv(); }));
    found.expect(falls(1, [&] { (void)ends.rx.try_recv(); }));
    const auto got = ends.rx.recv();
    EXPECT(found, got, got->value() == 6);
  });
  as_thread_and_fiber([](findings& found) {  // one move on the way out, whichever way
    const auto arrives = [&](auto receive) {
      auto ends = make_oneshot<throwing>();
      found.expect(ends.tx.send(throwing(6)));
      int value = 0;
      EXPECT(found, !falls(2, [&] { value = receive(ends.rx)->value(); }), value == 6);
    };
    arrives([](auto& rx) { return rx.recv(); });
    arrives([](auto& rx) { return rx.try_recv(); });
    arrives([](auto& rx) { return rx.recv_for(1h); });
  });
}

}  // namespace conformance_channel_oneshot
