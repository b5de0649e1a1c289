// SPDX-License-Identifier: BSL-1.0
// Every wait of locks and events takes a deadline: a time, a duration, or one that several waits share.
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_deadlines {

using namespace std::chrono_literals;
using ramie::barrier_status;
using ramie::deadline;
using ramie::nursery;
using namespace test;

// Of everything one that makes others wait. Made where it is used: locks are unlocked by whoever locked them.
struct busy {
  ramie::mutex m, of_condition;
  ramie::shared_mutex shared;
  ramie::semaphore permits{0};
  ramie::event go;
  ramie::latch gate{1};
  ramie::notify bell;
  ramie::barrier meeting{2};
  ramie::condition_variable changed;
  bool has_changed = false;

  busy() {
    m.lock();
    shared.lock();
  }
  ~busy() {
    m.unlock();
    shared.unlock();
  }
  // A wait for each of them, which is in vain.
  template <class Until>
  [[nodiscard]] std::vector<std::function<bool(Until)>> waits() {
    return {
        [this](Until until) { return m.try_lock_until(until); },
        [this](Until until) { return shared.try_lock_until(until); },
        [this](Until until) { return shared.try_lock_shared_until(until); },
        [this](Until until) { return permits.try_acquire_until(until, 2); },
        [this](Until until) { return go.wait_until(until); },
        [this](Until until) { return gate.wait_until(until); },
        [this](Until until) { return bell.wait_until(until); },
        [this](Until until) { return meeting.wait_until(until) != barrier_status::timed_out; },
        [this](Until until) {
          std::unique_lock lock(of_condition);
          return changed.wait_until(lock, until) == std::cv_status::no_timeout;
        },
        [this](Until until) {
          std::unique_lock lock(of_condition);
          return changed.wait_until(lock, until, [this] { return has_changed; });
        },
    };
  }
};

TEST_CASE("every wait for a lock or event ends at its deadline, a time or a duration",
          "[conformance][sync][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    busy all;
    const auto in_vain = [&](auto wait, auto until) {
      fate how = fate::running;
      nursery n;
      let_wait(n, how, [&] { return wait(until); });
      clock.advance(999ms);
      ramie::yield();
      const bool early = how != fate::running;
      clock.advance(2ms);
      n.join();
      EXPECT(found, !early, how == fate::failed);
    };
    for (const auto& wait : all.waits<deadline>()) {
      in_vain(wait, deadline(1s));
      in_vain(wait, ramie::now() + 1s);
    }
    for (const auto& wait : all.waits<std::chrono::milliseconds>()) in_vain(wait, 1000ms);
  });
}

TEST_CASE("a deadline that has passed still lets a wait ask once", "[conformance][sync][deadline]") {
  as_thread_and_fiber([](findings& found) {
    const deadline over = 0s;
    {
      busy all;
      for (const auto& wait : all.waits<deadline>()) EXPECT(found, !wait(over));
    }
    ramie::mutex m;
    ramie::semaphore permits(1);
    ramie::barrier alone(1);
    ramie::once_flag flag;
    ramie::once_cell<int> cell;
    EXPECT(found, m.try_lock_until(over), permits.try_acquire_until(over), alone.wait_until(over) == barrier_status::leads);
    EXPECT(found, call_once_until(flag, over, [] {}), *cell.get_or_init_until(over, [] { return 7; }) == 7);
    m.unlock();
  });
}

TEST_CASE("a party that is too late has not come", "[conformance][sync][barrier][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    ramie::barrier b(2);
    auto late = barrier_status::passed, last = barrier_status::timed_out;
    nursery n;
    n.spawn([&] { late = b.wait_for(1s); });
    ramie::yield();
    clock.advance(2s);
    n.spawn([&] { last = b.wait_until(1h); });
    ramie::yield();
    EXPECT(found, late == barrier_status::timed_out, b.generation() == 0);
    EXPECT(found, b.wait_until({}) == barrier_status::leads);
    n.join();
    EXPECT(found, last == barrier_status::passed, b.generation() == 1);
  });
}

TEST_CASE("a call that another one keeps waiting gives up in time", "[conformance][sync][once][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    ramie::once_flag flag;
    ramie::once_cell<int> cell;
    ramie::event go;
    bool called = false;
    fate called_late = fate::running, made_late = fate::running;
    nursery n;
    n.spawn([&] { call_once(flag, [&] { go.wait(); }); });
    n.spawn([&] { (void)cell.get_or_init([&] { return go.wait(), 1; }); });
    ramie::yield();
    let_wait(n, called_late, [&] { return call_once_until(flag, 1s, [&] { called = true; }); });
    let_wait(n, made_late, [&] { return cell.get_or_init_until(1s, [&] { return called = true, 2; }) != nullptr; });
    clock.advance(2s);
    ramie::yield();
    EXPECT(found, called_late == fate::failed, made_late == fate::failed, !called);
    go.set();
    n.join();
    EXPECT(found, *cell.get_or_init_until(0s, [] { return 2; }) == 1, call_once_until(flag, 0s, [&] { called = true; }), !called);
  });
}

TEST_CASE("a call that another one keeps waiting gives up after a duration", "[conformance][sync][once][deadline]") {
  as_fiber([](findings& found, ramie::manual_clock& clock) {
    ramie::once_flag flag;
    ramie::once_cell<int> cell;
    ramie::event go;
    fate called_late = fate::running, made_late = fate::running;
    nursery n;
    n.spawn([&] { call_once(flag, [&] { go.wait(); }); });
    n.spawn([&] { (void)cell.get_or_init([&] { return go.wait(), 1; }); });
    ramie::yield();
    let_wait(n, called_late, [&] {
      return ramie::call_once_for(
          flag, 1s, [](int) {}, 2);
    });
    let_wait(n, made_late, [&] { return cell.get_or_init_for(1s, [] { return 2; }) != nullptr; });
    clock.advance(2s);
    ramie::yield();
    EXPECT(found, called_late == fate::failed, made_late == fate::failed);
    go.set();
    n.join();
    EXPECT(found, *cell.get_or_init_for(0s, [] { return 2; }) == 1, ramie::call_once_for(flag, 0s, [] {}));
  });
}

}  // namespace conformance_sync_deadlines
