// SPDX-License-Identifier: BSL-1.0
// Whatever the machine refuses, and whenever: a clear error or none, and nothing lost. See support/faults.hpp.
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include <ramie/platform/fence.hpp>
#include <ramie/platform/stack_pool.hpp>
#include <support/fault_programs.hpp>
#include <support/findings.hpp>
#include <support/readable.hpp>

namespace conformance_faults {

using namespace test::faulty;
using namespace std::chrono_literals;
namespace p = test::faulty::programs;

const program catalogue[] = {
    {"nothing", p::nothing},
    {"tree", p::tree},
    {"many stacks", p::many_stacks},
    {"pipeline", p::pipeline},
    {"selecting", p::selecting},
    {"flavours", p::flavours},
    {"threads", p::threads},
    {"owning", p::owning},
    {"failing", p::failing, 2, on_purpose},
    {"unwinding", p::unwinding, 2, on_purpose},
    {"leaving", p::leaving, 2, on_purpose},
    {"failures", p::failures, 2, on_purpose},
    {"locals", p::locals},
    {"gathering", p::gathering},
    {"stopping", p::stopping},
    {"clocked", p::clocked},
    {"calling", p::calling},
    {"streaming", p::streaming},
};
const program elastic{"blocking", p::blocking, 1};
const program large_pools{"many frames", p::many_frames, 1};

tally fail_each_in_all(const trouble& t) {
  tally all;
  for (const program& each : catalogue) all += fail_each(each, t);
  return all;
}

// Whether enough was refused to mean something, and whether that showed.
void check(const tally& found, const trouble& t) {
  INFO(t.name << ": " << found.refused << " refused, " << found.noticed << " runs ended with an error");
  if (test::large()) WARN(t.name << ": " << found.refused << " refused, " << found.noticed << " errors");
  CHECK(found.refused > 20);
  CHECK((found.noticed > 0) == (t.may_end != 0));
}

TEST_CASE("when memory is refused", "[conformance][faults][memory]") {
  check(fail_each_in_all(no_memory), no_memory);
}

TEST_CASE("when memory is refused to pools that have grown large", "[conformance][faults][memory]") {
  if (test::sanitized) LEFT_OUT("tens of thousands of fibers, again and again");
  CHECK(fail_each(large_pools, no_memory).noticed > 20);
  const auto no_big_memory = refusal<fault::big_memory>("a huge page", out_of_memory);
  const auto found = fail_each(large_pools, no_big_memory);
  CHECK(found.noticed >= 2);
}

TEST_CASE("when memory for stacks is refused", "[conformance][faults][stacks]") {
  const auto no_mapping = refusal<fault::stack_mapping>("a mapping of stacks", no_stack);
  check(fail_each_in_all(no_mapping), no_mapping);
}

TEST_CASE("when guards are refused", "[conformance][faults][stacks]") {
  const auto no_madvise = refusal<fault::guard_by_madvise>("MADV_GUARD_INSTALL", 0);
  check(fail_each_in_all(no_madvise), no_madvise);
  check(fail_each_in_all(no_mprotect), no_mprotect);
}

TEST_CASE("when threads are refused", "[conformance][faults]") {
  const auto no_thread = refusal<fault::thread>("a thread", system_refused);
  auto found = fail_each_in_all(no_thread);
  found += fail_each(elastic, no_thread);
  check(found, no_thread);
}

TEST_CASE("what can be done without is done without", "[conformance][faults]") {
  const auto no_signal_stack = refusal<fault::signal_stack>("a signal stack", 0);
  CHECK(fail_each_in_all(no_signal_stack).noticed == 0);  // sanitizers may bring their own
  const auto early = refusal<fault::sleep>("a futex wait", 0);
  check(fail_each_in_all(early), early);
  const auto one_by_one = refusal<fault::advice_at_once>("process_madvise", 0);
  check(fail_each_in_all(one_by_one), one_by_one);
}

// Without a mapping of the wanted size a smaller one; without a guard of the one kind, the other; without either, no
// stack. And all of it again when the machine is kind again.
TEST_CASE("no stack is ever without its guard", "[conformance][faults][stacks]") {
  using ramie::platform::stack_pool;
  stack_pool pool([](ramie::platform::arrival) {});
  const auto size_class = ramie::platform::stack_class_for(64 * 1024);
  const auto guarded = [](const ramie::platform::stack_block* stack) {
    return stack != nullptr && test::readable(stack->low) && !test::readable(stack->low - 1);
  };
  std::vector<ramie::platform::stack_block*> taken;
  const auto take = [&] { return taken.emplace_back(pool.take(size_class)); };
  faults::plan_for(fault::stack_mapping, 1, 3);  // eight stacks, four, two
  CHECK(guarded(take()));
  CHECK(faults::asked(fault::stack_mapping) == 4);
  faults::plan_for(fault::stack_mapping, 1, faults::for_good);
  CHECK(take() == nullptr);  // there was room for one
  faults::plan_for(fault::stack_mapping, 0, 0);
  CHECK(guarded(take()));
  faults::plan_for(fault::guard_by_madvise, 1, faults::for_good);
  CHECK(guarded(take()));
  faults::plan_for(fault::guard_by_mprotect, 1, faults::for_good);
  CHECK(take() == nullptr);
  faults::plan_for(fault::guard_by_madvise, 0, 0);
  faults::plan_for(fault::guard_by_mprotect, 0, 0);
  CHECK(guarded(take()));
  for (auto* const stack : taken) {
    if (stack != nullptr) pool.give_back(stack);
  }
  CHECK(pool.count().taken == 0);
}

// Takes stacks until there are so many, or none more is to be had.
void take_until(ramie::platform::stack_pool& pool, std::vector<ramie::platform::stack_block*>& all, std::size_t many) {
  while (all.size() < many) {
    auto* const stack = pool.take(0);
    if (stack == nullptr) return;
    all.push_back(stack);
  }
}

TEST_CASE("every stack of a batch has its guard, however it was made", "[conformance][faults][stacks]") {
  using ramie::platform::stack_pool;
  constexpr std::size_t many = 300;
  struct refused {
    long at_once, madvise, madvise_last, mprotect;
  };
  std::vector<refused> plans = {{0, 0, 0, 0}, {1, 0, 0, 0}, {3, 0, 0, 0}, {0, 100, faults::for_good, 0}};
  for (const long k : {2, 9, 10, 60, 61, 150, 151}) {
    plans.push_back({0, k, k, 0});                 // mprotect makes it
    plans.push_back({0, k, k + 1, 0});             // two in a row
    plans.push_back({0, k, k, 1});                 // not even that, at first
    plans.push_back({1, k, k + 40, 2});            // and each in a call of its own
    plans.push_back({0, k, faults::for_good, 1});  // as many as there were guards for
  }
  for (const auto& each : plans) {
    INFO(each.at_once << " " << each.madvise << " " << each.madvise_last << " " << each.mprotect);
    stack_pool pool([](ramie::platform::arrival) {});
    const bool at_once = pool.count().guarded_by_madvise;
    faults::plan_for(fault::advice_at_once, each.at_once, faults::for_good);
    faults::plan_for(fault::guard_by_madvise, each.madvise, each.madvise_last);
    faults::plan_for(fault::guard_by_mprotect, each.mprotect, each.mprotect);
    std::vector<ramie::platform::stack_block*> all;
    if (each.mprotect != 0 && each.madvise_last == faults::for_good) {
      faults::plan_for(fault::guard_by_mprotect, 1, faults::for_good);
      take_until(pool, all, many);
      if (at_once) CHECK(all.size() == static_cast<std::size_t>(each.madvise - 1));
      faults::plan_for(fault::guard_by_mprotect, 0, 0);
    }
    take_until(pool, all, many);
    if (each.mprotect == 0) CHECK(all.size() == many);
    take_until(pool, all, many);  // what was refused once is had at the next try
    CHECK(all.size() == many);
    if (each.at_once != 0) CHECK(faults::asked(fault::advice_at_once) <= each.at_once);  // asks no more
    if (each.at_once == 0) CHECK(faults::asked(fault::advice_at_once) < static_cast<long>(many) / 5);
    std::size_t unguarded = 0;
    for (auto* const stack : all) unguarded += !test::readable(stack->low) || test::readable(stack->low - 1);
    CHECK(unguarded == 0);
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(pool.count().slots == many);
    for (auto* const stack : all) pool.give_back(stack);
  }
  for (const auto at : {fault::advice_at_once, fault::guard_by_madvise, fault::guard_by_mprotect}) {
    faults::plan_for(at, 0, 0);
  }
}

TEST_CASE("many stacks are trimmed, at once or one by one", "[conformance][faults][stacks]") {
  using namespace ramie::platform;
  if (!annotate::may_trim_stacks) LEFT_OUT("AddressSanitizer knows what is on a stack: none is trimmed");
  for (const long refused : {0, 1}) {
    stack_pool pool([](arrival) {}, guard_kind::automatic, 10);
    std::vector<stack_block*> all;
    take_until(pool, all, 210);
    char* const lowest = all.front()->low;
    *lowest = 'x';
    faults::plan_for(fault::advice_at_once, refused, faults::for_good);
    for (std::size_t i = all.size(); i-- > 0;) pool.give_back(all[i]);
    CHECK(pool.trim(150));
    CHECK(pool.count().trimmed == 150);
    CHECK_FALSE(pool.trim(150));
    CHECK(pool.count().trimmed == 200);
    CHECK(*lowest == 0);
    CHECK(faults::asked(fault::advice_at_once) <= (refused != 0 ? 1 : 4));
    all.clear();
    take_until(pool, all, 210);
    CHECK(pool.count().slots == 210);
    for (auto* const stack : all) pool.give_back(stack);
  }
  faults::plan_for(fault::advice_at_once, 0, 0);
}

// From here on there is no memory, until the end of the block.
struct drought {
  drought() { test::fail_allocations_from(1); }
  ~drought() { test::fail_allocation(0); }
  drought(const drought&) = delete;
  drought& operator=(const drought&) = delete;
};
// Stacks for the children to come are there.
void prepare_stacks() {
  const ramie::channel<int> door(0);
  ramie::nursery n;
  for (int i = 0; i < 4; ++i) n.spawn([=] { (void)door.recv(); });
  for (int i = 0; i < 4; ++i) ramie::yield();
  door.close();
  n.join();
}
template <class F>
unsigned end_of(F f) {
  try {
    f();
  } catch (...) {
    const auto what = std::current_exception();
    return what_it_was(what);
  }
  return completed;
}

TEST_CASE("a failure that there is no memory for arrives all the same", "[conformance][faults][nursery]") {
  const report_count reports;
  test::as_fiber([](test::findings& found, ramie::manual_clock&) {
    prepare_stacks();
    ramie::nursery n;
    auto task = n.spawn([] { throw deliberate(); });
    auto second = n.spawn([] {
      const ramie::shield not_yet;
      ramie::yield();
      throw deliberate();
    });
    const ramie::shield not_yet;
    unsigned get = 0, get_second = 0;
    {
      const drought now;
      get = end_of([&] { task.get(); });
      get_second = end_of([&] { second.get(); });
    }
    EXPECT(found, get == on_purpose);
    EXPECT(found, get_second == out_of_memory);  // it was reported
    EXPECT(found, report_count::all == 1);
    EXPECT(found, n.failures().size() == 1);
    EXPECT(found, end_of([&] { n.join(); }) == on_purpose);
  });
  CHECK(report_count::all == 1);
}

TEST_CASE("a failure that there is no memory for is not the first if another was", "[conformance][faults][nursery]") {
  const report_count reports;
  test::as_fiber([](test::findings& found, ramie::manual_clock&) {
    prepare_stacks();
    ramie::nursery n;
    auto first = n.spawn([] { throw deliberate(); });
    auto second = n.spawn([] {
      const ramie::shield not_yet;
      ramie::yield();
      throw 7;
    });
    const ramie::shield not_yet;
    EXPECT(found, end_of([&] { first.get(); }) == on_purpose);
    {
      const drought now;
      EXPECT(found, end_of([&] { second.get(); }) == something_else);
    }
    EXPECT(found, end_of([&] { n.join(); }) == on_purpose);
  });
  CHECK(report_count::all == 0);
}

TEST_CASE("a cancellation that there is no memory to explain keeps its kind and its cause",
          "[conformance][faults][cancel]") {
  const report_count reports;
  test::as_fiber([](test::findings& found, ramie::manual_clock&) {
    prepare_stacks();
    const ramie::channel<int> never(0);
    bool told = false;
    const unsigned end = end_of([&] {
      ramie::nursery n;
      n.spawn([] { throw deliberate(); });
      try {
        const drought now;
        (void)never.recv();
      } catch (const ramie::cancelled& c) {
        told = c.kind() == ramie::cancel_kind::sibling_failure && what_it_was(c.cause()) == on_purpose;
        throw;
      }
    });
    found.expect(told);
    EXPECT(found, end == something_else);  // `cancelled`, which carries the failure
  });
  CHECK(report_count::all == 1);  // there was no memory to notice that somebody has received it
}

TEST_CASE("failures() without memory has received nothing", "[conformance][faults][nursery]") {
  const report_count reports;
  test::as_fiber([](test::findings& found, ramie::manual_clock&) {
    ramie::nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([] {
        const ramie::shield not_yet;
        ramie::yield();
        throw deliberate();
      });
    }
    const ramie::shield not_yet;
    while (n.live_fibers() != 0) ramie::yield();
    for (int k = 1; k <= 3; ++k) {
      test::fail_allocation(k);
      const unsigned end = end_of([&] { (void)n.failures(); });
      test::fail_allocation(0);
      EXPECT(found, end == out_of_memory);
    }
    EXPECT(found, end_of([&] { n.join(); }) == on_purpose);
  });
  CHECK(report_count::all == 2);  // those that nobody asked for
}

TEST_CASE("a shutdown without memory for names still cancels", "[conformance][faults][nursery]") {
  test::as_fiber([](test::findings& found, ramie::manual_clock& clock) {
    const ramie::channel<int> never(0);
    ramie::nursery n;
    n.spawn({.name = "a straggler with a name of some length"}, [&] { (void)never.recv(); });
    n.spawn([&] {
      ramie::yield();
      test::fail_allocations_from(1);
      clock.advance(2s);
    });
    const unsigned end = end_of([&] { (void)n.shutdown(1s); });
    test::fail_allocation(0);
    EXPECT(found, end == out_of_memory);
    EXPECT(found, n.live_fibers() == 0);
    n.join();
  });
}

// What is made once for the life of the process, and whether the kernel grants membarrier, can only be refused to a
// process that is new.
TEST_CASE("a new process that is refused what it needs first", "[.][faults-of-a-new-process]") {
  faults::plan_for(fault::membarrier, 1, faults::for_good);
  ramie::fiber_local<int> mine;
  const auto first_wait_fails = [&](int k) {
    test::fail_allocation(k);
    bool failed = false;
    try {
      const ramie::shield needs_to_know_who_i_am;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    test::fail_allocation(0);
    return failed;
  };
  for (const int k : {1, 2, 1}) {  // the pool of threads' proxies, the proxy, the proxy again
    CHECK(first_wait_fails(k));
    test::fail_allocation(1);
    CHECK(mine.find() == nullptr);  // asks for nothing
    test::fail_allocation(0);
  }
  CHECK_FALSE(first_wait_fails(0));
  for (long k = 1; k < 70; ++k) run_once({"tree", p::tree}, no_memory, k, k % 2 == 0);
  CHECK(fail_each({"deeper", p::deeper}, no_memory, 1).noticed > 20);
  for (const program& each : catalogue) run_once(each, no_memory, never, false);
  CHECK_FALSE(ramie::platform::detail::membarrier_granted);
  CHECK(faults::asked(fault::membarrier) == 1);
}

TEST_CASE("a new process is refused what it needs first", "[conformance][faults]") {
  const char* const arguments[] = {"ramie-tests", "[faults-of-a-new-process]", nullptr};
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char* const*>(arguments), environ) == 0);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace conformance_faults
