# SPDX-License-Identifier: BSL-1.0
"""Flaws of the timekeeper and of its wheel."""
KEEPER, WHEEL = "runtime/src/time/timekeeper.cpp", "runtime/internal/ramie/runtime/timer_wheel.hpp"
AT_POLLS = {"cases": ["a worker that runs fibers looks at the time at its polls"]}
DISPATCHER = "runtime/src/sched/dispatcher.cpp"
YIELDERS = {"cases": ["fibers that keep the ring full by yielding do not hold up who is due"]}
TURNS = {"cases": ["what is due and found no room goes before the injection queue, and then by turns"]}

MUTANTS = [
    ("a time that is too early for the clock comes", "runtime/include/ramie/deadline.hpp", [
        ("              : when <= std::chrono::ceil<Duration>(std::chrono::steady_clock::time_point::min())\n"
         "                  ? std::chrono::steady_clock::time_point::min()\n", "")],
     {"cases": ["a deadline says what is left of it"]}),
    ("a timer's tick is rounded down", KEEPER, [("std::chrono::ceil<tick>", "std::chrono::floor<tick>")], {"cases": ["sleepers are woken when it is time, none of them early"]}),
    ("what a slot held is not sorted in", WHEEL, [("    } else {\n      sort_in(slot);\n    }", "    }")], {"cases": ["a timer wheel hands out every timer at its tick, whatever happens around it"]}),
    ("a deadline that is not announced", KEEPER, [("  if (next < in.next.load(std::memory_order_relaxed)) in.next.store(next, std::memory_order_relaxed);\n", "")], {"cases": ["a new earliest deadline is kept though everybody sleeps for a later one"]}),
    ("nobody cancels what is due", KEEPER, [("    if (cancels_.exchange(false, std::memory_order_acquire)) cancel_all_due();\n", "")], {"cases": ["a scope is cancelled by the machine's clock, asleep or not"]}),
    ("a timer fires when its shard is free again", KEEPER, [
        ("    waker ready[most_wakes_at_once];\n", "    waker ready[most_wakes_at_once];\n    wake_up* calls[most_wakes_at_once];\n"),
        ("        call.fired.store(true, std::memory_order_release);  // pairs", "        calls[count - 1] = &call;  // pairs"),
        ("++i) ready[i].wake();", "++i) calls[i]->fired.store(true), ready[i].wake();")], ("timer_of_workers_set_again",)),
    ("a timer that is set again wakes who waited before", KEEPER, [
        ("    std::lock_guard hold(shards_[entry.shard].lock);\n    entry.who = who;\n", "    std::lock_guard hold(shards_[entry.shard].lock);\n")], ("timer_by_hand_set_again",)),
    ("a timer is removed while somebody fires it", KEEPER, [("  std::lock_guard hold(in.lock);\n  unlist(in, entry);", "  unlist(in, entry);")], ("timer_by_hand_removed",)),
    ("a rate limiter fills over the brim for one who has left", "runtime/src/time/rate_limiter.cpp",
     [("      awaited_ = 0;\n", "")],
     {"cases": ["a rate limiter lets a burst through, then keeps to its rate"]}),
    ("who asks at once goes before the line of a rate limiter", "runtime/src/time/rate_limiter.cpp",
     [("return !front_taken_ && take(n);", "return take(n);")],
     {"cases": ["nobody takes tokens past one who waits for more of them"]}),
    ("retry gives up at any cancellation", "runtime/include/ramie/retry.hpp",
     [("if (c.is_own() || last) throw;", "throw;")], {"cases": ["retry takes another scope's cancellation for the failure behind it"]}),
    ("jitter beyond the longest delay", "runtime/src/time/retry.cpp",
     [("  if (spread >= longest) return policy_.longest_delay;  // also what a double can't tell from it\n", "")],
     {"cases": ["jitter is drawn from the seed, within its bounds"]}),
    ("a skipped tick falls on the past", "runtime/src/time/sleep.cpp",
     [("(passed / period + 1) * period", "passed / period * period")],
     {"cases": ["an interval makes up for missed ticks as it was told"]}),
    ("a thread of the pool never leaves", "runtime/src/blocking/pool.cpp",
     [("time_after(idle_time_)", "time_after(std::chrono::hours(1))")],
     {"cases": ["a thread that has been idle for its time leaves, and is joined"]}),
    ("a call that is cancelled stays queued", "runtime/src/blocking/pool.cpp",
     [("  return queue_.remove(job);\n", "  return false;\n")],
     {"cases": ["a call that waits in line when its fiber is cancelled never runs"]}),
    ("what a timeout met half-way is dropped", "runtime/src/io/descriptor.cpp",
     [("  if (op.result != -ECANCELED) return op.result;\n", "  if (ended != wait_result::timed_out && op.result != -ECANCELED) return op.result;\n")],
     {"cases": ["a deadline ends an operation, in time is in time"]}),
    ("a plain thread's bell does not ring", "runtime/src/io/descriptor.cpp",
     [("void end() noexcept override { (void)!::eventfd_write(fd.get(), 1); }", "void end() noexcept override {}")],
     {"cases": ["plain threads use the sockets that fibers use"]}),
    # Deadlines that are kept, but late.
    ("a worker that runs fibers does not look at the time", DISPATCHER, [("    self.run_due_timers(w, now);\n  } else {\n    self.run_due_timers(w);\n  }",
       "    (void)self;\n  }")], ("sleeper_beside_the_busy",)),
    ("a worker whose tick ends does not look at the time", DISPATCHER, [("    self.run_due_timers(w, now);\n  } else {", "  } else {")], AT_POLLS),
    ("a worker looks at the time only when its tick ends", DISPATCHER, [("  } else {\n    self.run_due_timers(w);\n  }", "  }")], AT_POLLS),
    ("looks in vain are no looks at the time", DISPATCHER, [("    w.sched.dispatch.run_due_timers(w, now);\n    w.sched.io.poll(w);", "    w.sched.io.poll(w);")], AT_POLLS),
    ("a worker that runs fibers seldom looks at the time", DISPATCHER, [("now + timer_check_interval", "now + 100 * timer_check_interval")], ("sleeper_beside_the_busy",)),
    ("a worker looks at the time a little too seldom", DISPATCHER, [("now + timer_check_interval", "now + 2 * timer_check_interval")], AT_POLLS),
    ("more than the ring takes waits for the next look at the time", DISPATCHER, [("more ? now : now + timer_check_interval", "(void(more), now + timer_check_interval)")], AT_POLLS),
    # Who runs first when more is due than a worker can serve.
    ("deadlines are fired into a full ring", DISPATCHER, [("std::uint64_t most = free > kept_for_others ? free - kept_for_others : 0;", "std::uint64_t most = free | overflow_batch;")],
     {"cases": ["no more deadlines are fired than the ring has room for"]}),
    ("a ring that yielders keep full makes no room for who is due", DISPATCHER, [("if (2 * most < since_check) {", "if (false) {")], YIELDERS),
    ("a full ring sheds who was due a moment ago", DISPATCHER, [("    if (polls < w.dispatch.fired_until.get()) return;\n", "")], YIELDERS),
    ("an empty ring is filled from the injection queue, whoever is due", DISPATCHER, [("  if (w.dispatch.more_due.get()) {\n    if (w.", "  if (false) {\n    if (w.")], TURNS),
    ("the injection queue waits until nobody is due", DISPATCHER, [("    w.dispatch.injection_next.set(true);\n", "")], TURNS),
    ("the shard of the first worker fires first", KEEPER, [("if (its_next >= next) continue;", "if (its_next > now || next != never) continue;")],
     {"cases": ["of several shards the one with the earliest deadline is first"]}),
    ("nobody tells the keeper that a scope's time has come", KEEPER, [
        ("    cancels_.store(true, std::memory_order_release);\n    keeper_.unpark();\n", "    cancels_.store(true, std::memory_order_release);\n")], ("timeouts_in_time",)),
    ("the keeper gives plain threads its grace, too", KEEPER, [
        ("entry.shard == slots_ ? platform::nanoseconds{0} : keeper_grace;", "keeper_grace;")], ("keeper_falls_asleep_briefly",)),
    ("the keeper sleeps past the deadlines of plain threads", KEEPER, [
        ("  auto found = shards_[slots_].next.load(std::memory_order_relaxed);\n  for (unsigned i = 0; i < slots_; ++i) found = std::min(found, shards_[i].overdue());",
         "  auto found = never;\n  for (unsigned i = 0; i <= slots_; ++i) found = std::min(found, shards_[i].overdue());")], ("keeper_falls_asleep",)),
    ("who naps sleeps past deadlines", "runtime/src/sched/idle.cpp", [("park(w, std::min(end, sched_.deadlines.earliest()), done);", "park(w, end, done);")],
     {"cases": ["a worker that naps after thefts that do not pay gets up for a deadline"]}),
    ("a select takes a tick when it begins", "channel/include/ramie/select.hpp",
     [("    case_.when = of_->next();\n", "    case_.when = tick_access::take(*of_, came_);\n"),
      ("    const time_point due = tick_access::take(*of_, came_);\n", "    const time_point due = case_.when;\n")],
     {"cases": ["a select takes the tick of an interval only if that case happens"]}),
    ("who waits for tokens until a deadline waits on", "runtime/src/time/rate_limiter.cpp",
     [("      if (filled_at_ >= until) return false;\n", "")],
     {"cases": ["who waits for a rate limiter until a deadline has taken nothing then"]}),
]
