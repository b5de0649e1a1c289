// SPDX-License-Identifier: BSL-1.0
// A worker: an OS thread, what it owns, and the stack it happens to be on.
//
// Stacks are adopted. The worker's loop runs on a pooled stack and *calls* a fresh fiber there. If the
// fiber ends without leaving, it cost a function call. If it parks or yields, it keeps the stack, loop
// frame and all, and the worker goes on elsewhere: straight on the next fiber's stack, or in a loop on
// another pooled stack. When the fiber ends, perhaps on another worker, it returns into the loop frame
// below it, which asks anew which worker it serves. So every pooled stack is a suspended loop.
//
// Invariants
//   W1  `active` is the stack this thread runs on. Everything here that is not atomic is touched only by
//       code running on this thread, whichever stack that is.
//   W2  A stack being left is finished with by the code that arrives elsewhere (`departure`): only there is
//       it true that nobody runs on it. The park is committed there, the yielder is queued there.
//   W3  User code runs only while `handoff` is empty: nothing hides behind a stalled worker. What is queued
//       sits in the ring (thieves see it), in the LIFO slot (thieves take it from a stalled worker), or in
//       the injection queue. (Chaos mode, too: testing/chaos.cpp. Under explore there is one worker only, and
//       its director keeps what is runnable.)
//   W4  A worker leaves only on its native stack, on which no fiber ever starts.
#pragma once

#include <cstdint>
#include <thread>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/here.hpp>

#include "../io/port.hpp"
#include "../task/frame_pool.hpp"
#include "counters.hpp"
#include "crowding.hpp"
#include "deque.hpp"
#include "lifo_slot.hpp"
#include "pace.hpp"
#include "thrift.hpp"

namespace ramie::detail {

class scheduler;
class worker;

enum class worker_state : std::uint8_t {
  dead,       // no thread, and only the monitor may start one
  unstarted,  // no thread yet; counted as parked, and waking it starts one
  active,     // runs fibers
  idle_spin,  // looks for work, still hot
  sleep,      // parked; only when no runnable work is visible
  draining,   // takes nothing; moves what it has to the injection queue; ends
};

[[nodiscard]] constexpr bool has_thread(worker_state s) noexcept {
  return s != worker_state::dead && s != worker_state::unstarted;
}

// What the arrival has to do for the stack that was left.
enum class departure : std::uint8_t {
  spare,       // a loop: keep the stack for later
  park,        // commit the fiber's park
  yield,       // queue the fiber again, behind everybody
  step_aside,  // behind those in its worker's ring; next to its successor if there are none
  native,      // the thread's own stack: nothing
};

// xorshift64: victim choice and chaos, nothing that needs better.
class xorshift {
 public:
  explicit xorshift(std::uint64_t seed) noexcept : state_(seed | 1) {}
  std::uint64_t next() noexcept {
    auto x = state_.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state_.set(x);
    return x;
  }
  std::uint32_t below(std::uint32_t bound) noexcept { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }

 private:
  platform::owned<std::uint64_t> state_;
};

// Where a full ring sheds its older half.
struct shed_to_injection {
  worker& from;
  platform::owned<bool> has_shed{false};  // since the last yield
  void put(fiber* f) noexcept;
  void put(fiber* const* items, std::uint32_t count) noexcept;
};

class alignas(platform::cache_line) worker : public worker_desk, public platform::thread_anchor {
 public:
  worker(scheduler& of, const platform::atomic<std::uint64_t>& epoch, platform::lock_family& family, std::uint32_t slot,
         std::uint64_t seed) noexcept
      : sched(of), index(slot), random(seed), whims(seed ^ 0x2545f4914f6cdd1d) {
    runs_in = &of;
    cancel_epoch = &epoch;
    party.family = &family;
    party.cell = slot;
    budget.set(budget_per_tick);
    dice.set(random.next() | 1);
  }
  ~worker() {
    for (shelf* s : {&nurseries, &memory}) {
      if (const auto empty_out = s->empty_out.get()) empty_out(*s);
    }
  }

  // Touched on every switch.
  scheduler& sched;
  const std::uint32_t index;
  platform::owned<departure> left_as{departure::native};
  platform::owned<bool> searching{false};
  platform::owned<bool> leaving_pool{false};  // the loop must end on the native stack
  platform::owned<platform::stack_block*> active{nullptr};
  platform::owned<fiber*> left_fiber{nullptr};
  platform::owned<platform::stack_block*> left_stack{nullptr};  // of a loop
  platform::owned<std::uint64_t> left_epoch{0};                 // the cancellations a parking fiber has accounted for
  platform::owned<fiber*> handoff{nullptr};                     // to be run first by the loop that is switched to
  platform::owned<std::uint32_t> lifo_polls{0};                 // in a row, since the ring's oldest had a turn
  platform::owned<std::uint32_t> fresh_polls{0};                // the same, of fibers that started before older ones
  platform::owned<std::uint32_t> vain_polls{0};
  thrift appetite;
  crowding room;
  pace tempo;
  frame_cache frames;
  platform::owned<platform::stack_block*> spares{nullptr};  // default class, ready to be switched to
  platform::owned<std::uint32_t> spare_count{0};
  xorshift random;
  counters count;
  xorshift whims;  // of chaos: drawn from only when there is something to decide
  chaos_counters mischief;
  platform::owned<platform::time_point> next_way_given{};  // when a join lets unstarted strangers go first again
  platform::owned<platform::time_point> next_time_look{};  // for deadlines that have come
  platform::owned<platform::nanoseconds> join_patience{target_global_latency};  // and after how long the next time
  shed_to_injection overflow{*this};

  // Touched by others.
  alignas(platform::cache_line) lifo_slot<fiber> newest;
  alignas(platform::cache_line) deque<fiber> ring;
  alignas(platform::cache_line) platform::thread_parker parker;
  io_port io;
  platform::atomic<worker_state> state{worker_state::dead};
  // Set by the monitor (stalled), by shutdown (stop) and for good in chaos mode; looked at on every poll:
  // if it is not zero, the way is through the loop, where the owner acts on it.
  platform::atomic<std::uint32_t> attention{0};
  std::uint64_t polls_at_last_look = 0;  // monitor only
  std::uint32_t looks_stalled = 0;       // the same: in a row

  // Any thread: it stops sleeping, wherever it does.
  void unpark() noexcept {
    parker.unpark();
    io.wake_if_asleep();
  }

  platform::stack_block native;  // the thread's own stack
  platform::thread thread;       // under the scheduler's roster mutex

  static constexpr std::uint32_t stalled = 1;
  static constexpr std::uint32_t stop = 2;
  static constexpr std::uint32_t chaos = 4;
};

// The worker whose thread this is, or null. Safe across switches: see this_desk().
[[nodiscard]] inline worker* this_worker() noexcept {
  return static_cast<worker*>(this_desk());
}
void set_this_worker(worker* w) noexcept;

}  // namespace ramie::detail
