// SPDX-License-Identifier: BSL-1.0
// Clauses of spec/ that no other test would miss.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <system_error>
#include <vector>

#include <ramie/platform/biased_lock.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <sched/hot.hpp>
#include <support/allocations.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_spec_gaps {

using namespace ramie::detail;
using test::with_workers;

void dies_saying(void (*body)(), const std::string& what) {
  if (test::sanitized || test::under_valgrind()) return;
  const auto end = test::in_child(body);
  INFO(end.errors);
  CHECK(end.signal == SIGABRT);
  CHECK(end.errors.find(what) != std::string::npos);
}

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

// C29
TEST_CASE("each revocation doubles what the next grant takes", "[conformance][lock]") {
  using ramie::platform::biased_lock;
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
TEST_CASE("builds with checks notice a misplaced fiber and a changed rounding mode", "[conformance][death]") {
  if (!ramie::platform::debug_checks) return;
  dies_saying(
      [] {
        ramie::runtime rt(with_workers(1));
        static fiber f;
        f.word.initialise(0);
        rt.internals().schedule_outside(f);
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

// A2
TEST_CASE("a parked fiber says what it waits for, and no longer than that", "[conformance][wake]") {
  std::string meanwhile, kind;
  bool afterwards = true;
  ramie::run(with_workers(1), [&] {
    ramie::channel<int> c(0);
    fiber* who = nullptr;
    ramie::nursery n;
    n.spawn([&] {
      who = current_fiber();
      (void)c.recv();
      afterwards = who->reason.get() != nullptr;
    });
    ramie::yield();
    const wait_reason* const why = who->reason.get();
    kind = why != nullptr ? why->kind : "";
    meanwhile = why != nullptr ? why->where.file_name() : "";
    c.send(1);
    n.join();
  });
  CHECK(kind == "channel recv");
  CHECK(meanwhile.find("operations.cpp") != std::string::npos);
  CHECK_FALSE(afterwards);
}

// A4
TEST_CASE("what is ready is not waited for", "[conformance][wake]") {
  struct ready final : waitable {
    int asked = 0, published = 0;
    bool try_complete(waiter&) override { return ++asked != 0; }
    bool publish(waiter&) override { return ++published == 0; }
    void unpublish(waiter&) noexcept override {}
  } now;
  static const wait_reason why{"ready"};
  std::uint64_t tickets = 99;
  bool completed = false;
  const auto wait = [&] {
    const auto before = self().wait_ticket.load();
    waiter node;
    completed = fiber_wait(now, node, why) == wait_result::completed;
    tickets = self().wait_ticket.load() - before;
  };
  wait();
  CHECK((completed && tickets == 0));
  ramie::run(with_workers(1), wait);
  CHECK((completed && tickets == 0));
  CHECK(now.asked == 2);
  CHECK(now.published == 0);
}

// A7
TEST_CASE("a waiter is taken out of its list once, however often it is tried", "[conformance][wake]") {
  waiter first, second, never;
  wait_list list;
  list.add(first);
  list.add(second);
  list.remove(first);
  list.remove(first);
  list.remove(never);
  CHECK(list.first() == &second);
  CHECK(second.previous == nullptr);
  list.remove(second);
  list.remove(second);
  CHECK(list.empty());
  list.add(first);  // nothing of the old life is left
  CHECK(list.first() == &first);
  CHECK(first.next == nullptr);
}

// A27
TEST_CASE("a deadline that can't be kept is refused before anything is listed", "[conformance][channel][time]") {
  namespace faults = ramie::platform::faults;
  bool refused = false, nobody_listed = false, kept = false;
  ramie::run(with_workers(1), [&] {
    ramie::channel<int> c(0);
    faults::plan_for(ramie::platform::fault::thread, 1, faults::for_good);  // the keeper's
    try {
      (void)c.recv_for(std::chrono::milliseconds(1));
    } catch (const std::system_error&) {
      refused = true;
    }
    faults::plan_for(ramie::platform::fault::thread, 0, 0);
    nobody_listed = c.try_send(1) == ramie::channel_status::would_block;
    kept = c.recv_for(std::chrono::milliseconds(1)).status() == ramie::channel_status::timed_out;
  });
  CHECK(refused);
  CHECK(nobody_listed);
  CHECK(kept);
}

// A31
TEST_CASE("a thread that ends passes its proxy on, with its tickets", "[conformance][proxy]") {
  const fiber* first = nullptr;
  const fiber* second = nullptr;
  std::uint64_t tickets[2] = {};
  const auto wait_once = [](const fiber*& who, std::uint64_t& ticket) {
    std::thread([&] {
      who = &self();
      ramie::channel<int> c(0);
      (void)c.recv_for(std::chrono::nanoseconds(1));
      ticket = who->wait_ticket.load();
    }).join();
  };
  wait_once(first, tickets[0]);
  wait_once(second, tickets[1]);
  CHECK(first == second);
  CHECK(tickets[1] > tickets[0]);
}

// C20
TEST_CASE("a channel is one allocation, its operations are none", "[conformance][channel][memory]") {
  if (test::sanitized || test::under_valgrind()) return;
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

// A worker that has no thread, and fibers that never run: the parts of the scheduler by hand.
class still_worker {
 public:
  still_worker() : rt_(with_workers(1)) {
    (void)sched().idle.claim_parked();  // counted as searching: nobody is started for what is queued
    sched().injection.reserve(fibers.size());  // they are from no pool, which would have done it
    for (fiber& f : fibers) f.word.initialise_runnable(0);
  }
  [[nodiscard]] scheduler& sched() { return rt_.internals(); }
  [[nodiscard]] worker& w() { return *sched().workers[0]; }

  std::array<fiber, 12> fibers;

 private:
  ramie::runtime rt_;
};

// E9
TEST_CASE("a draining worker moves all it has to the injection queue", "[conformance][elastic]") {
  still_worker s;
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
  still_worker s;
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
  still_worker s;
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
