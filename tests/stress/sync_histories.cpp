// SPDX-License-Identifier: BSL-1.0
// Mutex, condition variable and semaphore are linearizable: histories of random programs of fibers and a plain thread,
// some of them too late or cancelled, are checked against the model in support/sync_history.hpp; and the checker is
// shown what it must not accept.
//
// Nothing waits for ever: when nothing has happened for a while the main fiber notifies all and releases a permit. All
// of it is recorded.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/seeds.hpp>
#include <support/sync_history.hpp>
#include <support/test.hpp>

namespace stress_sync_histories {

using namespace std::chrono_literals;
using namespace test::sync_history;

test::random_test this_test("histories of locks");

constexpr std::uint8_t permits = 2;

struct stage {
  explicit stage(std::size_t parties) : book(parties) {}
  recorder book;
  ramie::mutex lock;
  ramie::condition_variable news;
  ramie::semaphore gate{permits};
  std::atomic<int> playing{0};
};

// One party: its operations, each recorded, also how it unlocks when it is cancelled.
class actor {
 public:
  actor(stage& on, std::uint8_t who, std::uint64_t seed) : on_(on), who_(who), dice_(seed) {}

  void play(int turns) {
    for (int i = 0; i < turns; ++i) {
      switch (dice_.below(6)) {
        case 0:
        case 1: visit(); break;
        case 2:
        case 3: pass_the_gate(); break;
        case 4: notify(); break;
        default: ramie::yield();
      }
    }
  }
  // Perhaps that lets somebody go on; and what was released in vain is taken back some time.
  void nudge() {
    if (dice_.one_in(2)) {
      (void)note(act::notify_all, patience::endless, 1, [this] { return on_.news.notify_all(), true; });
    } else {
      release(1);
      for (auto n = dice_.below(8); n > 0; --n) ramie::yield();
      (void)acquire(patience::none, 1);
    }
  }
  void cancel(ramie::nursery& all) {
    (void)note(act::cancel, patience::endless, 1, [&all] { return all.cancel(), true; });
  }

 private:
  // run() says whether it was done, or throws.
  template <class Run>
  bool note(act what, patience waits, std::uint8_t count, Run run) {
    operation op;
    op.what = what;
    op.waits = waits;
    op.count = count;
    std::exception_ptr cancelled;
    const auto& noted = on_.book.note(who_, op, [&](ending& result) {
      try {
        result = run() ? ending::done : ending::gave_up;
      } catch (const ramie::cancelled&) {
        result = ending::cut_short;
        cancelled = std::current_exception();
      }
    });
    if (cancelled) std::rethrow_exception(cancelled);
    return noted.result == ending::done;
  }
  patience any_patience() { return static_cast<patience>(dice_.below(3)); }
  std::chrono::microseconds a_moment() { return std::chrono::microseconds(dice_.below(30)); }

  // With something that others want.
  void linger() {
    for (auto n = dice_.below(3); n > 0; --n) ramie::yield();
  }

  void visit() {
    const auto waits = any_patience();
    const auto limit = a_moment();
    const bool entered = note(act::lock, waits, 1, [&] {
      if (waits == patience::none) return on_.lock.try_lock();
      if (waits == patience::some) return on_.lock.try_lock_for(limit);
      return on_.lock.lock(), true;
    });
    if (!entered) return;
    const test::finally after(
        [this] { (void)note(act::unlock, patience::endless, 1, [this] { return on_.lock.unlock(), true; }); });
    linger();
    if (dice_.one_in(2)) wait();
    if (dice_.one_in(3)) notify();
  }
  void wait() {
    const auto waits = dice_.one_in(3) ? patience::some : patience::endless;
    const auto limit = a_moment();
    (void)note(act::wait, waits, 1, [&] {
      std::unique_lock hold(on_.lock, std::adopt_lock);
      const test::finally ours_again([&hold] { (void)hold.release(); });
      if (waits == patience::endless) return on_.news.wait(hold), true;
      return on_.news.wait_for(hold, limit) == std::cv_status::no_timeout;
    });
  }
  void notify() {
    const auto what = dice_.one_in(4) ? act::notify_all : act::notify_one;
    (void)note(what, patience::endless, 1,
               [&] { return what == act::notify_all ? on_.news.notify_all() : on_.news.notify_one(), true; });
  }
  void pass_the_gate() {
    const auto wanted = static_cast<std::uint8_t>(1 + dice_.below(permits));
    if (!acquire(any_patience(), wanted)) return;
    const test::finally after([this, wanted] { release(wanted); });
    linger();
  }
  bool acquire(patience waits, std::uint8_t wanted) {
    const auto limit = a_moment();
    return note(act::acquire, waits, wanted, [&] {
      if (waits == patience::none) return on_.gate.try_acquire(wanted);
      if (waits == patience::some) return on_.gate.try_acquire_for(limit, wanted);
      return on_.gate.acquire(wanted), true;
    });
  }
  void release(std::uint8_t how_many) {
    (void)note(act::release, patience::endless, how_many, [&] { return on_.gate.release(how_many), true; });
  }

  stage& on_;
  const std::uint8_t who_;
  test::dice dice_;
};

// Keeps the play going until all who don't leave have finished: ever more patiently while nobody can go on but for
// reasons of the machine.
void direct(stage& s, actor me) {
  constexpr int hasty = 16, patient = 1 << 14;
  for (int turns = hasty; s.playing != 0;) {
    const auto before = s.book.noted();
    for (int i = 0; i < turns && s.playing != 0 && s.book.noted() == before; ++i) ramie::yield();
    if (s.book.noted() != before) {
      turns = hasty;
    } else {
      turns = std::min(2 * turns, patient);
      std::this_thread::yield();
      me.nudge();
    }
  }
}

std::vector<operation> random_history(const test::setting& how) {
  test::dice dice(how.seed);
  const auto fibers = static_cast<std::uint8_t>(2 + dice.below(4)), leavers = static_cast<std::uint8_t>(dice.below(3));
  const int turns = static_cast<int>(4 + dice.below(12));
  stage s(fibers + leavers + 3u);
  std::uint8_t next = 0;
  const auto cast = [&] { return actor(s, next++, dice()); };
  const auto play = [&s, turns](actor a) {
    a.play(turns);
    --s.playing;
  };

  ramie::runtime rt(how.options());
  s.playing = fibers + 1;
  std::thread outside(play, cast());
  rt.run([&] {
    ramie::nursery stay;
    stay.spawn([&s, me = cast()] { direct(s, me); });
    for (int i = 0; i < fibers; ++i) stay.spawn([&play, a = cast()] { play(a); });
    ramie::nursery leave;
    for (int i = 0; i < leavers; ++i) leave.spawn([turns, a = cast()]() mutable { a.play(turns); });
    for (auto n = dice.below(32); n > 0; --n) ramie::yield();
    cast().cancel(leave);
    leave.join();
    stay.join();
  });
  outside.join();
  return s.book.operations();
}

// The same history without one unlock, and yet somebody has locked the mutex after it: wrong, whatever else happened.
// False: there is none.
bool forget_an_unlock(std::vector<operation>& history) {
  const auto unlocks = [](const operation& op) { return op.what == act::unlock; };
  for (auto it = history.begin(); it != history.end(); ++it) {
    if (!unlocks(*it)) continue;
    const bool locked_later = std::any_of(history.begin(), history.end(), [it](const operation& op) {
      return op.what == act::lock && op.result == ending::done && op.invoked > it->returned;
    });
    if (!locked_later) continue;
    history.erase(it);
    return true;
  }
  return false;
}

struct figures {
  std::size_t histories = 0, operations = 0, configurations = 0, refused = 0, undecided = 0;
};

void check_one(const test::setting& how, figures& sum) {
  auto history = random_history(how);
  const verdict v = check(permits, history);
  if (!v) FAIL(test::linearizable::describe_all(history, v));
  ++sum.histories;
  sum.operations += history.size();
  sum.configurations += v.explored;
  sum.undecided += v.undecided;
  if (v.undecided || !forget_an_unlock(history)) return;
  const verdict without = check(permits, history);
  REQUIRE((without.undecided || !without));
  sum.refused += !without.undecided;
}

TEST_CASE("random histories of mutex, condition variable and semaphore are linearizable", "[stress][sync]") {
  figures sum;
  this_test.for_each_seed(test::scaled(40, 15), 3'000, [&](const test::setting& how) {
    INFO(how);
    check_one(how, sum);
  });
  INFO(sum.histories << " histories, " << sum.operations << " operations, " << sum.configurations << " configurations");
  CHECK(sum.operations > sum.histories * 10);
  CHECK(sum.refused * 2 > sum.histories);
  CHECK(sum.undecided * 4 < sum.histories);
}

}  // namespace stress_sync_histories
