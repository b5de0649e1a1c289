// SPDX-License-Identifier: BSL-1.0
// Who looks at the time, at the queues and at the others, by hand: without threads, so that who does not look shows. U5
// to U7, E4, E9, I8, Q12, Q14, IO19.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/threadless_runtime.hpp>
#include <support/test.hpp>

namespace conformance_monitor {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using ramie::platform::time_point;
using test::threadless_runtime;

time_point now() {
  return ramie::platform::steady_clock::instance().now();
}

// The calling thread is this worker, as far as anybody can tell; null: none.
template <class F>
void as(worker* w, F f) {
  const test::finally nobody([] { set_this_worker(nullptr); });
  set_this_worker(w);
  f();
}

// E4
TEST_CASE("a worker that begins to run and leaves something queued tells the monitor", "[conformance][elastic]") {
  for (const std::size_t queued : {std::size_t{1}, std::size_t{4}}) {
    threadless_runtime s(2, true);
    s.sched().pool.monitor().stop();  // it has no thread, and gets none
    s.w(1).life.state.store(worker_state::active);
    for (std::size_t i = 0; i < queued; ++i) s.push(s.fibers[i], 1);
    s.w(0).dispatch.searching.set(true);
    REQUIRE(s.sched().pool.idle().load().monitor_asleep());
    CHECK(s.sched().dispatch.next(s.w(0)) == &s.fibers[0]);
    CHECK(s.sched().pool.idle().load().monitor_asleep() == (queued == 1));
    for (std::size_t i = 0; i < 2; ++i) {
      while (s.w(i).queue.ring.pop_old() != nullptr) {
      }
    }
  }
}

// E4, IO19: what it looks at when it ticks, and once more before it sleeps.
TEST_CASE("the monitor watches while somebody runs fibers with something queued, or with operations under way",
          "[conformance][elastic]") {
  threadless_runtime s;
  worker& w = s.w();
  const auto watches = [&](worker_state state) {
    w.life.state.store(state);
    w.count.polls.add(1);  // it gets on: no report of it is owed
    return s.sched().pool.monitor().tick();
  };
  const auto only_while_active = [&] {
    CHECK(watches(worker_state::active));
    CHECK_FALSE(watches(worker_state::idle_spin));
  };
  w.count.spawned.set(10);
  CHECK_FALSE(watches(worker_state::active));
  SECTION("the ring") {
    s.push(s.fibers[0]);
    only_while_active();
    (void)w.queue.ring.pop_old();
  }
  SECTION("the injection queue") {
    test::injection(s.sched()).put(as_entry(s.fibers[0]));
    only_while_active();
  }
  SECTION("the slot, which thieves do not see") {
    (void)w.queue.newest.put(&s.fibers[0]);
    REQUIRE_FALSE(s.sched().queues.work_visible());
    only_while_active();
    (void)w.queue.newest.take();
  }
  SECTION("operations") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const test::finally closed([&] {
      for (const int end : ends) ::close(end);
    });
    io_setup how(ramie::io_choice::poll);
    w.io.open(how);
    CHECK_FALSE(watches(worker_state::active));
    ramie::platform::io_operation op;
    op.code = ramie::platform::io_code::ready;
    op.fd = ends[0];
    op.flags = POLLIN;
    w.io.backend()->submit(op);
    only_while_active();
    w.io.backend()->cancel(op);
    ramie::platform::io_operation* done[1];
    test::until([&] { return w.io.backend()->poll(done) == 1; });
  }
  CHECK_FALSE(watches(worker_state::draining));
}

// E9, I4: a thread outside has queued something and woken nobody, because somebody searched, who retires now.
TEST_CASE("a searching worker that retires looks once more for those who relied on it", "[conformance][elastic]") {
  for (const bool queued : {false, true}) {
    threadless_runtime s(2);
    s.w(0).life.state.store(worker_state::sleep);
    s.sched().pool.idle().announce_sleep(0, true);
    s.w(1).dispatch.searching.set(true);
    REQUIRE(s.sched().pool.idle().load().searching() == 1);
    if (queued) test::injection(s.sched()).put(as_entry(s.fibers[0]));
    s.sched().pool.drain(s.w(1));
    CHECK(s.sched().pool.idle().load().parked() == (queued ? 0 : 1));
    CHECK(s.w(0).parker.park_until(time_point::min()) == queued);  // it has a token
  }
}

// Of the worker, and it has come, though nobody has checked yet: whoever does fires it. Nobody waits for it.
class past_deadline {
 public:
  explicit past_deadline(threadless_runtime& s) : keeper_(s.sched().deadlines), entry_(now() - 1ms) {
    as(&s.w(), [&] { keeper_.set(entry_, {}, entry_.when - 1ms); });
  }
  ~past_deadline() { keeper_.remove(entry_); }
  past_deadline(const past_deadline&) = delete;
  past_deadline& operator=(const past_deadline&) = delete;
  [[nodiscard]] bool fired() const { return entry_.fired.load(); }

 private:
  timekeeper& keeper_;
  wake_up entry_;
};

// U6: beside fibers that yield for ever nobody ever sleeps, or comes back to the worker's loop.
TEST_CASE("a worker that runs fibers looks at the time at its polls", "[conformance][time]") {
  threadless_runtime s;
  const auto poll = [&](std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      s.push(s.fibers[0]);
      CHECK(dispatcher::next_local(s.w()) == &s.fibers[0]);
    }
  };
  const auto turn = s.w().dispatch.pacing.interval();
  SECTION("when the injection queue has its turn") {
    const past_deadline d(s);
    poll(turn - 1);
    CHECK_FALSE(d.fired());
    poll(1);
    CHECK(d.fired());
  }
  SECTION("at the end of a tick") {
    REQUIRE(budget_per_tick % turn != 0);  // or it would be both
    poll(budget_per_tick - 1);
    const past_deadline d(s);
    poll(1);
    CHECK(d.fired());
  }
  SECTION("at the end of a tick in vain") {
    for (std::uint32_t i = 1; i < budget_per_tick; ++i) CHECK(dispatcher::next_local(s.w()) == nullptr);
    const past_deadline d(s);
    CHECK(dispatcher::next_local(s.w()) == nullptr);
    CHECK(d.fired());
  }
  SECTION("no more often than every 250 us") {
    poll(budget_per_tick - 1);
    const past_deadline d(s);
    poll(1);
    CHECK(d.fired());
    CHECK(s.w().dispatch.next_timer_check.get() ==
          s.w().dispatch.pacing.tick_started() + timer_check_interval);  // it was read once for both
    s.w().dispatch.next_timer_check.set(timekeeper::never);
    const past_deadline later(s);
    poll(budget_per_tick);
    CHECK_FALSE(later.fired());
  }
  SECTION("again when the ring is empty, if more is due than the ring takes") {
    poll(budget_per_tick - 1);
    std::list<past_deadline> all;
    for (std::uint32_t i = 0; i < 2 * overflow_batch + 1; ++i) all.emplace_back(s);
    poll(1);
    const auto then = s.w().dispatch.pacing.tick_started();
    for (const std::uint32_t fired : {overflow_batch, 2 * overflow_batch, 2 * overflow_batch + 1}) {
      CHECK(std::ranges::count_if(all, [](const auto& d) { return d.fired(); }) == fired);
      CHECK(s.w().dispatch.next_timer_check.get() == (fired < all.size() ? then : then + timer_check_interval));
      CHECK(dispatcher::next_local(s.w()) == nullptr);
    }
  }
}

// U7
TEST_CASE("one sleeper keeps the time, for the earliest deadline, until it wakes", "[conformance][time]") {
  threadless_runtime s(2);
  timekeeper& keeper = s.sched().deadlines;
  const auto far = now() + 3h, near = far - 1ms;
  const auto start = near - 1ms;  // as far as they know: deadlines so near are kept exactly
  wake_up first(far), second(near);
  const auto never = timekeeper::never;
  CHECK(keeper.become_timer_sleeper() == never);
  CHECK_FALSE(keeper.needs_timer_sleeper());
  as(&s.w(0), [&] { keeper.set(first, {}, start); });
  CHECK(keeper.needs_timer_sleeper());
  CHECK(keeper.become_timer_sleeper() == far);
  CHECK(keeper.become_timer_sleeper() == never);  // somebody sleeps for it
  CHECK_FALSE(keeper.needs_timer_sleeper());
  as(&s.w(1), [&] { keeper.set(second, {}, start); });
  CHECK(keeper.needs_timer_sleeper());
  CHECK(keeper.become_timer_sleeper() == near);  // taken over
  keeper.resign_as_timer_sleeper(far);           // who had it before leaves it to whoever has it now
  CHECK(keeper.become_timer_sleeper() == never);
  keeper.resign_as_timer_sleeper(near);
  CHECK(keeper.become_timer_sleeper() == near);
  keeper.resign_as_timer_sleeper(near);
  keeper.remove(second);
  CHECK(keeper.become_timer_sleeper() == far);
  keeper.resign_as_timer_sleeper(far);
  keeper.remove(first);
  CHECK(keeper.become_timer_sleeper() == never);
}

TEST_CASE("a removed deadline leaves the others in force", "[conformance][time]") {
  threadless_runtime s;
  timekeeper& keeper = s.sched().deadlines;
  const auto start = now() + 1h;
  wake_up exact(start + 1ms), rounded(start + 100ms), removed(start + 1us);
  as(&s.w(), [&] {
    for (wake_up* entry : {&exact, &rounded, &removed}) keeper.set(*entry, {}, start);
  });
  keeper.remove(removed);
  CHECK(keeper.earliest() <= exact.when);
  keeper.remove(exact);
  CHECK(keeper.earliest() <= rounded.when + 1ms);
  keeper.remove(rounded);
  CHECK(keeper.earliest() == timekeeper::never);
}

// A fiber that waits: who wakes it.
waker wait_as(threadless_runtime& s, fiber& f) {
  f.home = &s.sched().root_scope;
  f.word.runnable_to_running();
  const auto ticket = f.wait_ticket.load() + 1;
  f.wait_ticket.store(ticket);
  f.word.running_to_parking(static_cast<std::uint16_t>(ticket));
  (void)f.word.commit_park();
  return waker(&f, ticket);
}

// U7: the only worker, which nobody else wakes, since there is no keeper. It sleeps once for each deadline, not at all if
// that has come before it gets so far, and then runs who waited for it. A machine that never lets it get so far is given more
// time, but less than there is for deadlines that are not kept exactly.
TEST_CASE("the timer sleeper fires what it has slept for, at once", "[conformance][time]") {
  threadless_runtime s;
  timekeeper& keeper = s.sched().deadlines;
  test::live(s.sched()).store(1);
  fiber& f = s.fibers[0];
  std::uint64_t most = 0;
  bool in_time = true;
  std::chrono::nanoseconds ahead = 100us;
  as(&s.w(), [&] {
    for (int i = 0; i < 50 || most == 0; ++i) {
      const waker who = wait_as(s, f);
      if (most == 0 && i != 0) ahead = std::min<std::chrono::nanoseconds>(2 * ahead, exact_below - 1ms);
      wake_up entry(now() + ahead);
      const auto slept = s.w().count.times_parked.get();
      keeper.set(entry, who, now());
      in_time = in_time && s.sched().dispatch.next(s.w()) == &f && now() >= entry.when;
      most = std::max(most, s.w().count.times_parked.get() - slept);
      s.w().dispatch.searching.set(true);
    }
  });
  CHECK(in_time);
  CHECK(most == 1);
}

// U7, I8. A deadline has come since the worker last looked, and it does not know: neither its nap nor its sleep lasts.
TEST_CASE("a worker that naps after thefts that do not pay gets up for a deadline", "[conformance][time]") {
  namespace faults = ramie::platform::faults;
  static thread_local int slept;  // in the kernel: this thread, not whoever else runs
  slept = 0;
  const test::finally untold([] { faults::told = nullptr; });
  faults::told = [](ramie::platform::fault at) noexcept { slept += at == ramie::platform::fault::sleep; };
  threadless_runtime s;
  test::live(s.sched()).store(1);
  as(&s.w(), [&] {
    for (int i = 0; i < 10; ++i) {
      auto& stealing = s.w().dispatch.stealing;
      for (auto nap = shortest_nap; nap < longest_nap; nap = stealing.nap_length()) stealing.woken();
      stealing.woken();  // in vain once more
      const waker who = wait_as(s, s.fibers[0]);
      wake_up entry(now() - 1ms);
      s.sched().deadlines.set(entry, who, entry.when - 1ms);
      s.w().dispatch.next_timer_check.set(timekeeper::never);
      CHECK(s.sched().dispatch.next(s.w()) == &s.fibers[0]);
    }
  });
  CHECK(s.w().count.naps.get() == 10);
  CHECK(slept == 0);
}

// U5
TEST_CASE("a deadline is in the shard of the worker that adds it, those of plain threads in one of their own",
          "[conformance][time]") {
  threadless_runtime s(3), other(3);
  timekeeper& keeper = s.sched().deadlines;
  const auto when = now() + 1h;
  const auto shard_of = [&](worker* adds, worker* removes) {
    wake_up entry(when);
    as(adds, [&] { keeper.set(entry, {}, now()); });
    const unsigned shard = entry.shard;
    const bool counts = keeper.earliest() != timekeeper::never;  // of workers' shards
    CHECK(counts == (shard < 3));
    as(removes, [&] { keeper.remove(entry); });  // the fiber has wandered
    CHECK(keeper.earliest() == timekeeper::never);
    return shard;
  };
  for (std::size_t i = 0; i < 3; ++i) CHECK(shard_of(&s.w(i), &s.w(2 - i)) == i);
  CHECK(shard_of(nullptr, &s.w(1)) == 3);
  CHECK(shard_of(&other.w(1), nullptr) == 3);  // a worker of another runtime is a plain thread here
}

// Q14
TEST_CASE("a worker's ticks end after 128 polls, and begin anew after 128 looks in vain", "[conformance][pace]") {
  threadless_runtime s;
  worker& w = s.w();
  const time_point long_ago{};
  SECTION("polls") {
    w.dispatch.pacing.restart(0, long_ago);
    for (std::uint32_t i = 1; i < budget_per_tick; ++i) {
      s.push(s.fibers[0]);
      CHECK(dispatcher::next_local(w) == &s.fibers[0]);
    }
    CHECK(w.dispatch.pacing.tick_started() == long_ago);
    CHECK(w.dispatch.pacing.interval() == interval_for(initial_task_estimate.count()));
    s.push(s.fibers[0]);
    CHECK(dispatcher::next_local(w) == &s.fibers[0]);
    CHECK(w.dispatch.pacing.tick_started() > long_ago);
    CHECK(w.dispatch.pacing.interval() == min_injection_interval);  // by what it saw, its polls have taken ages
  }
  SECTION("looks in vain") {
    w.dispatch.pacing.restart(0, long_ago);
    w.queue.lifo_polls.set(2);
    for (std::uint32_t i = 1; i < budget_per_tick; ++i) CHECK(dispatcher::next_local(w) == nullptr);
    CHECK(w.dispatch.pacing.tick_started() == long_ago);
    CHECK(w.queue.lifo_polls.get() == 2);
    CHECK(dispatcher::next_local(w) == nullptr);
    CHECK(w.dispatch.pacing.tick_started() > long_ago);
    CHECK(w.queue.lifo_polls.get() == 0);
    CHECK(w.dispatch.pacing.interval() == interval_for(initial_task_estimate.count()));  // nothing was learnt from that
  }
}

// Q12. Every worker but the thief has something; what the thief finds first, again and again.
constexpr std::size_t crowd = 9;
struct thieves : threadless_runtime {
  thieves() : threadless_runtime(crowd) {
    for (std::size_t i = 1; i < crowd; ++i) w(i).life.state.store(worker_state::active);
  }
  // From whom it steals: fiber i is worker i's.
  std::size_t steal() {
    w(0).dispatch.searching.set(true);
    w(0).dispatch.stealing.on_steal(0, {});  // it does not nap over what it brought home last
    const fiber* const f = sched().dispatch.next(w(0));
    return static_cast<std::size_t>(f - fibers.data());
  }
};

TEST_CASE("thieves begin with a victim at random, and come by each", "[conformance][stealing]") {
  thieves s;
  constexpr int rounds = 4'000;
  for (std::size_t i = 1; i < crowd; ++i) s.push(s.fibers[i], i);
  std::map<std::size_t, int> times;
  std::set<std::pair<std::size_t, std::size_t>> in_a_row;
  for (std::size_t i = 0, last = 0; i < rounds; ++i) {
    const auto victim = s.steal();
    ++times[victim];
    in_a_row.emplace(last, victim);
    last = victim;
    s.push(s.fibers[victim], victim);
  }
  CHECK(times.size() == crowd - 1);
  // One in nine each, and the first one behind the thief twice that, since the thief itself is passed over.
  for (const auto& [victim, count] : times) {
    INFO("worker " << victim << ": " << count << " of " << rounds);
    CHECK(count > rounds / 9 / 2);
    CHECK(count < rounds / 9 * 3);
  }
  CHECK(in_a_row.size() > (crowd - 1) * (crowd - 2));  // nearly any after any: no round robin
  for (std::size_t i = 1; i < crowd; ++i) (void)s.w(i).queue.ring.pop_old();
}

TEST_CASE("a thief finds the only one who has something, wherever it begins", "[conformance][stealing]") {
  thieves s;
  ramie::platform::xorshift same((0x9e3779b97f4a7c15ull + 1) * 0xd1342543de82ef95ull);  // as the worker's
  (void)same.next();                                                                    // its rng
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 1; i < crowd; ++i) {
      s.push(s.fibers[i], i);
      CHECK(s.steal() == i);
      (void)same.next();
    }
  }
  CHECK(s.w(0).dispatch.random.next() == same.next());  // with one draw each: at the first attempt
}

}  // namespace conformance_monitor
