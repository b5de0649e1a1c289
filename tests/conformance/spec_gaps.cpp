// SPDX-License-Identifier: BSL-1.0
// Clauses of spec/ that no other test would miss.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <ramie/platform/biased_lock.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/ramie.hpp>
#include <sched/hot.hpp>
#include <support/allocations.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/reports.hpp>
#include <support/still_scheduler.hpp>
#include <support/test.hpp>

namespace conformance_spec_gaps {

using namespace ramie::detail;
using test::dies_saying;
using test::with_workers;

// L5
TEST_CASE("references that can't be end the program", "[conformance][state][death]") {
  dies_saying(
      [] {
        fiber_word w;
        w.initialise(0);
        (void)w.release();
        (void)w.release();
      },
      "released more often than retained");
  dies_saying(
      [] {
        fiber_word w;
        w.initialise(0);
        (void)w.release();
        w.retain();
      },
      "references: corruption");
}

// L9, Q21
TEST_CASE("a runtime that ends with a frame missing or a fiber queued ends the program", "[conformance][death]") {
  dies_saying(
      [] {
        ramie::runtime rt(with_workers(1));
        (void)rt.internals().frames.take_one();
      },
      "1 fiber frames did not come back before their runtime ended");
  dies_saying(
      [] {
        static fiber f;
        ramie::runtime rt(with_workers(1));
        rt.internals().injection.reserve(1);
        rt.internals().injection.put(&f);
      },
      "fibers are still queued while their runtime ends");
}

// L13
TEST_CASE("a fiber that ends inside a scope of its own ends the program", "[conformance][cancel][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          alignas(cancel_scope) static std::byte room[sizeof(cancel_scope)];
          ::new (room) cancel_scope;
        });
      },
      "ended inside a scope or shield it opened");
}

// X11
TEST_CASE("a scope that is not closed by its block ends the program", "[conformance][cancel][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          auto outer = std::make_unique<cancel_scope>();
          auto inner = std::make_unique<cancel_scope>();
          outer.reset();
        });
      },
      "was not closed in the block and fiber that opened it");
}

// N1
TEST_CASE("a nursery destroyed by another fiber ends the program", "[conformance][nursery][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          auto mine = std::make_unique<ramie::nursery>();
          ramie::nursery other;
          other.spawn([&] { mine.reset(); });
          other.join();
        });
      },
      "was not destroyed by the");
}

// X6, X7
TEST_CASE("who has left a cancelled scope has swallowed nothing when the next one is cancelled",
          "[conformance][cancel]") {
  const test::reports reported;
  ramie::runtime rt(with_workers(1));
  int ended_early = 0;
  rt.run([&] {
    for (int i = 0; i < 3; ++i) {
      const auto passed = ramie::now() - std::chrono::nanoseconds(1);
      ended_early += !ramie::with_deadline(passed, [] { ramie::check_cancelled(); });
    }
  });
  CHECK(ended_early == 3);
  CHECK(rt.stats().total.cancel_redelivered == 0);
  CHECK(reported.taken().empty());
}

// N22, X10
TEST_CASE("a stop token that is asked for after the shutdown is stopped", "[conformance][nursery][shutdown]") {
  bool before = true, after = false;
  ramie::run(with_workers(1), [&] {
    ramie::nursery fresh, n;
    before = fresh.get_stop_token().stop_requested();
    (void)n.shutdown(std::chrono::seconds(1));
    after = n.get_stop_token().stop_requested();
    n.join();
    fresh.join();
  });
  CHECK_FALSE(before);
  CHECK(after);
}

// C29
TEST_CASE("each revocation doubles what the next grant takes", "[conformance][lock]") {
  using ramie::platform::biased_lock;
  ramie::platform::choose_fences();  // no lock is granted before, and a runtime has done it only if it came first
  biased_lock lock;
  ramie::platform::lock_family family;
  const ramie::platform::lock_party me{&family, 0};
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
TEST_CASE("a granted lock that is taken twice ends the program", "[conformance][lock][death]") {
  dies_saying(
      [] {
        using ramie::platform::biased_lock;
        ramie::platform::choose_fences();
        biased_lock lock;
        ramie::platform::lock_family family;
        const ramie::platform::lock_party me{&family, 0};
        for (std::uint32_t i = 0; i < biased_lock::first_run; ++i) biased_lock::guard once(lock, &me);
        biased_lock::guard outer(lock, &me);
        biased_lock::guard inner(lock, &me);
      },
      "a lock is taken twice");
}

// F2, T17, K20. Only builds with checks look.
TEST_CASE("builds with checks notice a misplaced fiber and a changed rounding mode", "[conformance][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  dies_saying(
      [] {
        ramie::runtime rt(with_workers(1));
        static fiber f;
        f.word.initialise(0);
        rt.internals().schedule_outside(f);
      },
      "is queued while INIT (F2)");
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          static fiber f;
          f.word.initialise(0);
          worker& here = *this_worker();
          here.sched.schedule_woken(here, f);
          ::_exit(0);  // before the worker comes upon it
        });
      },
      "is queued while INIT (F2)");
#if defined(__x86_64__) && !defined(RAMIE_USE_FCONTEXT)
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          ramie::nursery n;
          n.spawn([] {});
          std::fesetround(FE_UPWARD);
          ramie::yield();
        });
      },
      "changed floating-point environment");
#endif
}

// C20
TEST_CASE("a channel is one allocation, its operations are none", "[conformance][channel][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  std::uint64_t making = 99, using_it = 99;
  ramie::run(with_workers(1), [&] {
    const auto before = test::allocations();
    ramie::channel<std::array<long, 40>> c(2);
    making = test::allocations() - before;
    ramie::channel<int> back(0);
    ramie::nursery n;
    n.spawn([&] {
      for (int i = 0; i < 100; ++i) (void)c.recv(), back.send(i);
    });
    const auto round = [&] {
      c.send({});
      (void)back.recv();
    };
    round();
    const auto at_work = test::allocations();
    for (int i = 1; i < 100; ++i) round();
    using_it = test::allocations() - at_work;
    n.join();
  });
  CHECK(making == 1);
  CHECK(using_it == 0);
}

// Q16
TEST_CASE("what was spawned last goes first when its spawner waits, but not for ever", "[conformance][fairness]") {
  int most = 0;
  ramie::run(with_workers(1), [&] {
    // Many short polls: the injection queue's turn, which would come in between, becomes rare.
    for (int i = 0; i < test::scaled(10'000, 1'000); ++i) {
      ramie::nursery n;
      n.spawn([] {});
      n.join();
    }
    ramie::channel<int> done(0);
    for (int round = 0; round < test::scaled(10, 3); ++round) {
      int before_stranger = 0;
      bool stranger_ran = false;
      ramie::nursery n;
      n.spawn([&] { stranger_ran = true; });
      for (int i = 0; i < 200; ++i) {
        n.spawn([&] { done.send(1); });
        (void)done.recv();
        before_stranger += !stranger_ran;
      }
      n.join();
      most = std::max(most, before_stranger);
    }
  });
  CHECK(most >= 1);
  CHECK(most <= static_cast<int>(max_fresh_polls));
}

// I6, Q2
TEST_CASE("a worker that could not be started can be started later", "[conformance][workers]") {
  namespace faults = ramie::platform::faults;
  ramie::runtime rt(with_workers(1));
  faults::plan_for(ramie::platform::fault::thread, 1, faults::for_good);
  CHECK_THROWS_AS(rt.run([] {}), std::system_error);
  faults::plan_for(ramie::platform::fault::thread, 0, 0);
  const auto counts = rt.internals().idle.look();
  CHECK(counts.parked() == 1);
  CHECK(counts.searching() == 0);
  if (counts.parked() == 1) CHECK(rt.run([] { return 7; }) == 7);
}

// E9
TEST_CASE("a draining worker moves all it has to the injection queue", "[conformance][elastic]") {
  test::still_scheduler s;
  for (std::size_t i = 1; i < 12; ++i) s.w().ring.push(&s.fibers[i], s.w().overflow);
  (void)s.w().newest.put(&s.fibers[0]);
  s.sched().drain(s.w());
  CHECK(s.w().state.load() == worker_state::draining);
  CHECK(s.w().ring.empty());
  CHECK(s.w().newest.empty());
  CHECK(s.sched().retired_workers.load() == 1);
  fiber* out[12] = {};
  REQUIRE(s.sched().injection.take(out, 12) == 12);
  int in_order = 0;
  for (std::size_t i = 0; i < 12; ++i) in_order += out[i] == &s.fibers[i];
  CHECK(in_order == 12);
}

// IO20
TEST_CASE("a worker with operations under way does not retire", "[conformance][elastic][io]") {
  test::still_scheduler s;
  REQUIRE(s.sched().prepare_io(s.w(), timekeeper::never) == 0);
  ramie::platform::io_backend& backend = *s.w().io.backend();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  char c = 0;
  ramie::platform::io_operation op;
  op.code = ramie::platform::io_code::read;
  op.fd = ends[0];
  op.memory = &c;
  op.count = 1;
  s.sched().live.store(2);  // one more than there need be
  backend.submit(op);
  CHECK(!s.sched().may_retire(s.w()));
  REQUIRE(::write(ends[1], "x", 1) == 1);
  ramie::platform::io_operation* done[1] = {};
  while (backend.wait(done, ramie::platform::io_backend::never) == 0) {
  }
  CHECK(s.sched().may_retire(s.w()));
  CHECK(s.sched().live.load() == 1);
  for (const int end : ends) ::close(end);
}

// Q10, Q12, Q13
TEST_CASE("the injection queue's turn takes one fiber while the ring has some, else a batch", "[conformance][queues]") {
  test::still_scheduler s;
  for (std::size_t i = 0; i < 11; ++i) s.sched().injection.put(&s.fibers[i]);
  s.w().ring.push(&s.fibers[11], s.w().overflow);
  s.w().count.polls.set(interval_for(initial_task_estimate.count()) - 1);  // its turn comes with the next poll
  CHECK(s.sched().next_local(s.w()) == &s.fibers[0]);
  CHECK(s.sched().injection.size() == 10);
  CHECK(s.sched().next_local(s.w()) == &s.fibers[11]);
  CHECK(s.sched().next_local(s.w()) == &s.fibers[1]);  // nothing local: its share, which is all of it
  CHECK(s.sched().injection.empty());
  CHECK(s.w().ring.size() == 9);
  while (s.w().ring.pop_old() != nullptr) {
  }
}

}  // namespace conformance_spec_gaps
