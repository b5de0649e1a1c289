// SPDX-License-Identifier: BSL-1.0
// The word, transition by transition: every row of the legality matrix, every outcome.
#include <signal.h>

#include <support/child.hpp>
#include <support/test.hpp>
#include "runtime/src/task/state.hpp"

namespace unit_state {

using namespace ramie::runtime_internal;
using test::dies_saying;

// fiber_word is not copyable: tests drive one in place.
struct driven {
  fiber_word w;
  explicit driven(lifecycle to) {
    if (to == lifecycle::init) return;
    w.init_to_runnable(7);
    if (to == lifecycle::runnable) return;
    w.runnable_to_running();
    if (to == lifecycle::running) return;
    w.running_to_parking(8);
    if (to == lifecycle::parking) return;
    if (to == lifecycle::waking) {
      (void)w.claim(8);
    }
    (void)w.commit_park();
  }
  [[nodiscard]] lifecycle state() const { return w.load().state(); }
};

TEST_CASE("the word has its documented layout", "[unit][state]") {
  constexpr word_view w(std::uint64_t{2} << 16 | 0xabcd);
  STATIC_REQUIRE(w.state() == lifecycle::running);
  STATIC_REQUIRE(w.ticket() == 0xabcd);
  STATIC_REQUIRE(w.is(lifecycle::running));
  STATIC_REQUIRE(word_view(lifecycle::running, 0xabcd).bits() == w.bits());
  STATIC_REQUIRE(word_view(0).with(word_view::notified).bits() == std::uint64_t{1} << 24);
  STATIC_REQUIRE(word_view(0).with(word_view::claimed).bits() == std::uint64_t{1} << 25);
  STATIC_REQUIRE_FALSE(w.with(word_view::claimed).is(lifecycle::running));
  CHECK(fiber_word().load().bits() == word_view(lifecycle::init, 0).bits());
}

TEST_CASE("the legal rows of the matrix", "[unit][state]") {
  driven d(lifecycle::init);
  CHECK(d.state() == lifecycle::init);
  d.w.init_to_runnable(7);
  CHECK(d.state() == lifecycle::runnable);
  d.w.runnable_to_running();
  CHECK(d.state() == lifecycle::running);
  d.w.running_to_runnable();  // yield
  CHECK(d.state() == lifecycle::runnable);
  d.w.runnable_to_running();
  d.w.running_to_parking(9);
  CHECK(d.state() == lifecycle::parking);
  CHECK(d.w.load().ticket() == 9);
  CHECK(d.w.parking_to_running() == unpark_result::running);  // publish failed
  d.w.running_to_parking(10);
  CHECK(d.w.commit_park() == commit_result::parked);
  CHECK(d.state() == lifecycle::parked);
  CHECK(d.w.claim(10) == claim_result::won);
  CHECK(d.state() == lifecycle::waking);
  CHECK(d.w.complete() == complete_result::must_enqueue);
  CHECK(d.state() == lifecycle::runnable);
  d.w.runnable_to_running();
  d.w.finish(lifecycle::done);
  CHECK(d.state() == lifecycle::done);
  d.w.init_to_runnable(11);  // the frame's next fiber
  CHECK(d.state() == lifecycle::runnable);
  CHECK(d.w.load().ticket() == 11);
  d.w.runnable_to_running();
  d.w.finish(lifecycle::done);
  d.w.init_to_running(12);  // lent by a join
  CHECK(d.state() == lifecycle::running);
  CHECK(d.w.load().ticket() == 12);
}

TEST_CASE("a fiber ends cancelled", "[unit][state]") {
  driven d(lifecycle::running);
  d.w.finish(lifecycle::cancelled);
  CHECK(d.state() == lifecycle::cancelled);
}

TEST_CASE("a wake while parking is kept for the commit", "[unit][state]") {
  driven d(lifecycle::parking);
  CHECK(d.w.wake(8) == wake_result::deferred);  // no enqueue: its stack is in use
  CHECK(d.state() == lifecycle::parking);
  CHECK(d.w.load().has(word_view::notified));
  CHECK(d.w.commit_park() == commit_result::must_enqueue);
  CHECK(d.state() == lifecycle::runnable);
  CHECK_FALSE(d.w.load().has(word_view::notified | word_view::claimed));
}

TEST_CASE("a wake while parking is seen before the switch", "[unit][state]") {
  driven d(lifecycle::parking);
  CHECK(d.w.wake(8) == wake_result::deferred);
  CHECK(d.w.parking_to_running() == unpark_result::woken);
  CHECK(d.state() == lifecycle::running);
}

TEST_CASE("a partner's claim while parking defers the run until it completes", "[unit][state]") {
  SECTION("commit first") {
    driven d(lifecycle::parking);
    CHECK(d.w.claim(8) == claim_result::won);
    CHECK(d.w.parking_to_running() == unpark_result::claimed);  // the element is being moved
    CHECK(d.w.commit_park() == commit_result::left_claimed);
    CHECK(d.state() == lifecycle::waking);  // not runnable: the transfer window
    CHECK(d.w.complete() == complete_result::must_enqueue);
  }
  SECTION("complete first") {
    driven d(lifecycle::parking);
    CHECK(d.w.claim(8) == claim_result::won);
    CHECK(d.w.complete() == complete_result::deferred);
    CHECK(d.w.commit_park() == commit_result::must_enqueue);
  }
}

TEST_CASE("one winner per wait", "[unit][state]") {
  for (const auto from : {lifecycle::parking, lifecycle::parked}) {
    driven d(from);
    CHECK(d.w.claim(8) == claim_result::won);
    CHECK(d.w.claim(8) == claim_result::lost);
    CHECK(d.w.wake(8) == wake_result::ignored);
  }
  driven d(lifecycle::parked);
  CHECK(d.w.wake(8) == wake_result::must_enqueue);
  CHECK(d.w.wake(8) == wake_result::ignored);
  CHECK(d.w.claim(8) == claim_result::lost);
}

TEST_CASE("a stale ticket claims nothing", "[unit][state]") {
  for (const auto from : {lifecycle::parking, lifecycle::parked}) {
    driven d(from);
    CHECK(d.w.claim(7) == claim_result::lost);
    CHECK(d.w.wake(7) == wake_result::ignored);
    CHECK(d.w.claim(8) == claim_result::won);
  }
}

TEST_CASE("wakes on anything but a wait change nothing", "[unit][state]") {
  for (const auto from : {lifecycle::init, lifecycle::runnable, lifecycle::running}) {
    driven d(from);
    const auto before = d.w.load().bits();
    const auto ticket = d.w.load().ticket();
    CHECK(d.w.wake(ticket) == wake_result::ignored);
    CHECK(d.w.claim(ticket) == claim_result::lost);
    CHECK(d.w.load().bits() == before);
  }
}

// Each MUST NOT and each missing row of the matrix ends the program, in release builds too.
TEST_CASE("illegal transitions are fatal", "[unit][state][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  using attempt = void (*)();
  const attempt attempts[] = {
      [] { driven(lifecycle::parked).w.runnable_to_running(); },
      [] { driven(lifecycle::parked).w.running_to_runnable(); },
      [] { driven(lifecycle::runnable).w.running_to_parking(9); },
      [] { (void)driven(lifecycle::running).w.commit_park(); },
      [] { (void)driven(lifecycle::parked).w.commit_park(); },
      [] { (void)driven(lifecycle::parked).w.parking_to_running(); },
      [] { (void)driven(lifecycle::parked).w.complete(); },  // without a claim
      [] { (void)driven(lifecycle::running).w.complete(); },
      [] { driven(lifecycle::parked).w.finish(lifecycle::done); },
      [] { driven(lifecycle::runnable).w.finish(lifecycle::cancelled); },
  };
  for (const auto illegal : attempts) {
    const auto end = test::in_child(illegal);
    CHECK(end.signal == SIGABRT);
    CHECK(end.errors.find("illegal fiber transition") != std::string::npos);
  }
}

TEST_CASE("builds with checks notice a spawn into a frame that holds a fiber", "[unit][state][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  test::dies_saying([] { driven(lifecycle::runnable).w.init_to_runnable(9); }, "RUNNABLE -> RUNNABLE");
  test::dies_saying([] { driven(lifecycle::running).w.init_to_runnable(9); }, "RUNNING -> RUNNABLE");
  test::dies_saying([] { driven(lifecycle::parked).w.init_to_runnable(9); }, "PARKED -> RUNNABLE");
}

}  // namespace unit_state
