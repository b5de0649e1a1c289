// SPDX-License-Identifier: BSL-1.0
// Misuse, exhaustion, stalled workers, idleness, exceptions across threads.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <ramie/timeout.hpp>
#include <support/scheduler_access.hpp>
#include <support/allocations.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_limits {

using namespace ramie::runtime_internal;
using test::fiber_group;
using test::with_workers;

TEST_CASE("options that can't work are refused", "[conformance][misuse]") {
  ramie::options o;
  o.workers = 0;
  CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
  o.workers = 513;
  CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
  o.workers = 1;
  o.stack_size = 4096;
  CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
  o.stack_size = 64 * 1024;
  o.root_stack_size = std::size_t{2} << 30;
  CHECK_THROWS_AS(ramie::runtime(o), ramie::usage_error);
}

TEST_CASE("a spawn with an impossible stack size is refused", "[conformance][misuse]") {
  ramie::runtime rt(with_workers(1));
  int refused = 0, ran = 0;
  rt.run([&] {
    fiber_group c(rt);
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{2} << 30}) {
      try {
        c.spawn([] {}, size);
      } catch (const ramie::usage_error&) {
        ++refused;
      }
    }
    c.spawn([] {}, 16 * 1024);
    c.join();
    ran = c.ran();
  });
  CHECK(refused == 3);
  CHECK(ran == 1);
}

TEST_CASE("run inside a fiber is refused", "[conformance][misuse]") {
  ramie::runtime rt(with_workers(1));
  CHECK_THROWS_AS(rt.run([&] { rt.run([] {}); }), ramie::usage_error);
  CHECK_THROWS_AS(ramie::run([] { ramie::run([] {}); }), ramie::usage_error);
}

TEST_CASE("fiber calls on a plain thread do what a thread can", "[conformance][misuse]") {
  ramie::yield();
  ramie::check_cancelled();
  CHECK_FALSE(ramie::stop_requested());
  CHECK(ramie::this_fiber::number() == 0);
  ramie::shield harmless;
  CHECK_THROWS_AS(cancel_scope(), ramie::usage_error);
}

TEST_CASE("a time limit on a plain thread is refused by the name it was called by", "[conformance][misuse]") {
  const auto refusal = [](auto call) -> std::string {
    try {
      (void)call();
    } catch (const ramie::usage_error& e) {
      return e.what();
    }
    return "none";
  };
  const std::string why = ": called outside a fiber. Call it inside run().";
  CHECK(refusal([] { return ramie::with_deadline(ramie::deadline(), [] {}); }) == "ramie: with_deadline" + why);
  CHECK(refusal([] { return ramie::with_timeout(std::chrono::hours(1), [] {}); }) == "ramie: with_timeout" + why);
}

TEST_CASE("waiting inside the scheduler is fatal and says so", "[conformance][misuse][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    static constexpr fiber_ops waits_in_retire{[](fiber_record&) noexcept { return fiber_end::done; },
                                               [](fiber_record&, discard_cause) noexcept {},
                                               [](fiber_record&, cancel_scope&, const cancel_scope*) noexcept {
                                                 gate never;
                                                 test::wait_at(never);
                                               }};
    ramie::runtime rt(with_workers(1));
    fiber_record nobody;
    spawn(waits_in_retire, nobody, scheduler_of(rt).root_scope);
    for (;;) ::pause();
  });
  CHECK(end.signal == SIGABRT);
  CHECK(end.errors.find("must not wait") != std::string::npos);
}

[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : recurse(depth - 1) + frame[0];
}

TEST_CASE("a stack overflow names the fiber, its spawn site and its stack size", "[conformance][stacks][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    ramie::runtime rt(with_workers(1));
    rt.run([&] {
      fiber_group c(rt);
      c.spawn([] { std::printf("%d", recurse(1'000'000)); });
    });
  });
  CHECK(end.signal == SIGSEGV);
  INFO(end.errors);
  CHECK(end.errors.find("stack overflow in fiber #") != std::string::npos);
  CHECK(end.errors.find("limits.cpp") != std::string::npos);
  CHECK(end.errors.find("64 KiB") != std::string::npos);
}

TEST_CASE("without memory for stacks the fiber that needs one fails, the others go on",
          "[conformance][stacks][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    auto o = with_workers(1);
    o.elastic = false;
    o.root_stack_size = 256 * 1024;
    ramie::runtime rt(o);
    int ran = 0, failed = 0, in_order = 0;
    rt.run([&] {
      rlimit space = {};
      ::getrlimit(RLIMIT_AS, &space);
      long pages = 0;
      if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(f, "%ld", &pages) != 1) pages = 0;
        std::fclose(f);
      }
      space.rlim_cur = static_cast<rlim_t>(pages) * 4096 + (24u << 20);
      ::setrlimit(RLIMIT_AS, &space);
      gate door;
      fiber_group c(rt);
      for (int i = 0; i < 2'000; ++i) {
        c.spawn([&] {
          test::wait_at(door);
          ++in_order;
        });
      }
      for (int i = 0; i < 50; ++i) ramie::yield();
      door.open();
      c.join();
      ran = c.ran();
      failed = c.discarded(discard_cause::no_stack);
    });
    std::fprintf(stderr, "ran %d failed %d sum %d ordered %d\n", ran > 50, failed > 50, ran + failed, in_order == ran);
  });
  CHECK(end.signal == 0);
  CHECK(end.errors == "ran 1 failed 1 sum 2000 ordered 1\n");
}

TEST_CASE("a root without a stack throws stack_exhausted", "[conformance][stacks][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    auto o = with_workers(1);
    o.elastic = false;
    o.root_stack_size = std::size_t{1} << 30;
    ramie::runtime rt(o);
    rlimit space = {};
    ::getrlimit(RLIMIT_AS, &space);
    space.rlim_cur = 512u << 20;
    ::setrlimit(RLIMIT_AS, &space);
    try {
      rt.run([] {});
    } catch (const ramie::stack_exhausted& e) {
      std::fprintf(stderr, "%s", e.what());
    }
  });
  CHECK(end.errors.find("no stack for a fiber") != std::string::npos);
}

TEST_CASE("without threads the first spawn is a system_error", "[conformance][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);  // more than there is: no thread can start
    pthread_setattr_default_np(&huge);
    ramie::runtime rt(with_workers(2));
    for (int i = 0; i < 2; ++i) {
      try {
        rt.run([] { std::fprintf(stderr, "ran "); });
      } catch (const std::system_error&) {
        std::fprintf(stderr, "refused ");
      }
      pthread_attr_setstacksize(&huge, std::size_t{1} << 20);  // and then they can
      pthread_setattr_default_np(&huge);
    }
  });
  CHECK(end.signal == 0);
  CHECK(end.errors == "refused ran ");
}

TEST_CASE("when no further worker can start, the first does all the work", "[conformance][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    ramie::runtime rt(with_workers(4));
    rt.run([] {});  // one worker is there, or two: this thread may have come late to wake the first
    const unsigned there = rt.stats().live_workers;
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);
    pthread_setattr_default_np(&huge);
    int ran = 0;
    rt.run([&] {
      fiber_group c(rt);
      for (int i = 0; i < 1'000; ++i) c.spawn([] { ramie::yield(); });
      c.join();
      ran = c.ran();
    });
    std::fprintf(stderr, "%d fibers, %u more workers", ran, rt.stats().live_workers - there);
  });
  CHECK(end.signal == 0);
  CHECK(end.errors == "1000 fibers, 0 more workers");
}

// One worker, a fiber that blocks its thread until another fiber has run: only a replacement worker can
// run that one.
TEST_CASE("a blocked worker is replaced, and the pool shrinks again", "[conformance][elastic]") {
  ramie::runtime rt(test::one_elastic_worker());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  bool served = false;
  rt.run([&] {
    fiber_group c(rt);
    c.spawn([&] { served = ::write(ends[1], "x", 1) == 1; });
    char got = 0;
    if (::read(ends[0], &got, 1) != 1) got = 0;  // blocks the only worker
    c.join();
  });
  CHECK(served);
  test::until([&] { return rt.stats().pressure.promoted_workers >= 1; });  // counted when it may have done all this
  const auto grown = rt.stats();
  CHECK(grown.pressure.gate_passes >= grown.pressure.promoted_workers);
  CHECK(grown.pressure.positive_samples >= 1);
  // The root may end before its worker looks up: give it something to do until it has.
  test::until([&] {
    rt.run([] {});
    const auto seen = rt.stats();
    return seen.live_workers == 1 && seen.pressure.retired_workers >= 1;
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

// What a stalled worker has in its LIFO slot is not lost to the others.
TEST_CASE("a stalled worker's newest fiber is taken over", "[conformance][elastic]") {
  ramie::runtime rt(test::one_elastic_worker());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  bool served = false;
  rt.run([&] {
    gate door;
    fiber_group c(rt);
    c.spawn([&] {
      test::wait_at(door);
      served = ::write(ends[1], "x", 1) == 1;
    });
    ramie::yield();
    door.open();  // into this worker's LIFO slot
    char got = 0;
    if (::read(ends[0], &got, 1) != 1) got = 0;
    c.join();
  });
  CHECK(served);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("pressure is explained", "[conformance][elastic]") {
  ramie::runtime rt(test::one_elastic_worker());
  rt.run([&] {
    fiber_group c(rt);
    for (int i = 0; i < 2; ++i) {
      c.spawn([&] {
        // Busy but cooperative: work is queued, nobody is stuck.
        while (rt.stats().pressure.blocked_not_stuck < 2) ramie::yield();
      });
    }
  });
  const auto p = rt.stats().pressure;
  CHECK(p.blocked_not_stuck >= 2);
  CHECK(p.gate_passes >= p.promoted_workers);
  CHECK(p.current == 0);
}

// Every thread of an idle runtime blocks in a futex without a timeout: nothing will wake it but an unpark.
TEST_CASE("an idle runtime has no periodic wake-ups", "[conformance][idle]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind add threads of their own");
  ramie::runtime rt(with_workers(2));
  gate door;
  std::thread caller([&] {
    rt.run([&] {
      fiber_group c(rt);
      for (int i = 0; i < 1'000; ++i) c.spawn([&] { test::wait_at(door); });
      c.join();
    });
  });
  auto& sched = scheduler_of(rt);
  test::until([&] {
    return sched.pool.live() == 2 && sched.pool.idle().load().parked() == 2 &&
           sched.pool.idle().load().monitor_asleep() && !test::parts::somebody_pushes(sched.queues);
  });
  const auto self = std::to_string(::syscall(SYS_gettid));
  int asleep = 0, others = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto id = task.path().filename().string();
    if (id == self) continue;
    // The thread may still be on its way into the kernel, or, if its worker has retired, out of this list.
    while (std::filesystem::exists(task.path())) {
      std::ifstream in(task.path() / "syscall");
      std::string call, a1, a2, a3, a4;
      in >> call >> a1 >> a2 >> a3 >> a4;
      if (call == std::to_string(SYS_futex)) {
        ++others;
        asleep += a4 == "0x0";
        break;
      }
      std::this_thread::yield();
    }
  }
  CHECK(others >= 4);  // two workers, the monitor, the caller of run
  CHECK(asleep == others);
  door.open();
  caller.join();
}

TEST_CASE("exceptions survive parks and migrations", "[conformance][exceptions][chaos]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto o = with_workers(workers);
    o.chaos = ramie::chaos_mode{workers};
    ramie::runtime rt(o);
    std::atomic<int> wrong{0};
    const int fibers = 40, rounds = test::scaled(50, 10);
    // Nearly all of them on a quiet machine; a loaded one may not run the other workers at all for a while.
    const auto have_moved = [&] { return workers == 1 || rt.stats().total.migrations > static_cast<std::uint64_t>(fibers); };
    rt.run([&] {
      fiber_group c(rt);
      for (int i = 0; i < fibers; ++i) {
        c.spawn([&, i] {
          for (int k = 0; k < rounds || !have_moved(); ++k) {
            try {
              try {
                ramie::yield();
                throw i * 1000 + k;
              } catch (int first) {
                ramie::yield();  // parked inside a catch block, resumed on another thread
                if (first != i * 1000 + k || std::uncaught_exceptions() != 0) ++wrong;
                throw;  // must be ours
              }
            } catch (int again) {
              ramie::yield();
              if (again != i * 1000 + k) ++wrong;
            }
          }
        });
      }
      c.join();
      if (c.ran() != fibers) ++wrong;
    });
    CHECK(wrong == 0);
    CHECK(have_moved());
  }
}

TEST_CASE("chaos keeps every promise", "[conformance][chaos]") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto o = with_workers(2);
    o.chaos = ramie::chaos_mode{seed};
    ramie::runtime rt(o);
    std::atomic<int> through{0};
    rt.run([&] {
      gate door;
      fiber_group c(rt);
      for (int i = 0; i < 100; ++i) {
        c.spawn([&] {
          test::wait_at(door);
          through.fetch_add(1);
        });
      }
      for (int i = 0; i < 10; ++i) ramie::yield();
      door.open();
    });
    CHECK(through == 100);
  }
}

TEST_CASE("spawning, yielding, parking and waking allocate nothing in steady state", "[conformance][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  auto o = with_workers(1);
  o.elastic = false;
  ramie::runtime rt(o);
  struct tally : fiber_record {
    int left = 500;
  };
  static constexpr fiber_ops nothing{
      [](fiber_record&) noexcept {
        ramie::yield();
        return fiber_end::done;
      },
      [](fiber_record&, discard_cause) noexcept {},
      [](fiber_record& t, cancel_scope&, const cancel_scope*) noexcept { --static_cast<tally&>(t).left; }};
  std::uint64_t allocated = 99;
  rt.run([&] {
    const auto round = [&] {
      tally t;
      for (int i = 0; i < 500; ++i) spawn(nothing, t, scheduler_of(rt).root_scope);
      while (t.left != 0) ramie::yield();
    };
    round();
    round();
    const auto before = test::allocations();
    for (int i = 0; i < 10; ++i) round();
    allocated = test::allocations() - before;
  });
  CHECK(allocated == 0);
}

}  // namespace conformance_limits
