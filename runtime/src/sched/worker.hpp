// SPDX-License-Identifier: BSL-1.0
// A worker: an OS thread that runs fibers, and what it owns.
//
// Stacks are adopted. The worker's loop runs on a pooled stack and *calls* a fresh fiber there. If the
// fiber ends without leaving, it cost a function call. If it parks or yields, it keeps the stack, loop
// frame and all, and the worker goes on elsewhere: straight on the next fiber's stack, or in a loop on
// another pooled stack. When the fiber ends, perhaps on another worker, it returns into the loop frame
// below it, which asks anew which worker it serves. So every pooled stack is a suspended loop.
//
// Invariants
//   W1  `run.active` is the stack this thread runs on. Everything here that is not atomic is touched only by
//       code running on this thread, whichever stack that is.
//   W2  A stack being left is finished with by the code that arrives elsewhere (`departure`): only there is
//       it true that nobody runs on it. The park is committed there, the yielder is queued there.
//   W3  User code runs only while `run.handoff` is empty: nothing hides behind a stalled worker. What is queued
//       sits in the ring (thieves see it), in the LIFO slot (thieves take it from a stalled worker), or in
//       the injection queue.
//   W4  A worker leaves only on its native stack, on which no fiber ever starts.
//
// Each part of the scheduler has a part of the worker, whose fields no other part touches (`io` also answers questions
// of the dispatcher, the pool, the monitor and descriptors):
//
//   run       runner        which stack the thread is on, what it has just left, spare stacks and frames
//   queue     run_queues    LIFO slot and ring
//   dispatch  dispatcher    when to look at what besides the queue; how well stealing pays
//   life      worker_pool   thread, state, what it must attend to; and the notes of the pool's monitor
//   parker    io_driver     where the thread sleeps without operations under way
//   io        io_driver     operations under way, and where it sleeps with some
//   count     all           each part counts what it does
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/random.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/current.hpp>

#include "../io/port.hpp"
#include "../task/frame_pool.hpp"
#include "counters.hpp"
#include "crowding.hpp"
#include "deque.hpp"
#include "entanglement.hpp"
#include "lifo_slot.hpp"
#include "pacer.hpp"
#include "policy.hpp"
#include "queued.hpp"
#include "spinning.hpp"
#include "steal_policy.hpp"

namespace ramie::runtime_internal {

class scheduler;
class worker;
class worker_pool;

enum class worker_state : std::uint8_t {
  dead,       // no thread, and only worker_pool::promote_one starts one
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
  spare,          // a loop: keep the stack for later
  park,           // commit the fiber's park
  yield,          // queue the fiber again, behind everybody
  yield_locally,  // behind those in its worker's ring; next to its successor if there are none
  native,         // the thread's own stack: nothing
};

// Whether a fiber of the worker has begun to wait for a blocking call, which may be short.
enum class begun_call : std::uint8_t {
  none,
  worth_a_spin,  // made by a thread that was last seen on another processor
  worth_a_sleep,  // not a nap, from which its end would not wake the worker
};

// Where a full ring moves its older half: the injection queue.
struct ring_overflow {
  worker& from;
  platform::owned<bool> happened{false};  // since the last yield
  void put(queued* entry) noexcept;
  void put(queued* const* items, std::uint32_t count) noexcept;
};

class alignas(platform::cache_line) worker : public worker_local, public platform::thread_anchor {
 public:
  worker(scheduler& of, worker_pool& in, platform::lock_family& family, std::uint32_t slot,
         std::uint64_t seed) noexcept;
  ~worker();

  // The runner's. Touched on every switch.
  struct run_part {
    explicit run_part(std::size_t promise) noexcept : default_promise(promise) {}
    const std::size_t default_promise;  // bytes of stack that a fiber of the runtime's default class may use
    platform::owned<departure> left_as{departure::native};
    platform::owned<bool> leaving_pool{false};  // the loop must end on the native stack
    platform::owned<platform::stack_block*> active{nullptr};
    platform::owned<fiber*> left_fiber{nullptr};
    platform::owned<platform::stack_block*> left_stack{nullptr};  // of a loop
    platform::owned<std::uint64_t> left_epoch{0};  // the cancellations that a parking fiber has accounted for
    platform::owned<fiber*> handoff{nullptr};      // to be run first by the loop that is switched to
    frame_cache frames;
    lendable_frames lendable;
    platform::owned<platform::stack_block*> spares{nullptr};  // default class, ready to be switched to
    platform::owned<std::uint32_t> spare_count{0};
    platform::stack_block native;  // the thread's own stack
    // For tasks that there is no memory to give a frame to. Their records lead to it as long as they are looked at.
    fiber stand_in;
  };

  // The dispatcher's.
  struct dispatch_part {
    explicit dispatch_part(std::uint64_t seed) noexcept : random(seed) {}
    platform::owned<bool> searching{false};  // counted as searching in the idle set
    platform::owned<std::uint32_t> empty_polls{0};
    platform::owned<begun_call> call{begun_call::none};  // since the worker last found something to run
    spin_forecast calls;
    pacer pacing;
    steal_policy stealing;
    crowding processor;
    entanglement partners;
    platform::xorshift random;
    platform::owned<platform::time_point> next_timer_check{};  // for deadlines that have come
    platform::owned<bool> more_due{false};                     // than the ring had room for, at the last check
    platform::owned<bool> injection_next{false};               // before what is due
    platform::owned<std::uint64_t> polls_at_timer_check{0};
    platform::owned<std::uint64_t> fired_until{0};  // at this poll who was in the ring at the last check has had a turn
    // When a join next lets unstarted fibers that are not its descendants go first, and how long after that again.
    platform::owned<platform::time_point> next_join_yield{};
    platform::owned<platform::nanoseconds> join_backoff{target_injection_latency};
  };

  // The run queues'. The first line is the owner's alone.
  struct queue_part {
    explicit queue_part(worker& of) noexcept : overflow{of} {}
    platform::owned<std::uint32_t> lifo_polls{0};   // in a row, since the ring's oldest had a turn
    platform::owned<std::uint32_t> fresh_polls{0};  // the same, of fibers that started before older ones
    ring_overflow overflow;
    alignas(platform::cache_line) lifo_slot<fiber> newest;
    alignas(platform::cache_line) deque<queued> ring;
  };

  // The worker pool's. Touched by other threads.
  struct life_part {
    platform::atomic<worker_state> state{worker_state::dead};
    // Set by the monitor (stalled), by shutdown (stop), and for good under a policy. Looked at on every poll: if it is
    // not zero, the way is through the loop, where the owner acts on it.
    platform::atomic<std::uint32_t> attention{0};
    std::uint64_t polls_at_last_sample = 0;  // the monitor's
    std::uint32_t samples_stalled = 0;       // the monitor's: in a row
    platform::thread thread;               // under the pool's mutex
  };

  scheduler& sched;
  worker_pool& pool;                // sched's
  scheduling_policy* const policy;  // sched's, or null
  const std::uint32_t index;
  run_part run;
  dispatch_part dispatch;
  counters count;
  queue_part queue;
  alignas(platform::cache_line) life_part life;
  platform::thread_parker parker;
  io_port io;

  // Bits of life.attention.
  static constexpr std::uint32_t stalled = 1;
  static constexpr std::uint32_t stop = 2;
  static constexpr std::uint32_t under_policy = 4;
  static constexpr std::uint32_t entangled = 8;

  [[nodiscard]] bool needs_attention() const noexcept { return life.attention.load(std::memory_order_relaxed) != 0; }
  // Like needs_attention, but ignores under_policy, which is set for good if there is a policy.
  [[nodiscard]] bool is_stalled_or_stopped() const noexcept {
    return (life.attention.load(std::memory_order_relaxed) & ~under_policy) != 0;
  }
  [[nodiscard]] worker_state state() const noexcept { return life.state.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_active() const noexcept { return state() == worker_state::active; }
  // Any thread: it stops sleeping, wherever it does.
  void unpark() noexcept {
    parker.unpark();
    io.wake_if_asleep();
  }
};

// The worker whose thread this is, or null. Safe across switches: see this_worker_local().
[[nodiscard]] inline worker* this_worker() noexcept {
  return static_cast<worker*>(this_worker_local());
}
void set_this_worker(worker* w) noexcept;

}  // namespace ramie::runtime_internal
