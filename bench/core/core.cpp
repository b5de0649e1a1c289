// SPDX-License-Identifier: BSL-1.0
// What the core costs, beside the floors of this machine and Boost.Fiber, all in one interleaved run.
//
//   core [rounds]     medians over rounds (default 7), one worker
//
// Floors: a switch of raw fcontexts, an uncontended fetch_add. The figures of docs/performance.md are
// scaled by them: must and aim are told for a switch of 4.7 ns and an RMW of 6.0 ns.
#include <mutex>

#include <ramie/runtime.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/this_fiber.hpp>
#include <sched/scheduler.hpp>
#include <support/rows.hpp>

#if defined(HAVE_BOOST_FIBER)
#include <support/boost_fiber.hpp>
#endif

namespace {

using namespace ramie::detail;
using bench::ns_each;
using bench::stopwatch;

// ramie -------------------------------------------------------------------------------------------------

const wait_reason waits{"bench"};

ramie::options one_worker() {
  ramie::options o;
  o.workers = 1;
  o.elastic = false;  // really one: the counters below are plain
  return o;
}

// Fibers that all run one function; the last to end opens the gate.
struct batch : fiber_record {
  void (*body)(batch&) = nullptr;
  long n = 0;
  int live = 0;
  gate ended;
  void* extra = nullptr;

  static fiber_end run(fiber_record& self) noexcept {
    auto& b = static_cast<batch&>(self);
    b.body(b);
    return fiber_end::done;
  }
  static void discard(fiber_record&, discard_cause) noexcept {}
  static void retire(fiber_record& self, cancel_scope&, const cancel_scope*) noexcept {
    auto& b = static_cast<batch&>(self);
    if (--b.live == 0) b.ended.open();
  }
  static constexpr fiber_ops ops{run, discard, retire};
};

double ramie_yield(int fibers, long turns) {
  ramie::runtime rt(one_worker());
  return rt.run([&] {
    batch b;
    b.n = turns;
    b.live = fibers;
    b.body = [](batch& self) {
      for (long i = 0; i < self.n; ++i) ramie::yield();
    };
    const auto start = stopwatch::now();
    for (int i = 0; i < fibers; ++i) spawn(batch::ops, b, rt.internals().root_scope);
    b.ended.wait(waits);
    return ns_each(fibers * turns, start);
  });
}

// One permit that goes back and forth: the smallest waitable that claims, hands over and completes.
class baton final : public waitable {
 public:
  void pass() noexcept {
    fiber* partner = nullptr;
    {
      std::lock_guard hold(lock_);
      if (waiting_ != nullptr && claim(*waiting_)) {
        waiting_->outcome = 1;
        partner = waiting_->who;
        waiting_ = nullptr;
      } else {
        there_ = true;
      }
    }
    if (partner != nullptr) complete(*partner);
  }
  void take() {
    waiter node;
    (void)fiber_wait(*this, node, waits);
  }
  bool try_complete(waiter&) override { return false; }
  bool publish(waiter& node) override {
    std::lock_guard hold(lock_);
    if (there_) {
      there_ = false;
      return false;
    }
    waiting_ = &node;
    return true;
  }
  void unpublish(waiter&) noexcept override {
    std::lock_guard hold(lock_);
    waiting_ = nullptr;
  }

 private:
  ramie::platform::spin_lock lock_;
  bool there_ = false;
  waiter* waiting_ = nullptr;
};

double ramie_hand_off() {
  constexpr long rounds = 500'000;
  ramie::runtime rt(one_worker());
  return rt.run([&] {
    baton batons[2];
    batch ping, pong;
    ping.n = pong.n = rounds;
    ping.live = pong.live = 1;
    ping.extra = pong.extra = batons;
    ping.body = [](batch& self) {
      auto* const b = static_cast<baton*>(self.extra);
      for (long i = 0; i < self.n; ++i) {
        b[0].pass();
        b[1].take();
      }
    };
    pong.body = [](batch& self) {
      auto* const b = static_cast<baton*>(self.extra);
      for (long i = 0; i < self.n; ++i) {
        b[0].take();
        b[1].pass();
      }
    };
    const auto start = stopwatch::now();
    spawn(batch::ops, ping, rt.internals().root_scope);
    spawn(batch::ops, pong, rt.internals().root_scope);
    ping.ended.wait(waits);
    pong.ended.wait(waits);
    return ns_each(2 * rounds, start);
  });
}

double ramie_spawn(int at_once) {
  constexpr long total = 1'000'000;
  ramie::runtime rt(one_worker());
  return rt.run([&] {
    const auto start = stopwatch::now();
    for (long done = 0; done < total; done += at_once) {
      batch b;
      b.live = at_once;
      b.body = [](batch&) {};
      for (int i = 0; i < at_once; ++i) spawn(batch::ops, b, rt.internals().root_scope);
      b.ended.wait(waits);
    }
    return ns_each(total, start);
  });
}

// Boost.Fiber -------------------------------------------------------------------------------------------

#if defined(HAVE_BOOST_FIBER)
namespace fibers = boost::fibers;
using pooled = fibers::pooled_fixedsize_stack;

double boost_yield(int count, long turns) {
  std::vector<fibers::fiber> all;
  pooled stacks(16 * 1024);
  const auto start = stopwatch::now();
  for (int i = 0; i < count; ++i) {
    all.emplace_back(std::allocator_arg, stacks, [turns] {
      for (long k = 0; k < turns; ++k) boost::this_fiber::yield();
    });
  }
  for (auto& f : all) f.join();
  return ns_each(count * turns, start);
}

double boost_hand_off() {
  constexpr long rounds = 200'000;
  fibers::unbuffered_channel<int> there, back;
  pooled stacks(16 * 1024);
  const auto start = stopwatch::now();
  fibers::fiber echo(std::allocator_arg, stacks, [&] {
    int v = 0;
    while (there.pop(v) == fibers::channel_op_status::success) back.push(v);
  });
  fibers::fiber ping(std::allocator_arg, stacks, [&] {
    int v = 0;
    for (long i = 0; i < rounds; ++i) {
      there.push(1);
      back.pop(v);
    }
    there.close();
  });
  ping.join();
  echo.join();
  return ns_each(2 * rounds, start);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  bench::workload their_two, their_thousand, their_hand_off, their_spawn, their_batch;
#if defined(HAVE_BOOST_FIBER)
  their_two = [] { return boost_yield(2, 200'000); };
  their_thousand = [] { return boost_yield(1'000, 300); };
  their_hand_off = boost_hand_off;
  their_spawn = [] { return bench::boost_spawn(100, 200'000); };
  their_batch = [] { return bench::boost_spawn(1'000, 200'000); };
#endif
  std::vector<bench::row> rows;
  rows.push_back({"yield, 2 fibers", 30, 18, 1, 1, {[] { return ramie_yield(2, 1'000'000); }, their_two}});
  rows.push_back({"yield, 1000 fibers", 34, 24, 1, 1, {[] { return ramie_yield(1'000, 2'000); }, their_thousand}});
  rows.push_back({"park + wake hand-off", 50, 35, 1, 4, {ramie_hand_off, their_hand_off}});
  rows.push_back({"spawn + finish, 100 at once", 40, 28, 0, 1, {[] { return ramie_spawn(100); }, their_spawn}});
  rows.push_back({"spawn + finish, 1000 at once", 40, 28, 0, 1, {[] { return ramie_spawn(1'000); }, their_batch}});
  bench::run_table(std::move(rows), {"ramie", "Boost.Fiber"}, rounds);
}
