// SPDX-License-Identifier: BSL-1.0
// Fibers that block their worker are named. Nobody sleeps here: who blocks is let go by the report about it.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/scheduler_access.hpp>
#include <support/fiber_group.hpp>
#include <support/held_calls.hpp>
#include <support/test.hpp>
#include "runtime/src/task/extras.hpp"

namespace conformance_blocking_stalls {

// Takes reports of stalls while it lives. Those about one fiber let go who is held: a slow machine stalls others, too.
class stall_reports {
 public:
  explicit stall_reports(std::string name) : name_(std::move(name)) {
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
    for (const auto& r : all_) count += is_about(r, name);
    return count;
  }
  [[nodiscard]] ramie::report first_about(const std::string& name) {
    std::lock_guard hold(mutex_);
    for (const auto& r : all_) {
      if (is_about(r, name)) return r;
    }
    return {};
  }
  test::held_calls held;

 private:
  static bool is_about(const ramie::report& r, const std::string& name) { return r.who.find(name) != std::string::npos; }
  void add(const ramie::report& r) {
    {
      std::lock_guard hold(mutex_);
      all_.push_back(r);
    }
    if (is_about(r, name_)) held.let_go(1);
  }
  static inline std::atomic<stall_reports*> current{nullptr};
  const std::string name_;
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
    stall_reports reported("'hog'");
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
    const auto first = reported.first_about("'hog'");
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
  stall_reports reported("'hog'");
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

// While it waits. Before and after that the machine may hold it up, like anybody.
TEST_CASE("a fiber that calls by way of the pool is not reported", "[conformance][blocking][stalls]") {
  stall_reports reported("'polite'");
  ramie::runtime rt(reporting(1, false));
  int before = 0, after = -1;
  rt.run([&] {
    ramie::nursery n;
    std::atomic<bool> done{false};
    std::atomic<long> turns{0};
    n.spawn({.name = "polite"}, [&] {
      ramie::blocking([&] {
        const long so_far = turns;
        test::until([&] { return turns > so_far; });  // the only worker runs others: the fiber waits
        before = reported.about("'polite'");
        const auto since = looks(rt);
        test::until([&] { return looks(rt) > since + 15; });
        after = reported.about("'polite'");
      });
      done = true;
    });
    for (int i = 0; i < 2; ++i) {  // one is always queued, so the monitor looks
      n.spawn([&] {
        for (; !done; ++turns) ramie::yield();
      });
    }
    n.join();
  });
  CHECK(after == before);
}

// The guard of such a static is a lock of the language's own, which blocks threads. docs/hazards.md says what to use.
TEST_CASE("a fiber that blocks behind a static whose initialiser waits is named", "[conformance][blocking][stalls]") {
  stall_reports reported("'latecomer'");
  const ramie::channel<int> go(0);
  int got[2] = {}, before = 0, after = -1;  // reports about the initialiser, while it waits
  std::thread opener([&] {
    test::until([&] { return reported.about("'latecomer'") == 1; });
    after = reported.about("'initialiser'");
    (void)go.send(7);
  });
  ramie::run(reporting(1, true), [&] {
    const auto use = [&go] {
      static const int value = *go.recv();
      return value;
    };
    ramie::nursery n;
    n.spawn({.name = "initialiser"}, [&] { got[0] = use(); });
    ramie::testing::wait_all_blocked();
    before = reported.about("'initialiser'");
    n.spawn({.name = "latecomer"}, [&] {
      n.spawn([] {});  // somebody who has to wait, so the monitor looks
      got[1] = use();
    });
    n.join();
  });
  opener.join();
  CHECK(got[0] == 7);
  CHECK(got[1] == 7);
  CHECK(after == before);
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
