// SPDX-License-Identifier: BSL-1.0
// One key operation, again and again on one worker: what check.py counts the instructions of.
//
//   ramie-counts OPERATION COUNT   does it COUNT times
//   ramie-counts --list            the operations
//   ramie-counts --built-by        compiler, processor and kind of build: whose record is to be compared
//
// COUNT should be a multiple of 100. What a run costs beside its operations must not depend on COUNT: check.py takes
// the difference of two runs.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <ramie/platform/fence.hpp>
#include <ramie/ramie.hpp>
#include <ramie/runtime/access.hpp>
#include <ramie/runtime/gate.hpp>
#include <ramie/runtime/spawn.hpp>
#include "runtime/src/sched/scheduler.hpp"

// Workers pace themselves by the clock, which they read once in 128 polls. Under callgrind, and beside other programs,
// it would go at a different speed every time; this one, in place of the C library's, says that a poll takes 80 ns.
extern "C" int clock_gettime(clockid_t, timespec* now) noexcept {
  constexpr long step = 128 * 80, second = 1'000'000'000;
  static std::atomic<long> passed{second};
  const long ns = passed.load(std::memory_order_relaxed) + step;
  passed.store(ns, std::memory_order_relaxed);  // no RMW, which would be counted
  *now = {ns / second, ns % second};
  return 0;
}

namespace {

using namespace ramie::runtime_internal;
using ramie::channel;

const wait_reason waits{"counts"};

// Fibers of the core, without a nursery, that all run one function; the last to end opens the gate.
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

// Nothing of ours: two RMWs by construction, for the self-test of the counting.
void calibration(ramie::runtime&, long count) {
  std::atomic<long> word{0};
  for (long i = 0; i < count; ++i) {
    word.fetch_add(1);
    word.exchange(i);
  }
}

// From stack to stack, there and back again, without anything around it: each is a jump. Boost's with
// -Dcontext=fcontext.
void jump(ramie::runtime&, long count) {
  namespace platform = ramie::platform;
  alignas(64) static char stack[16 * 1024];
  const auto jump_back = [](platform::arrival landed) {
    for (;;) landed = platform::jump(landed.from, nullptr);
  };
  platform::arrival there{platform::make_context(stack + sizeof stack, sizeof stack, jump_back, {}), nullptr};
  for (long i = 0; i < count / 2; ++i) there = platform::jump(there.from, nullptr);
}

void spawn_finish(ramie::runtime& rt, long count) {
  constexpr int at_once = 100;
  for (long done = 0; done < count; done += at_once) {
    batch b;
    b.live = at_once;
    b.body = [](batch&) {};
    for (int i = 0; i < at_once; ++i) spawn(batch::ops, b, scheduler_of(rt).root_scope);
    b.ended.wait(waits);
  }
}

void yield(ramie::runtime& rt, long count) {
  batch b;
  b.live = 2;
  b.n = count / 2;
  b.body = [](batch& self) {
    for (long i = 0; i < self.n; ++i) ramie::yield();
  };
  for (int i = 0; i < 2; ++i) spawn(batch::ops, b, scheduler_of(rt).root_scope);
  b.ended.wait(waits);
}

void park_wake(ramie::runtime& rt, long count) {
  baton batons[2];
  batch ping, pong;
  ping.n = pong.n = count / 2;
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
  spawn(batch::ops, ping, scheduler_of(rt).root_scope);
  spawn(batch::ops, pong, scheduler_of(rt).root_scope);
  ping.ended.wait(waits);
  pong.ended.wait(waits);
}

template <int at_once>
void nursery(ramie::runtime&, long count) {
  for (long done = 0; done < count; done += at_once) {
    ramie::nursery n;
    for (int i = 0; i < at_once; ++i) n.spawn([] {});
    n.join();
  }
}

// One that nothing is spawned into.
void nursery_alone(ramie::runtime&, long count) {
  for (long i = 0; i < count; ++i) {
    ramie::nursery n;
    n.join();
  }
}

// A nursery at every level; one half is spawned, the other done by the owner itself. `count` spawns in all.
void fork_join(ramie::runtime& rt, long count) {
  if (count == 0) return;
  const long half = (count - 1) / 2;
  ramie::nursery n;
  n.spawn([&rt, half] { fork_join(rt, half); });
  fork_join(rt, count - 1 - half);
  n.join();
}

// The same tree by parallel_invoke: `count` calls that are offered in all.
void parallel_tree(long count) {
  if (count == 0) return;
  const long half = (count - 1) / 2;
  ramie::parallel_invoke([half] { parallel_tree(half); }, [count, half] { parallel_tree(count - 1 - half); });
}
void parallel(ramie::runtime&, long count) {
  parallel_tree(count);
}

// A loop of ten calls that do nothing, at a time: one call.
void parallel_index(ramie::runtime&, long count) {
  for (long i = 0; i < count / 10; ++i) ramie::parallel_for(10, [](std::size_t) {});
}

// A hop is one element from one fiber to another: a round trip has two.
void hop(ramie::runtime&, long count) {
  channel<long> there(0), back(0);
  ramie::nursery n;
  n.spawn([=] {
    for (long v : there) back.send(v);
  });
  for (long i = 0; i < count / 2; ++i) {
    there.send(i);
    (void)back.recv();
  }
  there.close();
  n.join();
}

void ring_hop(ramie::runtime&, long count) {
  constexpr int members = 100;  // the caller is one of them
  std::vector<channel<long>> links;
  for (int i = 0; i < members; ++i) links.emplace_back(0);
  ramie::nursery n;
  for (std::size_t i = 0; i + 1 < members; ++i) {
    n.spawn([in = links[i], out = links[i + 1]] {
      for (long v : in) out.send(v);
      out.close();
    });
  }
  for (long lap = 0; lap < count / members; ++lap) {
    links.front().send(lap);
    (void)links.back().recv();
  }
  links.front().close();
  n.join();
}

template <std::size_t capacity>
void stream(ramie::runtime&, long count) {
  channel<long> c(capacity);
  ramie::nursery n;
  n.spawn([c, count] {
    for (long i = 0; i < count; ++i) c.send(i);
    c.close();
  });
  n.spawn([c] {
    for (long v : c) (void)v;
  });
  n.join();
}

// Nobody else wants it.
void mutex(ramie::runtime&, long count) {
  ramie::mutex m;
  for (long i = 0; i < count; ++i) std::lock_guard hold(m);
}

void semaphore(ramie::runtime&, long count) {
  ramie::semaphore s(1);
  for (long i = 0; i < count; ++i) {
    s.acquire();
    s.release();
  }
}

struct operation {
  const char* name;
  void (*run)(ramie::runtime&, long);
};
constexpr operation operations[] = {
    {"calibration", calibration},
    {"jump", jump},
    {"spawn_finish", spawn_finish},
    {"yield", yield},
    {"park_wake", park_wake},
    {"nursery_spawn_join", nursery<100>},
    {"nursery_batch", nursery<1000>},
    {"nursery_one", nursery<1>},
    {"nursery_alone", nursery_alone},
    {"fork_join", fork_join},
    {"parallel", parallel},
    {"parallel_index", parallel_index},
    {"hop", hop},
    {"ring_hop", ring_hop},
    {"buffered", stream<128>},
    {"capacity_1", stream<1>},
    {"mutex", mutex},
    {"semaphore", semaphore},
};

int run(const char* name, long count) {
  const auto found = std::find_if(std::begin(operations), std::end(operations),
                                  [&](const operation& o) { return std::strcmp(o.name, name) == 0; });
  if (found == std::end(operations) || count <= 0) {
    std::fprintf(stderr, "ramie-counts: OPERATION COUNT; --list tells the operations\n");
    return 2;
  }
  ramie::options o;
  o.workers = 1;
  o.elastic = false;  // nobody else whose instructions would depend on time
  ramie::runtime rt(o);
  rt.run([&] { found->run(rt, count); });
  return 0;
}

// Without membarrier(2) light fences are full ones: other instructions, another record.
int built_by() {
  ramie::platform::choose_fences();
  std::printf("%s%s\n", BUILT_BY, ramie::platform::detail::membarrier_granted ? "" : " without membarrier");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--built-by") == 0) return built_by();
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& o : operations) std::puts(o.name);
    return 0;
  }
  return run(argc > 1 ? argv[1] : "", argc > 2 ? std::atol(argv[2]) : 0);
}
