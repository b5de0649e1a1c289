// SPDX-License-Identifier: BSL-1.0
// The scheduler of one runtime: its workers, its queues, its pools. Split by job:
//
//   schedule.cpp   making fibers runnable: spawn, wake, yield; whom to tell
//   next.cpp       choosing what a worker runs next: local, injection, theft, sleep
//   loop.cpp       running it: stacks, starts, ends, departures
//   roster.cpp     starting and retiring workers; shutdown
//   retreat.cpp    leaving the work to others where processors are short
//   monitor.cpp    noticing stalled workers; pressure
//   ../blocking    threads for calls that block
//   ../testing     chaos mode, and who notices that every fiber is blocked
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/options.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/stack_pool.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/stats.hpp>

#include "../blocking/pool.hpp"
#include "../stacks/supplied_stacks.hpp"
#include "../testing/stillness.hpp"
#include "../time/timekeeper.hpp"
#include "idle_set.hpp"
#include "injection_queue.hpp"
#include "monitor.hpp"
#include "registry.hpp"
#include "retreat.hpp"
#include "worker.hpp"

namespace ramie::detail {

// The class of a stack of `bytes`; `what` names the setting. Throws usage_error when out of range.
[[nodiscard]] std::uint8_t checked_stack_class(std::size_t bytes, const char* what);

class director;

class scheduler {
 public:
  // Throws usage_error for options that can't work. Starts no thread. `by`: who decides what runs next, under explore.
  explicit scheduler(const options& wanted, director* by = nullptr);
  // All fibers must have ended. Stops and joins every thread.
  ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // schedule.cpp ------------------------------------------------------------------------------------
  // schedule(): enqueues a RUNNABLE fiber, exactly once per transition to RUNNABLE (F2, F4), and publishes
  // before it signals. enqueue() in wait/wake.cpp picks the door.
  // `w` is the calling thread's; may_detour: a fiber calls that holds no lock and looks around anew afterwards.
  void schedule_on(worker& w, fiber& f, bool may_detour = false) noexcept;
  void schedule_woken(worker& w, fiber& f) noexcept;  // the same, out of line
  void push_local(worker& w, fiber& f) noexcept;
  void push_in_turn(worker& w, fiber& f) noexcept;    // the same, but in chaos anywhere
  void push_spawned(worker& w, fiber& f) noexcept;    // the same; in chaos the spawner may make way
  void push_behind_shed(worker& w, fiber& f) noexcept;
  void schedule_aside(worker& w, fiber& f) noexcept;  // a fiber that makes way for those close by
  void schedule_outside(fiber& f) noexcept;           // no worker of ours is calling

  // After an entry was published: wake a sleeper and the monitor if they must be.
  void signal(worker* by) noexcept {
    platform::light_fence();
    const auto seen = idle.look();
    if (!seen.nothing_to_do()) [[unlikely]]
      signal_slowly(by, seen);
  }

  // next.cpp ----------------------------------------------------------------------------------------
  // What `w` should run next without searching or sleeping; null if nothing is at hand.
  [[nodiscard]] fiber* next_local(worker& w) noexcept;
  // The same for a worker that has no attention to pay to anything.
  [[nodiscard]] fiber* next_undisturbed(worker& w) noexcept;
  // The same with everything: local, injection, theft, sleep. Null: the worker must leave.
  [[nodiscard]] fiber* worker_next(worker& w) noexcept;

  // loop.cpp ----------------------------------------------------------------------------------------
  // Leaves the current stack: for `next`'s own if it has one, else for a loop, which runs `next` first.
  // Returns the worker that is current when the stack is resumed.
  static worker* depart(worker& w, departure as, fiber* leaver, fiber* next) noexcept;
  // The same for the running fiber, until it is given its stack back: RUNNING again.
  static worker* leave_and_return(worker& w, departure as, fiber& self, fiber* next) noexcept;
  static void thread_main(worker& w) noexcept;

  // join.cpp ----------------------------------------------------------------------------------------
  // See join.hpp. The youngest entry at hand, whatever it is.
  [[nodiscard]] fiber* take_young(worker& w) noexcept {
    fiber* const f = w.ring.pop_young();
    if (f == nullptr) return take_young_elsewhere(w);
    w.count.polls.add(1);
    return f;
  }
  [[nodiscard]] fiber* take_young_elsewhere(worker& w) noexcept;
  // Calls an unstarted fiber above `joiner` on the same stack. Returns the worker of the moment.
  [[nodiscard]] static worker* start_in_place(worker& w, fiber& f, fiber& joiner, const cancel_scope& of) noexcept;
  struct taken_in_join {
    fiber* f;
    bool turn_of_others;
  };
  [[nodiscard]] taken_in_join take_otherwise_in_join(worker& w) noexcept;
  [[nodiscard]] fiber* whose_turn_in_join(worker& w) noexcept;

  // roster.cpp --------------------------------------------------------------------------------------
  // Claims a sleeper and rouses it. False: there is none that can be.
  bool wake_somebody() noexcept;
  // Wakes the worker claimed from the idle set, starting its thread if need be. False: it can't start.
  bool rouse(std::uint32_t index) noexcept;
  bool start_thread(std::uint32_t index) noexcept;
  [[nodiscard]] bool promote_one() noexcept;  // an extra worker; false at the limit
  [[nodiscard]] bool may_retire(const worker& w) noexcept;  // true: the caller is surplus and must drain
  void drain(worker& w) noexcept;
  std::uint32_t forgive(worker& w) noexcept;
  void ensure_a_worker();  // throws std::system_error
  // Before an operation of a fiber on `w`: 0, or -errno, if the machine refuses what it needs.
  [[nodiscard]] int prepare_io(worker& w, platform::time_point until) noexcept;
  // An operation is under way: if this worker is held up, the monitor sees to it.
  void io_begun() noexcept {
    platform::light_fence();
    if (idle.look().monitor_asleep() && idle.clear_monitor_asleep()) watcher.wake();
  }

  [[nodiscard]] bool work_visible() const noexcept;
  // See stillness.hpp. Any thread.
  [[nodiscard]] bool everybody_blocked() noexcept;

  // ../testing/chaos.cpp ------------------------------------------------------------------------------
  // A fiber that holds no lock may have to make way here: where it may switch anyway, or after a spawn or a wake.
  // Returns the worker of the moment.
  worker* detour(worker& w) noexcept;
  worker* detour_after_wake(worker& w) noexcept;
  // Its budget is used up.
  worker* end_budget_in_chaos(worker& w) noexcept;
  void yields_in_chaos(fiber& f) noexcept;  // of its own will

  [[nodiscard]] runtime_stats stats() const;
  [[nodiscard]] static std::vector<std::shared_ptr<const cancel_reason>> bare_reasons();
  [[nodiscard]] std::int64_t pressure() const noexcept;

  // Set up once.
  const unsigned configured;
  const unsigned capacity;
  const std::uint8_t default_class;
  const std::uint8_t root_class;
  const bool elastic;
  const bool reports_stalls;
  const bool chaotic;
  director* const directed;  // or null
  const chaos_mode unruly;
  const std::uint64_t seed;

  // Read by all, written rarely.
  alignas(platform::cache_line) platform::atomic<std::uint64_t> cancel_epoch{0};
  platform::atomic<std::uint32_t> live{0};     // workers with a thread that are not draining
  platform::atomic<std::uint32_t> stalled{0};  // of those, marked stalled

  // Written by all.
  alignas(platform::cache_line) idle_set idle;
  alignas(platform::cache_line) injection_queue<fiber> injection;
  platform::atomic<std::uint64_t> enqueued_outside{0};
  platform::atomic<std::uint32_t> outside_in_flight{0};

  platform::lock_family lock_users;  // the workers
  supplied_stacks from_user;
  platform::stack_pool stacks;
  frame_pool frames{this, [](scheduler& s, std::size_t all) { s.injection.reserve(all); }};
  std::vector<std::unique_ptr<worker>> workers;
  platform::mutex cancel_mutex;  // one sweep at a time
  platform::mutex link_mutex;    // one scope at a time links itself to its ancestors
  // For cancellations that can't even afford to say why: by kind.
  const std::vector<std::shared_ptr<const cancel_reason>> unexplained = bare_reasons();
  cancel_scope root_scope;
  monitor watcher;
  retreat leaves;
  timekeeper deadlines;
  stillness still;
  blocking_pool blocking;
  io_setup io;
  platform::atomic<bool> io_watched{false};  // by a monitor that would not be there otherwise

  platform::atomic<std::uint64_t> retired_workers{0};

 private:
  friend class monitor;

  void signal_slowly(worker* by, idle_set::snapshot seen) noexcept;
  void rest(worker& w, platform::time_point until, io_port::batch& done) noexcept;
  void open_port(worker& w);
  void look_at_the_time(worker& w) noexcept;
  void look_at_the_time(worker& w, platform::time_point now) noexcept;
  [[nodiscard]] fiber* take_from_injection(worker& w) noexcept;
  [[nodiscard]] fiber* steal_somewhere(worker& w) noexcept;
  [[nodiscard]] fiber* steal_in_chaos(worker& w) noexcept;
  [[nodiscard]] fiber* search(worker& w) noexcept;
  void stop_searching(worker& w) noexcept;
  void nap_after_crumbs(worker& w) noexcept;
  [[nodiscard]] std::size_t queued() const noexcept;  // approximately
  [[nodiscard]] bool retreats(worker& w) noexcept;  // true: it did, and is back
  void stay_out(worker& w, const retreat::leave& granted) noexcept;
  [[nodiscard]] bool hand_over(worker& w) noexcept;  // all it has queued, to the injection queue; true: there was something
  [[nodiscard]] std::uint64_t polls_of_others(const worker& w) const noexcept;
  void put_in_chaos(worker& w, fiber& f) noexcept;
  void put_woken_in_chaos(worker& w, fiber& f) noexcept;
  [[nodiscard]] std::uint32_t budget_in_chaos(worker& w) noexcept;
  [[nodiscard]] fiber* pick_in_chaos(worker& w) noexcept;
  [[nodiscard]] fiber* next_in_chaos(worker& w) noexcept;
  [[nodiscard]] fiber* take_young_in_chaos(worker& w) noexcept;
  [[nodiscard]] bool rescale_in_chaos(worker& w) noexcept;  // true: the worker must leave
  [[nodiscard]] fiber* poll_is_due(worker& w, std::uint64_t polls) noexcept;
  [[nodiscard]] fiber* poll_in_vain(worker& w) noexcept;
  void found_work(worker& w) noexcept;
  void sleep(worker& w) noexcept;
  [[nodiscard]] bool attend(worker& w) noexcept;  // true: the worker must leave

  enum class step : std::uint8_t { start_here, switch_away, leave };
  struct plan {
    step what;
    fiber* f;                   // to start here; or null
    platform::stack_block* to;  // to switch to, and
    platform::context resume;   // where it goes on
  };
  [[nodiscard]] static plan next_plan(worker& w) noexcept;
  [[nodiscard]] static worker* start_here(worker& w, fiber& f) noexcept;
  [[nodiscard]] static bool begin(worker& w, fiber& f) noexcept;
  [[nodiscard]] static bool conclude(worker& w, fiber& f, fiber_end how, const cancel_scope* joiner) noexcept;
  static void fail_to_start(worker& w, fiber& f) noexcept;
  static worker* switch_to(worker& w, platform::stack_block& to, platform::context resume, departure as,
                           platform::context& left_at) noexcept;
  static worker* leave_loop(worker& w, platform::stack_block& to, platform::context resume) noexcept;
  static void arrive(platform::thread_anchor* here) noexcept;
  static void commit_park(worker& w, fiber& f) noexcept;
  static void loop(worker* w) noexcept;
  static void loop_entry(platform::arrival landed) noexcept;
  [[nodiscard]] static platform::stack_block* take_stack(worker& w, std::uint8_t size_class) noexcept;
  static void keep_spare(worker& w, platform::stack_block& stack) noexcept;
  [[nodiscard]] static platform::stack_block* fetch_spares(worker& w) noexcept;
  static void return_spares(worker& w) noexcept;

  platform::mutex roster_mutex_;
  platform::mutex growth_mutex_;  // one promotion at a time
  platform::mutex first_worker_mutex_;
  bool stopping_ = false;
  const registration listed_{*this};
};

}  // namespace ramie::detail
