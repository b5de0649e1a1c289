// SPDX-License-Identifier: BSL-1.0
// The machine room: parkers, clocks, stacks, contexts.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include <ramie/platform/biased_lock.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/stack_pool.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <support/child.hpp>
#include <support/test.hpp>

namespace unit_platform {

using namespace ramie::platform;
using namespace std::chrono_literals;

TEMPLATE_TEST_CASE("a parker keeps one token, never two", "[unit][parker]", futex_parker, portable_parker) {
  TestType parker;
  CHECK_FALSE(parker.has_token());
  parker.unpark();
  parker.unpark();
  CHECK(parker.has_token());
  parker.park();  // consumes the token
  CHECK_FALSE(parker.has_token());
  CHECK_FALSE(parker.park_until(std::chrono::steady_clock::now() - 1s));
  parker.unpark();
  CHECK(parker.park_until(std::chrono::steady_clock::now() - 1s));
}

TEMPLATE_TEST_CASE("a parked thread is woken, every time", "[unit][parker]", futex_parker, portable_parker) {
  TestType here, there;
  constexpr int rounds = 2'000;
  int echoed = 0;
  std::thread echo([&] {
    for (int i = 0; i < rounds; ++i) {
      there.park();
      ++echoed;
      here.unpark();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    there.unpark();
    here.park();
  }
  echo.join();
  CHECK(echoed == rounds);
}

TEMPLATE_TEST_CASE("a parker gives up at its deadline", "[unit][parker]", futex_parker, portable_parker) {
  TestType parker;
  const auto deadline = std::chrono::steady_clock::now() + 1ms;
  CHECK_FALSE(parker.park_until(deadline));
  CHECK(std::chrono::steady_clock::now() >= deadline);
  parker.unpark();
  parker.park();  // still usable
}

TEST_CASE("the virtual clock moves only when told", "[unit][clock]") {
  virtual_clock clock;
  const auto start = clock.now();
  CHECK(clock.now() == start);
  clock.advance(5ms);
  CHECK(clock.now() - start == 5ms);
}

TEST_CASE("the steady clock does not go back", "[unit][clock]") {
  const auto& clock = steady_clock::instance();
  const auto a = clock.now();
  CHECK(clock.now() >= a);
}

TEST_CASE("fatal says what happened and aborts", "[unit][fatal]") {
  if (test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] { fatal("the %s is gone. Fetch another.", "cat"); });
  CHECK(end.signal == SIGABRT);
  CHECK(end.errors == "ramie: fatal: the cat is gone. Fetch another.\n");
}

TEST_CASE("stack classes are powers of two from 16 KiB", "[unit][stacks]") {
  CHECK(stack_class_for(1) == 0);
  CHECK(stack_class_for(16 * 1024) == 0);
  CHECK(stack_class_for(16 * 1024 + 1) == 1);
  CHECK(promised_bytes(stack_class_for(64 * 1024)) == 64 * 1024);
  CHECK(promised_bytes(stack_class_for(8 << 20)) == 8 << 20);
  CHECK(stack_class_for(max_stack_size) == stack_class_count - 1);
  // The default reserves more than it promises; a small one costs five pages of address space.
  CHECK(slot_bytes(stack_class_for(64 * 1024)) == 132 * 1024);
  CHECK(slot_bytes(0) == 20 * 1024);
  // An odd number of pages apart, or thousands of stacks would compete for a few entries of the TLB.
  for (std::uint8_t c = 0; c < stack_class_count; ++c) CHECK(slot_bytes(c) / page_size % 2 == 1);
}

// A stack that runs one function and comes back, for tests of the switch itself.
struct visit {
  thread_anchor anchor;
  stack_block home;
  stack_block* away = nullptr;
  void (*body)() = nullptr;
};
visit* current_visit = nullptr;

RAMIE_SWITCHES_IDENTITY void visit_entry(arrival landed) {
  visit& v = *current_visit;
  first_arrival(landed, *v.away, [](thread_anchor*) {});
  for (;;) {
    v.body();
    switch_stack(&v.anchor, *v.away, v.home, [](thread_anchor*) {});
  }
}

void run_on(stack_block& stack, void (*body)()) {
  visit v;
  anchor_this_thread(v.anchor);
  v.away = &stack;
  v.body = body;
  current_visit = &v;
  switch_stack(&v.anchor, v.home, stack, [](thread_anchor*) {});
  current_visit = nullptr;
}

int visits = 0;

TEST_CASE("a pooled stack runs code, again and again", "[unit][stacks]") {
  stack_pool pool(&visit_entry);
  stack_block* const stack = pool.take(0);
  REQUIRE(stack != nullptr);
  visits = 0;
  run_on(*stack, [] { ++visits; });
  CHECK(visits == 1);
  pool.give_back(stack);
  CHECK(pool.take(0) == stack);  // hot stacks first
  pool.give_back(stack);
  CHECK(pool.count().taken == 0);
}

TEST_CASE("the promise can be used to its last kilobyte", "[unit][stacks]") {
  if (test::sanitized) LEFT_OUT("sanitizers make frames larger than what they are told");
  stack_pool pool(&visit_entry);
  stack_block* const stack = pool.take(stack_class_for(64 * 1024));
  REQUIRE(stack != nullptr);
  run_on(*stack, [] {
    volatile char frame[63 * 1024];
    for (std::size_t i = 0; i < sizeof frame; i += 1024) frame[i] = 1;
    visits = frame[0];
  });
  pool.give_back(stack);
  CHECK(visits == 1);
}

TEST_CASE("stacks beyond the hot limit are trimmed and work again", "[unit][stacks]") {
  stack_pool pool(&visit_entry, guard_kind::automatic, 1);
  stack_block* const a = pool.take(0);
  stack_block* const b = pool.take(0);
  pool.give_back(a);
  pool.give_back(b);
  CHECK(pool.count().trimmed == 0);  // giving back is cheap
  CHECK_FALSE(pool.trim(10));
  CHECK(pool.count().trimmed == (annotate::may_trim_stacks ? 1u : 0u));
  stack_block* const hot = pool.take(0);
  stack_block* const again = pool.take(0);
  REQUIRE(hot != nullptr);
  REQUIRE(again != nullptr);
  visits = 0;
  run_on(*again, [] { ++visits; });
  CHECK(visits == 1);
  pool.give_back(again);
  pool.give_back(hot);
}

TEST_CASE("a batch of stacks is small while few are out", "[unit][stacks]") {
  stack_pool pool(&visit_entry);
  std::vector<stack_block*> taken;
  std::size_t largest = 0;
  const auto take = [&](std::uint32_t wanted) {
    std::uint32_t count = wanted;
    const auto before = taken.size();
    for (auto* s = pool.take_batch(0, count); s != nullptr; s = s->next.get()) taken.push_back(s);
    CHECK(taken.size() - before == count);
    CHECK(pool.count().taken == taken.size());
    return count;
  };
  while (taken.size() < 300) {
    const auto out = taken.size();
    const auto count = take(16);
    REQUIRE(count >= 1);
    CHECK(count <= std::max<std::size_t>(1, out / 8));
    largest = std::max<std::size_t>(largest, count);
  }
  CHECK(largest == 16);
  visits = 0;
  for (auto* s : taken) run_on(*s, [] { ++visits; });
  CHECK(visits == static_cast<int>(taken.size()));
  // Hot ones come as many as are wanted.
  const auto all = taken.size();
  for (std::size_t i = 0; i + 1 < 20; ++i) taken[i]->next.set(taken[i + 1]);
  pool.give_batch(*taken[0], *taken[19], 20);
  taken.erase(taken.begin(), taken.begin() + 20);
  CHECK(take(16) == 16);
  CHECK(take(16) == 4);
  CHECK(taken.size() == all);
  for (auto* s : taken) pool.give_back(s);
  CHECK(pool.count().taken == 0);
}

// By the kernel, for us.
bool can_be_read(const void* address) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const bool can = ::write(ends[1], address, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return can;
}

// Whether MADV_GUARD_INSTALL does what it says.
bool kernel_has_guards() {
  constexpr int guard_install = 102;
  void* const page = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const bool has = ::madvise(page, page_size, guard_install) == 0 && !can_be_read(page);
  ::munmap(page, page_size);
  return has;
}

TEST_CASE("a guard page is named by its address, whichever way it was made", "[unit][stacks]") {
  for (const auto kind : {guard_kind::automatic, guard_kind::mprotect}) {
    const char* guard = nullptr;
    {
      stack_pool pool(&visit_entry, kind);
      stack_block* const stack = pool.take(2);
      REQUIRE(stack != nullptr);
      guard = stack->low - 1;
      CHECK(promise_of_guard_at(guard) == 64 * 1024);
      CHECK(promise_of_guard_at(stack->low) == 0);
      CHECK(promise_of_guard_at(&visits) == 0);
      pool.give_back(stack);
    }
    CHECK(promise_of_guard_at(guard) == 0);  // the pool is gone
  }
}

// A layer between us and the kernel may answer 0 to advice that it does not know.
TEST_CASE("a guard that is granted and is none is found out", "[unit][stacks]") {
  using ramie::platform::fault;
  const struct all_well {
    ~all_well() { faults::plan_for(fault::guard_feigned, 0, 0); }
  } afterwards;
  faults::plan_for(fault::guard_feigned, 1, faults::for_good);
  stack_pool pool(&visit_entry);
  CHECK_FALSE(pool.count().guarded_by_madvise);
  CHECK((faults::asked(fault::guard_feigned) == 1));
  stack_block* const stack = pool.take(2);
  REQUIRE(stack != nullptr);
  CHECK_FALSE(can_be_read(stack->low - 1));
  CHECK(can_be_read(stack->low));
  pool.give_back(stack);
  faults::plan_for(fault::guard_feigned, 0, 0);
  stack_pool again(&visit_entry);
  CHECK(again.count().guarded_by_madvise == kernel_has_guards());
  stack_block* const other = again.take(2);
  REQUIRE(other != nullptr);
  CHECK_FALSE(can_be_read(other->low - 1));
  again.give_back(other);
}

TEST_CASE("the limit of mappings is an answer, not a crash", "[unit][stacks]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind map memory themselves");
  stack_pool pool(&visit_entry, guard_kind::mprotect);
  std::vector<stack_block*> taken;
  while (stack_block* const s = pool.take(0)) {
    taken.push_back(s);
    if (taken.size() > 200'000) break;
  }
  CHECK(taken.size() > 1'000);
  CHECK(taken.size() < 200'000);  // vm.max_map_count stops it
  pool.give_back(taken.back());
  taken.pop_back();
  stack_block* const again = pool.take(0);
  CHECK(again != nullptr);
  if (again != nullptr) pool.give_back(again);
  for (auto* s : taken) pool.give_back(s);
}

TEST_CASE("exception state belongs to the stack, not the thread", "[unit][context]") {
  stack_pool pool(&visit_entry);
  stack_block* const stack = pool.take(2);
  REQUIRE(stack != nullptr);
  bool ours = false;
  try {
    throw 1;
  } catch (int) {
    run_on(*stack, [] {
      try {
        throw 2;
      } catch (int) {
        visits = std::current_exception() != nullptr && std::uncaught_exceptions() == 0 ? 1 : 0;
      }
    });
    try {
      std::rethrow_exception(std::current_exception());
    } catch (int value) {
      ours = value == 1;
    }
  }
  pool.give_back(stack);
  CHECK(visits == 1);
  CHECK(ours);
}

TEST_CASE("the asymmetric fence orders store and load on both sides", "[unit][fence]") {
  choose_fences();
  std::atomic<int> x{0}, y{0};
  int both_missed = 0;
  for (int round = 0; round < test::scaled(2'000, 200); ++round) {
    x = y = 0;
    int seen_y = -1;
    std::atomic<bool> go{false};
    std::thread often([&] {
      while (!go.load(std::memory_order_relaxed)) {
      }
      x.store(1, std::memory_order_relaxed);
      light_fence();
      seen_y = y.load(std::memory_order_relaxed);
    });
    go = true;
    y.store(1, std::memory_order_relaxed);
    heavy_fence();
    const int seen_x = x.load(std::memory_order_relaxed);
    often.join();
    both_missed += seen_x == 0 && seen_y == 0;
  }
  CHECK(both_missed == 0);
}

TEST_CASE("a lock that was granted to a party does not take its successor for it", "[unit][lock]") {
  using ramie::platform::biased_lock;
  using ramie::platform::lock_user;
  ramie::platform::choose_fences();  // no lock is granted before
  ramie::platform::lock_family family;
  biased_lock lock;
  alignas(lock_user) std::byte memory[sizeof(lock_user)];
  const auto take = [&lock](const lock_user& me) {
    const auto how = lock.lock(&me);
    lock.unlock(how, &me);
    return how;
  };
  const auto* const former = new (memory) lock_user{&family, 2};
  for (std::uint32_t i = 0; i < biased_lock::first_run; ++i) CHECK(take(*former) == biased_lock::hold::spin);
  CHECK(take(*former) == biased_lock::hold::grant);
  const auto* const successor = new (memory) lock_user{&family, 0};
  CHECK(take(*successor) == biased_lock::hold::spin);  // and revokes
  for (std::uint32_t i = 1; i < 2 * biased_lock::first_run; ++i) CHECK(take(*successor) == biased_lock::hold::spin);
  CHECK(take(*successor) == biased_lock::hold::grant);
}

TEST_CASE("a lock is granted to no stranger, no other family and no party beyond its cells", "[unit][lock]") {
  using ramie::platform::biased_lock;
  using ramie::platform::lock_user;
  ramie::platform::choose_fences();  // no lock is granted before
  ramie::platform::lock_family family, other;
  biased_lock lock;
  const auto ever_granted = [&lock](const lock_user* me) {
    bool granted = false;
    for (std::uint32_t i = 0; i < 4 * biased_lock::first_run; ++i) {
      const auto how = lock.lock(me);
      granted = granted || how == biased_lock::hold::grant;
      lock.unlock(how, me);
    }
    return granted;
  };
  const lock_user mine{&family, 0}, far{&family, biased_lock::cells}, foreign{&other, 1};
  CHECK_FALSE(ever_granted(nullptr));
  CHECK_FALSE(ever_granted(&far));
  CHECK(ever_granted(&mine));
  CHECK_FALSE(ever_granted(&foreign));
}

TEST_CASE("revocations ration the grants of a family", "[unit][lock]") {
  using ramie::platform::lock_family;
  const std::chrono::steady_clock::time_point start{std::chrono::hours(1)};
  const auto granted = [](lock_family& f, std::chrono::steady_clock::time_point now) {
    std::uint32_t count = 0;
    if (!f.next_period(now)) return count;
    while (f.left() != 0 && f.may_grant()) ++count;
    return count;
  };
  lock_family f;
  CHECK(granted(f, start) == lock_family::most_grants);
  CHECK(granted(f, start) == 0);  // not yet
  for (int i = 0; i < 3; ++i) f.had_to_revoke();
  CHECK(granted(f, start + lock_family::period) == lock_family::most_grants / 8);
  CHECK(granted(f, start + 2 * lock_family::period) == lock_family::most_grants / 4);  // a period of peace
  for (int i = 0; i < 40; ++i) f.had_to_revoke();
  CHECK(granted(f, start + 3 * lock_family::period) == 1);  // never none: peace may have come
}

TEST_CASE("only waits for a party that uses the lock count", "[unit][lock]") {
  ramie::platform::choose_fences();  // no lock is granted before
  lock_family family;
  const lock_user habitual{&family, 0}, other{&family, 1};
  biased_lock lock;
  for (std::uint32_t i = 0; i <= biased_lock::first_run; ++i) biased_lock::guard hold(lock, &habitual);
  { biased_lock::guard hold(lock, &other); }  // asks, and revokes
  CHECK(other.waited_ns == 0);
  std::atomic<bool> has_waited{false};
  std::thread beside([&] {
    while (other.waited_ns == 0) biased_lock::guard hold(lock, &other);
    has_waited = true;
  });
  while (!has_waited) {
    for (int i = 0; i < 100; ++i) biased_lock::guard hold(lock, &habitual);
    std::this_thread::yield();
  }
  beside.join();
  CHECK(other.waited_ns > 0);
}

// C29
TEST_CASE("each revocation doubles what the next grant takes", "[unit][lock]") {
  choose_fences();  // no lock is granted before, and a runtime has done it only if it came first
  biased_lock lock;
  lock_family family;
  const lock_user me{&family, 0};
  std::vector<std::uint32_t> took;
  for (int round = 0; round < 4; ++round) {
    std::uint32_t times = 0;
    for (bool granted = false; !granted; granted = lock.enter_granted(&me), ++times) biased_lock::guard once(lock, &me);
    lock.leave_granted(&me);
    took.push_back(times);
    biased_lock::guard stranger(lock, nullptr);
  }
  CHECK(took == std::vector<std::uint32_t>{64, 128, 256, 512});
}

// C30
TEST_CASE("a granted lock that is taken twice ends the program", "[unit][lock][death]") {
  test::dies_saying(
      [] {
        choose_fences();
        biased_lock lock;
        lock_family family;
        const lock_user me{&family, 0};
        for (std::uint32_t i = 0; i < biased_lock::first_run; ++i) biased_lock::guard once(lock, &me);
        biased_lock::guard outer(lock, &me);
        biased_lock::guard inner(lock, &me);
      },
      "a lock is taken twice");
}

}  // namespace unit_platform
