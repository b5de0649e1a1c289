// SPDX-License-Identifier: BSL-1.0
// Fibers that block their worker are named. Nobody sleeps here: who blocks is let go by the report about it.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/scheduler_access.hpp>
#include <support/fiber_group.hpp>
#include <support/held_calls.hpp>
#include <support/test.hpp>
#include "runtime/src/task/extras.hpp"

namespace conformance_blocking_stalls {

// Takes reports of stalls while it lives.
class stall_reports {
 public:
  stall_reports() {
    current = this;
    former_ = ramie::set_report_handler([](const ramie::report& r) noexcept {
      if (r.kind == ramie::report_kind::stalled_worker) current.load()->add(r);
    });
  }
  ~stall_reports() { ramie::set_report_handler(former_); }
  stall_reports(const stall_reports&) = delete;
  stall_reports& operator=(const stall_reports&) = delete;

  // How many have such a name in them.
  [[nodiscard]] int about(const std::string& name) {
    std::lock_guard hold(mutex_);
    int count = 0;
    for (const auto& r : all_) count += r.who.find(name) != std::string::npos;
    return count;
  }
  [[nodiscard]] ramie::report first() {
    std::lock_guard hold(mutex_);
    return all_.at(0);
  }
  test::held_calls held;

 private:
  void add(const ramie::report& r) {
    {
      std::lock_guard hold(mutex_);
      all_.push_back(r);
    }
    held.let_go(1);
  }
  static inline std::atomic<stall_reports*> current{nullptr};
  std::mutex mutex_;
  std::vector<ramie::report> all_;
  ramie::report_handler former_;
};

ramie::options reporting(unsigned workers, bool elastic) {
  ramie::options o;
  o.workers = workers;
  o.elastic = elastic;
  o.report_stalls = true;
  return o;
}

TEST_CASE("a fiber that holds its worker is named, with its site", "[conformance][blocking][stalls]") {
  for (const bool elastic : {true, false}) {
    stall_reports reported;
    std::uint32_t number = 0;
    ramie::run(reporting(1, elastic), [&] {
      ramie::nursery n;
      n.spawn({.name = "hog"}, [&] {
        number = ramie::this_fiber::number();
        n.spawn([] {});  // somebody who has to wait
        reported.held.call();
      });
      n.join();
    });
    CHECK(reported.about("'hog'") == 1);
    const auto first = reported.first();
    INFO(first.who);
    CHECK(first.kind == ramie::report_kind::stalled_worker);
    CHECK(first.who.find("fiber #" + std::to_string(number) + " ") == 0);
    CHECK(first.who.find("blocking_stalls.cpp:") != std::string::npos);
    CHECK(first.text == "for 100 ms");
  }
}

// Looks of the monitor so far.
std::uint64_t looks(const ramie::runtime& rt) {
  const auto p = rt.stats().pressure;
  return p.gate_passes + p.blocked_no_work + p.blocked_nonpositive + p.blocked_idle_capacity + p.blocked_not_stuck +
         p.blocked_at_limit;
}

TEST_CASE("a stall is reported once, however long it lasts", "[conformance][blocking][stalls]") {
  stall_reports reported;
  ramie::runtime rt(reporting(1, true));
  rt.run([&] {
    ramie::nursery n;
    std::atomic<int> inside{0}, let_go{0};
    for (int i = 0; i < 2; ++i) {  // as many as there can be workers
      n.spawn({.name = "hog"}, [&] {
        ++inside;
        test::until([&] { return inside == 2; });
        n.spawn([] {});  // nobody is there to run it, so the monitor goes on looking
        reported.held.call();
        ++let_go;
        test::until([&] { return let_go == 2; });
        const auto since = looks(rt);
        test::until([&] { return looks(rt) > since + 15; });
      });
    }
    n.join();
  });
  CHECK(reported.about("'hog'") == 2);
}

TEST_CASE("a fiber that calls by way of the pool is not reported", "[conformance][blocking][stalls]") {
  stall_reports reported;
  ramie::runtime rt(reporting(1, true));
  rt.run([&] {
    ramie::nursery n;
    std::atomic<bool> done{false};
    n.spawn({.name = "polite"}, [&] {
      ramie::blocking([&] {
        const auto since = looks(rt);
        test::until([&] { return looks(rt) > since + 15; });
      });
      done = true;
    });
    for (int i = 0; i < 2; ++i) {  // one is always queued, so the monitor looks
      n.spawn([&] {
        while (!done) ramie::yield();
      });
    }
    n.join();
  });
  CHECK(reported.about("'polite'") == 0);
}

// The guard of such a static is a lock of the language's own, which blocks threads. docs/hazards.md says what to use.
TEST_CASE("a fiber that blocks behind a static whose initialiser waits is named", "[conformance][blocking][stalls]") {
  stall_reports reported;
  const ramie::channel<int> go(0);
  int got[2] = {};
  std::thread opener([&] {
    test::until([&] { return reported.about("'latecomer'") == 1; });
    (void)go.send(7);
  });
  ramie::run(reporting(1, true), [&] {
    const auto use = [&go] {
      static const int value = *go.recv();
      return value;
    };
    std::atomic<bool> begun{false};
    ramie::nursery n;
    n.spawn({.name = "initialiser"}, [&] {
      begun = true;
      got[0] = use();
    });
    while (!begun) ramie::yield();
    n.spawn({.name = "latecomer"}, [&] {
      n.spawn([] {});  // somebody who has to wait, so the monitor looks
      got[1] = use();
    });
    n.join();
  });
  opener.join();
  CHECK(got[0] == 7);
  CHECK(got[1] == 7);
  CHECK(reported.about("'initialiser'") == 0);
}

// What the monitor does, as often as it can be done, while fibers with and without names come and go.
TEST_CASE("a fiber may end while it is being named", "[conformance][blocking][stalls]") {
  using namespace ramie::runtime_internal;
  ramie::runtime rt(test::with_workers(2));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread observer([&] {
    auto& sched = scheduler_of(rt);
    while (!stop) {
      for (const auto& w : sched.pool.workers()) {
        const fiber* const f = w->current.get();
        if (f == nullptr) continue;
        (void)sched.frames.count();
        const std::string who = describe_if_at(w->current, *f);
        if (!who.empty() && who.find("fiber #") != 0) ++wrong;
      }
    }
  });
  rt.run([&] {
    static ramie::fiber_local<int> value;
    for (int round = 0; round < test::scaled(200, 40); ++round) {
      ramie::nursery n;
      for (int i = 0; i < 30; ++i) {
        if (i % 3 == 0) n.spawn({.name = "a name that is too long to be kept in place"}, [] { ramie::yield(); });
        if (i % 3 == 1) n.spawn([] { ramie::this_fiber::set_name("given late, and too long for its place as well"); });
        if (i % 3 == 2) n.spawn([i] { value.set(i); });
      }
      n.join();
    }
  });
  stop = true;
  observer.join();
  CHECK(wrong == 0);
}

}  // namespace conformance_blocking_stalls
