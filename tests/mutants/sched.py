# SPDX-License-Identifier: BSL-1.0
"""Flaws of the queues, of sleeping workers and of the search for work."""
DEQUE, LIFO, INJECTION, IDLE = (f"runtime/src/sched/{f}.hpp" for f in ("deque", "lifo_slot", "injection_queue", "idle_set"))
PARKER = "platform/src/futex_parker.cpp"
WATCHED = {"cases": ["the monitor watches while somebody runs fibers with something queued, or with operations under way"]}
BLOCKING, POOL = "runtime/src/blocking/blocking.cpp", "runtime/src/blocking/pool.cpp"
IDLE_CPP, SPINNING = "runtime/src/sched/idle.cpp", "runtime/src/sched/spinning.hpp"
WORKERS = "runtime/src/sched/worker_pool.cpp"
MONITOR = "runtime/src/sched/monitor.cpp"

MUTANTS = [
    ("young pop without a tag", DEQUE, [("return head_view((bits_ & ~stolen_mark) + one_tag); }", "return head_view(bits_ & ~stolen_mark); }")], ["ring_ends"]),
    ("tag before the tail", DEQUE, [
        ("    tail_.store(static_cast<std::uint16_t>(tail - 1), std::memory_order_release);  // before the RMW in take_lowered\n", ""),
        ("    set_longest(static_cast<std::uint16_t>(lowered - mine.real()));\n",
         "    set_longest(static_cast<std::uint16_t>(lowered - mine.real()));\n    tail_.store(lowered);\n"),
    ], ["ring_ends"]),
    ("a second thief does not interrupt the owner", DEQUE, [("      platform::heavy_fence();\n", "")], ["ring_two_thefts", "ring_two_thefts_at_wrap"]),
    ("a second thief interrupts the owner after it has seen the tail", DEQUE, [
        ("      platform::heavy_fence();\n", ""),
        ("    const auto length = static_cast<std::int16_t>(tail - head.real());\n    if (length <= 0) return nullptr;\n",
         "    const auto length = static_cast<std::int16_t>(tail - head.real());\n    if (length <= 0) return nullptr;\n"
         "    if (head.stolen()) platform::heavy_fence();\n")], ["ring_two_thefts"]),
    ("a second thief looks twice at an empty ring", DEQUE, [
        ("      if (head.real() == tail_.load(std::memory_order_relaxed)) return nullptr;  // without an interrupt for nothing\n      platform::heavy_fence();\n",
         "      if (head.real() != tail_.load(std::memory_order_relaxed)) platform::heavy_fence();\n")], ["ring_filled_between_looks"]),
    ("a claim leaves no mark", DEQUE, [("(upper() | stolen_mark) + one_tag};", "upper() + one_tag};")], ["ring_two_thefts"]),
    ("young pop without an RMW one entry too far", DEQUE, [("const auto older_half = (longest + 1) / 2;", "const auto older_half = longest / 2;")], ["ring_two_thefts"]),
    ("what was pushed does not count for the longest", DEQUE, [("    set_longest(older + 1u);\n", "    safe_from_.set(youngest);\n    safe_count_.set(1);\n")], ["ring_ends", "ring_mixed_pops"]),
    ("young pop without an RMW after the head has moved", DEQUE, [
        ("    if (head_.load(std::memory_order_relaxed) != seen_head_.get()) [[unlikely]] {",
         "    if (head_.load(std::memory_order_relaxed) == no_head) {")], ["ring_two_thefts", "ring_mixed_pops"]),
    ("young pop without an RMW where there is no membarrier", DEQUE, [("platform::asymmetric() ? mine.bits() : no_head", "mine.bits()")], ["ring_two_thefts"]),
    ("unsigned length", DEQUE, [("const auto length = static_cast<std::int16_t>(tail - head.real());\n    if (length <= 0)",
                                 "const auto length = static_cast<std::uint16_t>(tail - head.real());\n    if (length == 0)")], ["ring_ends"]),
    ("stolen into slots that a thief still reads", DEQUE, [("std::min<std::uint32_t>(length - length / 2, into.free_slots() + 1)", "length - length / 2")],
     ["ring_busy_thief"]),
    ("steal beside a thief", DEQUE, [("if (head.steal() != head.real()) return nullptr;  // another thief is copying", "")], ["ring_ends"]),
    ("thief ignores the owner", LIFO, [(" || inside_.load(std::memory_order_acquire)) return", ") return")], ["newest_slot"]),
    ("owner ignores an open slot", LIFO, [("if (must_exchange_.load(std::memory_order_relaxed)) [[unlikely]] {  // 3", "if (inside_.load() == false) {")], ["newest_slot"]),
    ("slot closed under a thief", LIFO, [("  void close() noexcept {\n    std::lock_guard no_thief(thieves_);\n", "  void close() noexcept {\n")], ["newest_slot"]),
    ("a ring sheds children for whom no room was made", "runtime/src/sched/run_queues.cpp", [
        ("  if (w.sched.queues.injection_.try_reserve_for_tasks(overflow_batch + 1)) {\n    w.queue.ring.push(as_entry(f)", "  if (true) {\n    w.queue.ring.push(as_entry(f)")],
     {"cases": ["children with a name push out of the ring as many without one as there are"]}),
    # Sleepers.
    ("the bit before the counts", IDLE, [
        ("    word_of(worker).fetch_or(bit_of(worker), std::memory_order_seq_cst);\n", ""),
        ("  void announce_sleep(std::uint32_t worker, bool was_searching) noexcept {\n",
         "  void announce_sleep(std::uint32_t worker, bool was_searching) noexcept {\n    word_of(worker).fetch_or(bit_of(worker), std::memory_order_seq_cst);\n")],
     ["nobody_sleeps_on_work"]),
    ("a sleeper that can't be found", IDLE, [("if ((before & mask) != 0) {", "if ((before & mask) == 0) {")], ["nobody_sleeps_on_work"]),
    ("a token that comes while parking is lost", PARKER, [("  if (announce()) return;\n  while", "  (void)announce();\n  state_.store(parked);\n  while")], ["parker_tokens"]),
    ("two tokens are two", PARKER, [("state_.exchange(notified, std::memory_order_release) == parked", "state_.fetch_add(1) == parked")], ["parker_tokens"]),
    ("a batch over what is there", INJECTION, [("at(first_ + length + i) = items[i];", "at(first_ + i) = items[i];")], ["injection"]),
    ("nobody is told that there is room", INJECTION, [("room_.notify_all();", ";")], ["injection_room"]),
    # The whole runtime.
    ("sleep without a second look", "runtime/src/sched/idle.cpp", [("  if (sched_.queues.work_visible()) return true;\n  if (w.is", "  if (w.is")], ("spawn_and_join",)),
    ("the last searcher does not look again", "runtime/src/sched/idle.cpp", [("    if (left.should_wake()) {", "    if (left.should_wake() && false) {")], ("everybody_is_needed",)),
    ("nobody is told of what was spawned", WORKERS, [("const bool woke_one = seen.should_wake() && wake_one();", "const bool woke_one = false;")], ("everybody_is_needed",)),
    ("an epoch that does not move", "runtime/src/cancel/scope.cpp", [("  scheduler_->cancels.advance_epoch();                // 2\n", "")], ("cancel_a_parked_one",)),
    # Blocking calls.
    ("a call runs on after its caller has gone", BLOCKING, [("if (!pool.take_back(job)) when_cancelled();", "(void)pool.take_back(job);")], ("cancel_meets_blocking_call",)),
    ("a thread of the pool is counted on while it leaves", POOL, [
        ("    resign(me);\n    return true;\n", "    return true;\n"),
        ("if (time_is_up(me)) return nullptr;", "if (time_is_up(me)) {\n      std::lock_guard hold(mutex_);\n      resign(me);\n      return nullptr;\n    }")], ("blocking_calls_of_the_impatient",)),
    ("a caller hears of the end of its call before the thread is free", POOL, [
        ("  const bool idle = take_or_list(me, next);\n  if (done != nullptr) done->ended.open();\n",
         "  if (done != nullptr) done->ended.open();\n  const bool idle = take_or_list(me, next);\n")], ("calls_one_after_the_other",)),
    ("a token of the pool is left over", POOL, [("    me.parker.park();\n", "")], ("blocking_calls_of_the_impatient",)),
    ("a token that ends a spin is waited for again", POOL, [
        ("if (me.parker.has_token()) return me.calls.paid();", "if (me.parker.park_until(platform::time_point::min())) return me.calls.paid();")], ("calls_one_after_the_other",)),
    ("a token that comes after a spin is left over", POOL, [
        ("  if (me.parker.has_token()) return me.parker.park_until(platform::time_point::min());\n", "  if (me.parker.has_token()) return true;\n")], ("blocking_calls",)),
    ("a thread with a processor of its own sleeps at once", POOL, [
        ("if (me.on == me.caller_on || !is_free()", "if (me.on != me.caller_on || !is_free()")], ("calls_one_after_the_other",)),
    ("threads spin without a processor", SPINNING, [("workers_.load().awake() + threads <= processors_", "workers_.load().awake() + threads != 0")],
     {"cases": ["workers that are awake need a processor each, those that sleep none"]}),
    ("workers that sleep need a processor", SPINNING, [("workers_.load().awake() + threads", "workers_.load().parked() + threads")],
     {"cases": ["workers that are awake need a processor each, those that sleep none"]}),
    ("a worker that waits for a call naps after thefts", IDLE_CPP, [
        ("  if (w.dispatch.call.get() != begun_call::none) {\n    stealing.judge_later();\n    return false;\n  }\n", "")],
     {"cases": ["a worker that has begun a call and has nothing else to run does not nap"]}),
    ("a worker that waits for a call naps after a wake in vain", IDLE_CPP, [
        ("if (w.policy != nullptr || w.dispatch.call.get() != begun_call::none) return false;", "if (w.policy != nullptr) return false;")],
     {"cases": ["a worker that has begun a call and has nothing else to run does not nap"]}),
    ("a worker spins that others do not rely on", IDLE_CPP, [("if (!w.dispatch.searching.get() || !sched_.blocking", "if (!sched_.blocking")],
     {"cases": ["a worker spins for the end of a call that may be short, while it pays"]}),
    ("spins in vain go on for ever", SPINNING, [("left_ = last_ = std::clamp(2 * last_, 1u, most_spins_left_out);", "last_ = std::clamp(2 * last_, 1u, most_spins_left_out);")],
     {"cases": ["a spin in vain is left out, twice as often each time, up to a limit"]}),
    ("a spin that pays is left out all the same", SPINNING, [("void paid() noexcept { last_ = 0; }", "void paid() noexcept {}")],
     {"cases": ["a spin that pays is made again, and the next one in vain is left out once"]}),
    # The monitor, and a worker that retires.
    ("the monitor does not see the slot", MONITOR, [("seen.queued = sched_.queues.anything_queued();", "seen.queued = sched_.queues.work_visible();")], WATCHED),
    ("the monitor does not see operations that are under way", MONITOR, [
        ("    seen.active_with_io = seen.active_with_io || (active && w->io.under_way() != 0);\n", "")], WATCHED),
    ("a searching worker that retires does not look again", WORKERS, [("if (moved || sched_.queues.work_visible() || sched_.deadlines", "if (moved || sched_.deadlines")],
     {"cases": ["a searching worker that retires looks once more for those who relied on it"]}),
]
