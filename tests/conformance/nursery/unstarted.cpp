// SPDX-License-Identifier: BSL-1.0
// Children that have not started: a record in a queue, without a frame. What they are called, what happens when there is
// no memory for the frame, and that the frame that a join lends to one after the other is each one's own.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nursery/src/core.hpp"
#include "runtime/src/sched/runner.hpp"

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/scheduler_access.hpp>
#include <support/test.hpp>
#include <support/threadless_runtime.hpp>

namespace conformance_nursery_unstarted {

using namespace std::chrono_literals;
using namespace ramie::runtime_internal;
using ramie::nursery;
using test::findings;
using test::with_workers;

// Takes every frame that the calling fiber's worker could have without memory.
class frames_of_worker {
 public:
  frames_of_worker() {
    held_.reserve(10'000);
    worker& w = *this_worker();
    w.run.lendable.give_all(w.run.frames, w.sched.frames);
    while (w.run.frames.size() + w.sched.frames.count().pooled != 0) held_.push_back(w.run.frames.take(w.sched.frames));
  }
  // To the worker that has the caller now.
  ~frames_of_worker() {
    worker& w = *this_worker();
    for (fiber* const f : held_) w.run.frames.give(f, w.sched.frames);
  }
  frames_of_worker(const frames_of_worker&) = delete;
  frames_of_worker& operator=(const frames_of_worker&) = delete;

 private:
  std::vector<fiber*> held_;
};

// While it lives there is neither a frame nor memory for one.
class no_frames {
 public:
  no_frames() { test::fail_allocations_from(1); }
  ~no_frames() { test::fail_allocation(0); }
  no_frames(const no_frames&) = delete;
  no_frames& operator=(const no_frames&) = delete;

 private:
  frames_of_worker taken_;
};

template <class F>
bool ends_for_want_of_memory(F f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

// Counts what is reported, without memory.
class reports {
 public:
  reports() : former_(ramie::set_report_handler([](const ramie::report&) noexcept { all.fetch_add(1); })) {
    all.store(0);
  }
  ~reports() { ramie::set_report_handler(former_); }
  reports(const reports&) = delete;
  reports& operator=(const reports&) = delete;
  static inline std::atomic<long> all{0};

 private:
  ramie::report_handler former_;
};

std::string here(unsigned line) { return "nursery/unstarted.cpp:" + std::to_string(line); }

TEST_CASE("shutdown names a child that has not started by where it was spawned", "[conformance][nursery][shutdown]") {
  std::vector<std::string> plain, named, started;
  unsigned line = 0, line_of_started = 0;
  ramie::run(with_workers(1), [&] {
    ramie::channel<int> never(0);
    {
      nursery n;
      line = __LINE__ + 1;
      n.spawn([] {});
      plain = n.shutdown(0s).stragglers;
    }
    {
      nursery n;
      n.spawn({.name = "with a name"}, [] {});
      named = n.shutdown(0s).stragglers;
    }
    {
      nursery n;
      line_of_started = __LINE__ + 1;
      n.spawn([&] { (void)never.recv(); });
      ramie::yield();
      started = n.shutdown(0s).stragglers;
    }
  });
  REQUIRE(plain.size() == 1);
  CHECK(plain[0].find("not started") == 0);
  CHECK(plain[0].find(here(line)) != std::string::npos);
  CHECK(named == std::vector<std::string>{"with a name"});
  REQUIRE(started.size() == 1);
  CHECK(started[0].find("#") == 0);
  CHECK(started[0].find(here(line_of_started)) != std::string::npos);
}

TEST_CASE("a child that there is no memory to start fails like any other, taken from a queue",
          "[conformance][nursery][faults]") {
  test::census closures;
  findings found;
  ramie::run(with_workers(1), [&] {
    int ran = 0;
    nursery n;
    auto t = n.spawn([&ran, c = test::citizen(closures)] { ++ran; });
    {
      const ramie::shield not_yet;
      {
        const no_frames now;
        ramie::yield();
      }
      EXPECT(found, n.live_fibers() == 0, closures.alive() == 0, t.done(), n.closing(), ran == 0);
      EXPECT(found, ends_for_want_of_memory([&] { t.get(); }));
      EXPECT(found, n.failures().size() == 1);
    }
    EXPECT(found, ends_for_want_of_memory([&] { n.join(); }));
    nursery again;
    again.spawn([&ran] { ++ran; });
    again.join();
    EXPECT(found, ran == 1);
  });
  CHECK(found.wrong() == "");
}

// A worker has taken it, and the caller finds that nobody has run it.
TEST_CASE("a fork that there is no memory for is called by its caller", "[conformance][nursery][faults]") {
  findings found;
  ramie::run(with_workers(1), [&] {
    int calls = 0;
    ramie::parallel_invoke([&] { ++calls; },
                           [&] {
                             const no_frames now;
                             ramie::yield();
                           });
    EXPECT(found, calls == 1);
    ramie::parallel_for(4, [&](std::size_t i) {
      ++calls;
      if (i != 0) return;
      const no_frames now;
      ramie::yield();
    });
    EXPECT(found, calls == 5);
  });
  CHECK(found.wrong() == "");
}

// The first failure cancels the others, which have no frame either.
TEST_CASE("a child that there is no memory to start fails like any other, called by a join",
          "[conformance][nursery][faults]") {
  const reports quiet;
  test::census closures;
  findings found;
  ramie::run(with_workers(1), [&] {
    int ran = 0;
    nursery n;
    for (int i = 0; i < 5; ++i) n.spawn([&ran, c = test::citizen(closures)] { ++ran; });
    {
      const no_frames now;
      EXPECT(found, ends_for_want_of_memory([&] { n.join(); }));
    }
    EXPECT(found, n.live_fibers() == 0, closures.alive() == 0, ran == 0);
  });
  CHECK(found.wrong() == "");
}

// Its worker has no frame: a fiber that waits there has them all. A nursery has room for four children.
TEST_CASE("a child that there is no memory to start fails like any other, stolen", "[conformance][nursery][faults]") {
  const reports quiet;
  test::census closures;
  findings found;
  auto o = with_workers(2);
  o.elastic = false;
  ramie::run(o, [&] {
    std::atomic<int> ran{0};
    std::atomic<bool> taken{false};
    const auto mine = this_worker()->index;
    ramie::channel<int> done(0);
    ramie::with_nursery([&](nursery& thieves) {
      thieves.spawn([&] {
        if (this_worker()->index == mine) return;
        const frames_of_worker all;
        taken.store(true);
        (void)done.recv();
      });
      test::until([&] { return taken.load(); });
      {
        nursery n;
        {
          const no_frames now;
          for (int i = 0; i < 4; ++i) n.spawn([&ran, c = test::citizen(closures)] { ran.fetch_add(1); });
          test::until([&] { return n.live_fibers() == 0; });
        }
        EXPECT(found, closures.alive() == 0, ran.load() == 0, ends_for_want_of_memory([&] { n.join(); }));
      }
      done.close();
    });
  });
  CHECK(found.wrong() == "");
}

// Calls f so many kilobytes further down the stack, and leaves those full of something.
template <class F>
void deeper(int kilobytes, F f) {
  volatile char filled[1024];
  for (volatile char& c : filled) c = 0x41;
  if (kilobytes == 0) return f();
  deeper(kilobytes - 1, f);
}

// What is left of it may be looked at long after.
TEST_CASE("shutdown names who is left beside a child that there was no memory to start",
          "[conformance][nursery][shutdown][faults]") {
  const reports quiet;
  std::vector<std::string> stragglers;
  ramie::run(with_workers(1), [&] {
    ramie::channel<int> gate(0);
    nursery outer;
    nursery n;
    n.spawn({.name = "stubborn"}, [&] {
      const ramie::shield to_the_end;
      (void)gate.recv();
    });
    ramie::yield();
    auto t = n.spawn([] {});
    const ramie::shield not_yet;
    deeper(20, [] {
      const no_frames now;
      ramie::yield();
    });
    deeper(40, [] {});
    outer.spawn([&] { gate.close(); });  // when shutdown waits for the last time
    stragglers = n.shutdown(0s).stragglers;
  });
  CHECK(stragglers == std::vector<std::string>{"stubborn"});
}

// What a child may leave behind in the frame that its join lends to one after the other.
struct leavings {
  const fiber* frame = nullptr;
  std::string name;
  unsigned line = 0;
  bool has_local = false, own_scope = false, linked = false, has_stack = false;
  int delivered = 0;
};

ramie::fiber_local<int> trace;

leavings look_around() {
  const fiber& me = *current_fiber();
  leavings seen;
  seen.frame = &me;
  seen.name = ramie::this_fiber::name();
  seen.line = static_cast<unsigned>(me.site.get().line());
  seen.has_local = trace.find() != nullptr;
  seen.own_scope = me.own_scope() != nullptr;
  seen.linked = me.linked;
  seen.has_stack = me.stack.get() != nullptr;
  seen.delivered = me.cancel_delivered;
  return seen;
}

// `first` and then a child that looks around are called by a join, one after the other: the youngest is the first.
// Returns whether both had the same frame: mostly, if the first leaves it as it was and nothing else is due.
template <class First>
bool one_after_another(findings& found, First first) {
  const fiber* frame_of_first = nullptr;
  leavings seen;
  unsigned line = 0;
  bool waited = false, reached = false;
  std::optional<ramie::task<void>> t;
  nursery n;
  auto last = n.spawn([&reached] {
    try {
      for (;;) ramie::yield();
    } catch (const ramie::cancelled& c) {
      reached = c.is_own();
      throw;
    }
  });
  line = __LINE__ + 1;
  n.spawn([&] {
    seen = look_around();
    ramie::yield();
    ramie::check_cancelled();
    waited = true;
    last.cancel();
  });
  t = n.spawn([&] {
    frame_of_first = current_fiber();
    first(*t);
  });
  n.join();
  EXPECT(found, seen.frame != nullptr, seen.name.empty(), !seen.has_local, !seen.own_scope, !seen.linked, !seen.has_stack);
  EXPECT(found, seen.delivered == 0, seen.line == line, waited, reached);
  return seen.frame == frame_of_first;
}

TEST_CASE("a child that a join calls leaves nothing to the next one in its frame", "[conformance][nursery][join]") {
  findings found;
  std::uint64_t redelivered = 0, discarded = 0;
  int lent_on = 0;
  ramie::runtime rt(with_workers(1));
  rt.run([&] {
    lent_on += one_after_another(found, [](ramie::task<void>&) {});
    lent_on += one_after_another(found, [](ramie::task<void>&) {
      ramie::this_fiber::set_name("somebody");
      *trace = 7;
    });
    (void)one_after_another(found, [](ramie::task<void>&) { ramie::yield(); });
    lent_on += one_after_another(found, [&](ramie::task<void>&) {
      nursery inner;
      int sum = 0;
      for (int i = 0; i < 3; ++i) inner.spawn([&sum, i] { sum += i; });
      inner.join();
      EXPECT(found, sum == 3);
    });
    lent_on += one_after_another(found, [](ramie::task<void>&) {
      const ramie::shield s;
      ramie::check_cancelled();
    });
    lent_on += one_after_another(found, [](ramie::task<void>&) {
      try {
        throw 7;
      } catch (int) {
      }
    });
    lent_on += one_after_another(found, [](ramie::task<void>& me) { (void)me.cancel(); });  // and does not hear of it
    (void)one_after_another(found, [](ramie::task<void>& me) {
      (void)me.cancel();
      try {
        ramie::check_cancelled();
      } catch (const ramie::cancelled&) {  // swallowed
      }
    });
    (void)one_after_another(found, [](ramie::task<void>& me) {
      (void)me.cancel();
      ramie::yield();
    });
    redelivered = rt.stats().total.cancel_redelivered;
    discarded = rt.stats().total.discarded;
  });
  CHECK(found.wrong() == "");
  CHECK(redelivered == 0);
  CHECK(discarded == 0);
  CHECK(lent_on > 0);
}

TEST_CASE("a child that was cancelled alone before a join calls it leaves nothing to the next one",
          "[conformance][nursery][join][cancel]") {
  findings found;
  leavings seen;
  bool ran = false;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.spawn([&] {
      seen = look_around();
      ramie::check_cancelled();
    });
    auto t = n.spawn([&ran] { ran = true; });
    EXPECT(found, t.cancel());
    n.join();
  });
  CHECK(found.wrong() == "");
  CHECK_FALSE(ran);
  CHECK(seen.frame != nullptr);
  CHECK_FALSE(seen.own_scope);
}

// The frame has been lent under a shield, where all was clean although the nursery around it was cancelled.
TEST_CASE("a frame that is lent again knows nothing of the scopes of before", "[conformance][nursery][join][cancel]") {
  bool ran = false, ran_inside = false;
  ramie::run(with_workers(1), [&] {
    nursery n;
    n.spawn([&ran] { ran = true; });
    n.cancel();
    {
      const ramie::shield s;
      nursery inside;
      inside.spawn([&ran_inside] { ran_inside = true; });
      ramie::check_cancelled();
      inside.join();
    }
    n.join();
  });
  CHECK(ran_inside);
  CHECK_FALSE(ran);
}

TEST_CASE("a deadlock names nobody for a frame that joins lend", "[conformance][testing][explore]") {
  ramie::testing::explore_options o;
  o.schedules = 3;
  o.failure = ramie::testing::on_failure::returns;
  const auto found = ramie::testing::explore(o, [] {
    ramie::with_nursery([](nursery& n) { n.spawn([] {}); });
    const ramie::channel<int> never(0);
    (void)never.recv();
  });
  CHECK(found.failed);
  CHECK(found.failure.find("deadlock") != std::string::npos);
  CHECK(found.failure.find("a child of its own above it") == std::string::npos);
}

std::size_t resident_bytes() {
  long pages = 0;
  if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<std::size_t>(pages) * 4096;
}

TEST_CASE("a million children that have not started need a block and an entry each", "[conformance][scale]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  constexpr int many = 1'000'000;
  std::size_t grown = 0;
  long sum = 0;
  ramie::run(with_workers(1), [&] {
    const auto before = resident_bytes();
    nursery n;
    for (int i = 0; i < many; ++i) n.spawn([&sum, i] { sum += i; });
    grown = resident_bytes() - before;
    n.join();
  });
  INFO(grown / many << " bytes each");
  CHECK(grown < std::size_t{100} * many);
  CHECK(sum == static_cast<long>(many) * (many - 1) / 2);
}

// The nursery's memory, and room in the injection queue: each is refused in turn.
TEST_CASE("a spawn that there is no room for has done nothing", "[conformance][nursery][faults]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  int refused = 0;
  for (int k = 1; k < 30; ++k) {
    test::census closures;
    findings found;
    ramie::runtime rt(with_workers(1));
    rt.run([&] {
      std::uint64_t spawned = 0, ran = 0;
      const auto before = rt.stats().total.spawned;
      nursery n;
      test::fail_allocation(k);
      refused += ends_for_want_of_memory([&] {
        for (; spawned < 5'000; ++spawned) n.spawn([&ran, c = test::citizen(closures)] { ++ran; });
      });
      test::fail_allocation(0);
      EXPECT(found, n.live_fibers() == spawned, closures.alive() == static_cast<long>(spawned));
      EXPECT(found, rt.stats().total.spawned - before == spawned);
      n.join();
      EXPECT(found, ran == spawned);
    });
    CHECK(found.wrong() == "");
    CHECK(closures.alive() == 0);
  }
  CHECK(refused > 10);
}

// Each runtime anew: its queue has grown for nobody yet.
TEST_CASE("there is room for the tasks that full rings shed", "[conformance][queues]") {
  using tasks = std::vector<fiber_record>;
  std::size_t lost = 0;
  for (const std::size_t many : {257, 1'000, 3'000, 20'000}) {
    test::threadless_runtime s;
    tasks all(many);
    for (auto& task : all) {
      task.make_task(s.sched().root_scope, ramie::source_location::current());
      lost += !run_queues::push_task(s.w(), task);
    }
    (void)s.sched().queues.move_to_injection(s.w());
    std::vector<queued*> out(many);
    const auto taken = test::injection(s.sched()).take(out.data(), static_cast<std::uint32_t>(many));
    std::sort(out.begin(), out.end());
    lost += many - taken;
    lost += static_cast<std::size_t>(out.end() - std::unique(out.begin(), out.end()));
  }
  CHECK(lost == 0);
}

// Both have made room before either puts what it has, whatever is queued and wherever the queue has to grow.
TEST_CASE("there is room for the tasks of two workers at once", "[conformance][queues]") {
  test::threadless_runtime s(2);
  auto& queue = test::injection(s.sched());
  std::vector<queued*> batch(overflow_batch + 1, as_entry(s.fibers[0])), out(2'000);
  std::size_t lost = 0;
  for (std::uint32_t queued_before = 1; queued_before < 1'100; ++queued_before) {
    for (std::uint32_t i = 0; i < queued_before; ++i) {
      lost += !queue.try_reserve_for_tasks(1);
      queue.put(batch[0]);
    }
    for (int worker = 0; worker < 2; ++worker) lost += !queue.try_reserve_for_tasks(batch.size());
    for (int worker = 0; worker < 2; ++worker) queue.put(batch.data(), static_cast<std::uint32_t>(batch.size()));
    const auto all = queued_before + 2 * static_cast<std::uint32_t>(batch.size());
    lost += all - queue.take(out.data(), all);
  }
  CHECK(lost == 0);
}

}  // namespace conformance_nursery_unstarted
