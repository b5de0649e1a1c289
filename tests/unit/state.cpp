// SPDX-License-Identifier: BSL-1.0
// The word, transition by transition: every row of the legality matrix, every outcome.
#include <signal.h>

#include <support/child.hpp>
#include <support/test.hpp>
#include <task/state.hpp>

namespace unit_state {

using namespace ramie::detail;

// fiber_word is not copyable: tests drive one in place.
struct driven {
  fiber_word w;
  explicit driven(lifecycle to, bool second_reference = false) {
    w.initialise(7);
    if (second_reference) w.retain();
    if (to == lifecycle::init) return;
    w.init_to_runnable();
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

TEST_CASE("the word has the seed's layout", "[unit][state]") {
  constexpr word_view w(std::uint64_t{3} << 40 | std::uint64_t{5} << 32 | std::uint64_t{2} << 16 | 0xabcd);
  STATIC_REQUIRE(w.refs() == 3);
  STATIC_REQUIRE(w.shield() == 5);
  STATIC_REQUIRE(w.state() == lifecycle::running);
  STATIC_REQUIRE(w.ticket() == 0xabcd);
  STATIC_REQUIRE(word_view::ref_one == std::uint64_t{1} << 40);
  STATIC_REQUIRE(word_view(0).with(word_view::notified).bits() == std::uint64_t{1} << 24);
  STATIC_REQUIRE(word_view(0).with_shield(1000).shield() == 255);
  STATIC_REQUIRE(word_view(0).with_shield(1000).refs() == 0);  // a deep shield never spills into ref_count
}

TEST_CASE("the four-state view is derived", "[unit][state]") {
  STATIC_REQUIRE(phase_of(lifecycle::init) == phase::idle);
  STATIC_REQUIRE(phase_of(lifecycle::parked) == phase::idle);
  STATIC_REQUIRE(phase_of(lifecycle::runnable) == phase::scheduled);
  STATIC_REQUIRE(phase_of(lifecycle::waking) == phase::scheduled);
  STATIC_REQUIRE(phase_of(lifecycle::running) == phase::running);
  STATIC_REQUIRE(phase_of(lifecycle::parking) == phase::running);
  STATIC_REQUIRE(phase_of(lifecycle::done) == phase::complete);
  STATIC_REQUIRE(phase_of(lifecycle::cancelled) == phase::complete);
}

TEST_CASE("the legal rows of the matrix", "[unit][state]") {
  for (const bool shared : {false, true}) {  // plain stores for a sole reference, RMWs else
    driven init(lifecycle::init, shared);
    init.w.init_to_runnable();
    CHECK(init.state() == lifecycle::runnable);
    init.w.runnable_to_running();
    CHECK(init.state() == lifecycle::running);
    init.w.running_to_runnable();  // yield
    CHECK(init.state() == lifecycle::runnable);
    init.w.runnable_to_running();
    init.w.running_to_parking(9);
    CHECK(init.state() == lifecycle::parking);
    CHECK(init.w.load().ticket() == 9);
    CHECK(init.w.parking_to_running() == unpark_result::running);  // publish failed
    init.w.running_to_parking(10);
    CHECK(init.w.commit_park() == commit_result::parked);
    CHECK(init.state() == lifecycle::parked);
    CHECK(init.w.claim(10) == claim_result::won);
    CHECK(init.state() == lifecycle::waking);
    CHECK(init.w.complete() == complete_result::must_enqueue);
    CHECK(init.state() == lifecycle::runnable);
    init.w.runnable_to_running();
    const auto end = init.w.finish(lifecycle::done);
    CHECK(init.state() == lifecycle::done);
    CHECK(end.last_reference != shared);
    CHECK(init.w.load().refs() == (shared ? 1u : 0u));
  }
}

TEST_CASE("a fiber ends cancelled", "[unit][state]") {
  driven d(lifecycle::running);
  CHECK(d.w.finish(lifecycle::cancelled).last_reference);
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
    CHECK(d.w.wake(7) == wake_result::ignored);
    CHECK(d.w.claim(7) == claim_result::lost);
    CHECK(d.w.load().bits() == before);
  }
}

TEST_CASE("references and interest", "[unit][state]") {
  driven d(lifecycle::running, true);
  CHECK(d.w.ask_to_join());
  CHECK(d.w.detach());
  CHECK(d.w.load().has(word_view::detached));
  const auto end = d.w.finish(lifecycle::done);
  CHECK(end.wake_joiners);
  CHECK_FALSE(end.last_reference);
  CHECK_FALSE(d.w.ask_to_join());  // too late: nobody will tell
  CHECK(d.w.release());
}

TEST_CASE("cancellation is effective only without a shield", "[unit][state]") {
  driven d(lifecycle::running);
  d.w.set_cancel_seen(true);
  CHECK(d.w.load().cancellation_effective());
  d.w.mirror_shield(1);
  CHECK_FALSE(d.w.load().cancellation_effective());
  d.w.mirror_shield(1000);
  CHECK(d.w.load().shield() == 255);
  CHECK(d.w.load().refs() == 1);
  d.w.mirror_shield(0);
  CHECK(d.w.load().cancellation_effective());
}

// Each MUST NOT and each missing row of the matrix ends the program, in release builds too.
TEST_CASE("illegal transitions are fatal", "[unit][state][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  using attempt = void (*)();
  const attempt attempts[] = {
      [] { driven(lifecycle::parked).w.runnable_to_running(); },
      [] { driven(lifecycle::parked).w.running_to_runnable(); },
      [] { driven(lifecycle::running).w.init_to_runnable(); },
      [] { driven(lifecycle::runnable).w.running_to_parking(9); },
      [] { (void)driven(lifecycle::running).w.commit_park(); },
      [] { (void)driven(lifecycle::parked).w.commit_park(); },
      [] { (void)driven(lifecycle::parked).w.parking_to_running(); },
      [] { (void)driven(lifecycle::parked).w.complete(); },  // without a claim
      [] { (void)driven(lifecycle::running).w.complete(); },
      [] { (void)driven(lifecycle::parked).w.finish(lifecycle::done); },
      [] { (void)driven(lifecycle::runnable).w.finish(lifecycle::cancelled); },
  };
  for (const auto illegal : attempts) {
    const auto end = test::in_child(illegal);
    CHECK(end.signal == SIGABRT);
    CHECK(end.errors.find("illegal fiber transition") != std::string::npos);
  }
}

}  // namespace unit_state
