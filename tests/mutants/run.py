#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Puts known flaws back into a copy of the runtime and shows that the tests notice.

Each mutant names a file, a text in it, and what stands there instead. Mutants of the lock-free leaves are
given to the explorer (tests/explore), mutants of the runtime to a short program with debug checks on
(tests/mutants/probe.cpp), mutants of single files of the nurseries and of the timekeeper to others (nursery_probe.cpp,
time_probe.cpp). What a flaw
does not touch is taken from a build folder (argument, default build). Survivors are failures; so is a text that is no
longer found.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(next((a for a in sys.argv[1:] if not a.startswith("--")), TOP / "build")).resolve()
CXX = os.environ.get("CXX", "g++").split()
STATE, DEQUE, LIFO, HOT = "task/state.hpp", "sched/deque.hpp", "sched/lifo_slot.hpp", "sched/hot.hpp"
LIVE = "ramie/runtime/live_count.hpp"  # in runtime/internal
LOCK, LOCK_INSIDE = "platform/src/biased_lock.cpp", "platform/internal/ramie/platform/biased_lock.hpp"
BLOCKING, POOL = "runtime/src/blocking/blocking.cpp", "runtime/src/blocking/pool.cpp"
KEEPER, WHEEL = "runtime/src/time/timekeeper.cpp", "runtime/internal/ramie/runtime/timer_wheel.hpp"
PIPE = "stream/byte_pipe.hpp"
REQUEST = "io/request.hpp"
BED = "io/sleeper.hpp"
CHANNEL, CHANNEL_INSIDE = "channel/src/core.cpp", "channel/src/core.hpp"
MUTEX, SEMAPHORE, NOTIFY, ONCE = (f"channel/src/sync/{f}_core.hpp" for f in ("mutex", "semaphore", "notify", "once"))
CONDITION, EVENT, LATCH, BARRIER = (f"channel/src/sync/{f}_core.hpp" for f in ("condition", "event", "latch", "barrier"))

# What of the explorer has to be compiled again for a changed file; the rest is taken from the build folder.
IDLE, NEXT, PARKER, INJECTION = "sched/idle_set.hpp", "runtime/src/sched/next.cpp", "platform/src/futex_parker.cpp", "sched/injection_queue.hpp"
WORDS, QUEUES, SLEEPERS, JOINS, CHANNELS, SYNCS, SIGNALS, PIPES, REQUESTS = (
    f"tests/explore/{f}.cpp" for f in ("words", "queues", "sleepers", "joins", "channels", "syncs", "signals", "pipes", "requests"))
SEEN_BY = {STATE: [WORDS, JOINS, CHANNELS, SYNCS, SIGNALS, PIPES, REQUESTS], PIPE: [PIPES], REQUEST: [REQUESTS], BED: [REQUESTS], DEQUE: [QUEUES], LIFO: [QUEUES], INJECTION: [QUEUES], LIVE: [JOINS], IDLE: [SLEEPERS], PARKER: [PARKER],
           LOCK: [LOCK], LOCK_INSIDE: [LOCK, CHANNEL, CHANNELS], CHANNEL: [CHANNEL],
           CHANNEL_INSIDE: [CHANNEL, CHANNELS], MUTEX: [SYNCS, SIGNALS], SEMAPHORE: [SYNCS], NOTIFY: [SYNCS], ONCE: [SYNCS],
           CONDITION: [SIGNALS], EVENT: [SIGNALS], LATCH: [SIGNALS], BARRIER: [SIGNALS]}

# (name, file, [(text, replacement)], explorer scenarios or None for the probe); a tuple: scenarios of the whole runtime
MUTANTS = [
    # Seed 004 section 4 as written: wake_pending beside the state. Flaw 1 of design section 2.
    ("separate wake_pending", STATE, [
        ("} else if (replace(seen, seen.with(word_view::claimed | word_view::notified | flags))) {\n        return wake_result::deferred;",
         "} else {\n        pending_.store(1);\n        return wake_result::deferred;"),
        ("} else if (replace(seen, seen.in(lifecycle::parked))) {\n        return commit_result::parked;",
         "} else if (replace(seen, seen.in(lifecycle::parked))) {\n        if (pending_.exchange(0) == 1) {\n"
         "          auto now = load();\n          if (now.state() == lifecycle::parked && replace(now, now.in(lifecycle::runnable))) return commit_result::must_enqueue;\n"
         "        }\n        return commit_result::parked;"),
        ("platform::atomic<std::uint64_t> bits_{0};", "platform::atomic<std::uint64_t> bits_{0};\n  platform::atomic<int> pending_{0};"),
    ], ["one_wait_two_workers", "two_waits_one_worker"]),
    # Flaw 2: the park is committed on the fiber's own stack.
    ("commit before the switch", HOT, [
        ("leaver->stack.set(w.active.get());", "leaver->stack.set(w.active.get());\n  if (as == departure::park) commit_park(w, *leaver);"),
        ("commit_park(w, *w.left_fiber.get());", ";"),
    ], None),
    # Flaw 3: the state is claimed without looking at the ticket.
    ("ticket not compared", STATE, [("if (seen.ticket() != ticket) return false;", "(void)ticket;")], ["two_waits_one_worker"]),
    # The transfer window of claim and complete.
    ("claimed fiber made runnable by the commit", STATE, [
        ("if (replace(seen, seen.in(lifecycle::waking))) return commit_result::left_claimed;",
         "if (replace(seen, seen.in(lifecycle::runnable))) return commit_result::must_enqueue;")], ["one_wait_two_workers"]),
    ("claim makes it runnable at once", STATE, [
        ("seen.state() == lifecycle::parked ? seen.in(lifecycle::waking) : seen", "seen.state() == lifecycle::parked ? seen.in(lifecycle::runnable) : seen")],
     ["one_wait_two_workers"]),
    ("commit ignores a wake", STATE, [("if (seen.has(word_view::notified)) {\n        if (replace", "if (seen.bits() == 0) {\n        if (replace")],
     ["one_wait_two_workers"]),
    ("commit by a plain store", STATE, [("} else if (replace(seen, seen.in(lifecycle::parked))) {", "} else if (bits_.store(seen.in(lifecycle::parked).bits()), true) {")],
     ["one_wait_two_workers"]),
    ("waker enqueues a parking fiber", STATE, [
        ("        return wake_result::deferred;", "        return wake_result::must_enqueue;")], ["one_wait_two_workers"]),
    ("two claims on one wait", STATE, [("seen.state() == lifecycle::parking && !seen.has(word_view::claimed)", "seen.state() == lifecycle::parking")],
     ["one_wait_two_workers"]),
    ("young pop without a tag", DEQUE, [("return head_view(bits_ + (std::uint64_t{1} << 32)); }", "return head_view(bits_); }")], ["ring_ends"]),
    ("tag before the tail", DEQUE, [
        ("    tail_.store(lowered, std::memory_order_release);  // before the RMW below\n", ""),
        ("    return slot(lowered).load(std::memory_order_relaxed);", "    tail_.store(lowered);\n    return slot(lowered).load(std::memory_order_relaxed);"),
    ], ["ring_ends"]),
    ("unsigned length", DEQUE, [("const auto length = static_cast<std::int16_t>(tail - head.real());\n    if (length <= 0)",
                                 "const auto length = static_cast<std::uint16_t>(tail - head.real());\n    if (length == 0)")], ["ring_ends"]),
    ("stolen into slots that a thief still reads", DEQUE, [("std::min<std::uint32_t>(length - length / 2, into.room() + 1)", "length - length / 2")],
     ["ring_busy_thief"]),
    ("steal beside a thief", DEQUE, [("if (head.steal() != head.real()) return nullptr;  // another thief is copying", "")], ["ring_ends"]),
    ("thief ignores the owner", LIFO, [(" || inside_.load(std::memory_order_acquire)) return", ") return")], ["newest_slot"]),
    ("owner ignores an open slot", LIFO, [("if (beware_.load(std::memory_order_relaxed)) [[unlikely]] {  // 3", "if (inside_.load() == false) {")], ["newest_slot"]),
    # Joins.
    ("fold and look apart", LIVE, [("if (shared_.fetch_add(fold, std::memory_order_acq_rel) + fold != 1) return true;",
                                    "const auto before = shared_.load();\n    shared_.fetch_add(fold);\n    if (before + fold != 1) return true;")],
     ["join_and_end"]),
    ("joining is not announced", LIVE, [("const auto fold = 2 * local() + 1;", "const auto fold = 2 * local();"),
                                        ("+ fold != 1) return true;", "+ fold != 0) return true;")], ["join_and_end"]),
    ("the joiner does not wait for the teller", LIVE, [
        ("    for (platform::backoff turn; !told_.load(std::memory_order_acquire);) turn.wait();\n    std::lock_guard hold(lock_);\n", "")], ["join_woken_by_accident"]),
    ("the owner trusts the count while it joins", LIVE, [("joiner_ = nullptr;\n      if (shared_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;",
                                                          "joiner_ = nullptr;\n      return;")], ["join_woken_by_accident"]),
    ("an end that does not count", LIVE, [("if (shared_.fetch_sub(2, std::memory_order_acq_rel) == 3) tell_joiner();",
                                           "if (shared_.load() == 3) tell_joiner();\n    shared_.fetch_sub(2);")], ["join_and_end"]),
    ("in place whatever the scope (J2)", "nursery/src/nursery.cpp", [("if (at.innermost() == &n) [[likely]] {", "if (true) {")], "nursery"),
    ("in place whoever it is (J6)", "runtime/src/sched/join.cpp", [("return f.home == &of || f.home->inside(of);", "return true;")], "nursery"),
    ("in place without room (J7)", "runtime/src/sched/join.cpp", [(" || f.size_class > largest) return false;", ") return false;")], "nursery"),
    ("the joiner's exceptions in sight", "runtime/src/sched/join.cpp", [("const bool unwinding = ", "const bool unwinding = false && ")], "nursery"),
    ("a failure cancels nobody", "nursery/src/tasks.cpp", [("  home.cancel(std::move(why));\n", "")], "nursery"),
    # The lock of channels, and channels.
    ("revoked without a wait", LOCK, [("inside_[granted_cell_].load(std::memory_order_acquire)", "false")], ["granted_lock"]),
    ("one cell for all parties", LOCK_INSIDE, [("auto& cell = inside_[me->cell];", "auto& cell = inside_[0];"),
                                               ("inside_[me->cell].store(false", "inside_[0].store(false"),
                                               ("taken_twice();", ";")], ["granted_lock"]),
    ("in by a grant that is gone", LOCK_INSIDE, [("if (granted_.load(std::memory_order_relaxed) == me->id) [[likely]]  // 3", "if (true)")], ["granted_lock"]),
    ("granted while held by a grant", LOCK, [("granted_.store(0, std::memory_order_relaxed);", "")], ["granted_lock"]),
    ("let go of from outside", LOCK_INSIDE, [
        ("    if (asked_.load(std::memory_order_relaxed)) [[unlikely]]\n      consider_letting_go();\n"
         "    inside_[me->cell].store(false, std::memory_order_release);  // pairs with the acquire of the revoker\n",
         "    inside_[me->cell].store(false, std::memory_order_release);\n    if (asked_.load()) consider_letting_go();\n")], ["lease_ends_late"]),
    ("a close that tells no receiver", CHANNEL, [("    refuse_receivers(later);\n", "")], ["channel_meets_close"]),
    ("a close that forgets its senders", CHANNEL, [("  shelter_senders(behind_, later);\n  return true;", "  return true;")], ["channel_makes_room"]),
    ("listed on a closed channel", CHANNEL_INSIDE, [("if (closed_.load(std::memory_order_relaxed)) [[unlikely]]\n    return meeting::closed;", ""), ("return closed_.load(std::memory_order_relaxed) ? meeting::closed : meeting::none;", "return meeting::none;")],
     ["channel_meets_close"]),
    ("nobody moves up", CHANNEL_INSIDE, [("if (!senders_.empty()) refill(later);", "")], ["channel_moves_up"]),
    ("the buffer before the one who waits", CHANNEL_INSIDE, [("if (!receivers_.empty() && meet(receivers_, element, later)) return meeting::done;", "")], ["channel_meeting"]),
    ("the senders' elements are dropped", CHANNEL, [("        shelter.push(node->element);\n", "")], ["channel_meets_close"]),
    # Operations.
    ("a completion that wakes nobody", REQUEST, [("if (ticket != idle) fiber_wake(f, ticket);", "(void)f, (void)ticket;")], ["io_request"]),
    ("listed although it is done", REQUEST, [
        ("return state_.compare_exchange_strong(before, node.ticket, std::memory_order_relaxed, std::memory_order_acquire);",
         "(void)before;\n    state_.store(node.ticket);\n    return true;")], ["io_request"]),
    ("asleep is not told before the look for a token", BED, [
        ("    asleep_.store(true, std::memory_order_relaxed);  // 1\n    platform::full_fence();                          // 2\n    if (!take_token()) sleep_in_bed();",
         "    if (!take_token()) {\n      asleep_.store(true);\n      sleep_in_bed();\n    }")], ["io_sleeper"]),
    # Pipes of a duplex.
    ("listed at a pipe without a look", PIPE, [("    if (!(this->*waits)()) return false;\n", "    (void)waits;\n")], ["pipe"]),
    ("a read that frees room tells nobody", PIPE, [
        ("    call.result = read(call.into);\n    call.to_wake = serve();", "    call.result = read(call.into);")], ["pipe"]),
    ("a pipe closed for its writers keeps them waiting", PIPE, [
        ("return size_ == capacity_ && !reader_closed_ && write_error_ == 0;", "return size_ == capacity_;"), ("      size_ = 0;\n", "")], ["pipe_closed"]),
    ("who leaves a pipe stays listed", PIPE, [("    from.remove(node);", "    (void)node, (void)from;")], ["pipe_one_leaves", "pipe_disturbed"]),
    ("bytes moved for one who was not claimed", PIPE, [
        ("auto* const call = static_cast<pipe_read*>(readers_.claim_first());\n        if (call == nullptr) break;\n        call->result = read(call->into);",
         "auto* const call = static_cast<pipe_read*>(readers_.first());\n        if (call == nullptr) break;\n        call->result = read(call->into);\n"
         "        if (!readers_.claim_listed_first(*call)) continue;")], ["pipe_one_leaves"]),
    # Locks and signals.
    ("an unlock that forgets the line", MUTEX, [("if ((seen & (waiting | woken)) == waiting) {", "if (false) {")], ["mutex_two"]),
    ("a woken waiter that says nothing", MUTEX, [("const auto wanted = (seen | locked) & ~woken;", "const auto wanted = seen | locked;")], ["mutex_three"]),
    ("a lock is waited for without a word", MUTEX, [("seen | ((seen & locked) == 0 ? locked : waiting)", "seen | ((seen & locked) == 0 ? locked : 0)")], ["mutex_two"]),
    ("handed over and let go", MUTEX, [("if (!handed_over) m.word", "m.word")], ["mutex_handed_over"]),
    ("permits that slip past a waiter", SEMAPHORE, [("while ((seen & waiting) == 0 && permits(seen) >= count) {", "while (permits(seen) >= count) {")], ["semaphore_in_turn"]),
    ("a leaver's permits stay", SEMAPHORE, [("settle(s, hold, deal_out(permits(seen), hold, later));\n  }", "settle(s, hold, permits(seen));\n  }")], ["semaphore_one_leaves"]),
    ("a notification for a stale waiter", NOTIFY, [("first != nullptr ? 0 : permit", "0")], ["notify_disturbed"]),
    ("a failure that wakes nobody", ONCE, [("succeeded ? finish(o) : pass_on(o)", "finish(o)")], ["once_failing"]),
    ("unlocked, then listed", CONDITION, [("    condition_line::list(condition_, me);\n    Unlock(mutex_);", "    Unlock(mutex_);\n    condition_line::list(condition_, me);")], ["condition"]),
    ("a notification that a cancelled waiter takes along", CONDITION, [
        ("waiter* const first = hold.claim_first()", "waiter* const first = hold.first(); first != nullptr && hold.claim_listed_first(*first)")], ["condition_one_leaves"]),
    ("who leaves a condition speaks for all", CONDITION, [("hold.remove(me);\n    if (hold.empty()) c.waited_for", "hold.remove(me);\n    c.waited_for")], ["condition_one_leaves"]),
    ("listed though it has happened", EVENT, [("      if ((seen & happened) != 0) return false;\n", "")], ["event"]),
    ("let pass, but not by a look", EVENT, [("static_cast<line_waiter&>(node).passed || ", "")], ["event_one_leaves"]),
    ("listed at an open latch", LATCH, [("      if (count(seen) == 0) return false;\n", "")], ["latch"]),
    ("told while the line of a latch is held", LATCH, [("    tell_later later;\n    line_guard hold(l.waiters);\n", "    line_guard hold(l.waiters);\n    tell_later later;\n")], ["latch_gone"]),
    ("who has left a barrier has come", BARRIER, [("    ++b.missing;\n", "")], ["barrier_one_leaves"]),
    ("who has passed a barrier is missing again", BARRIER, [("    if (!me.listed) return;\n", "")], ["barrier_disturbed"]),
    ("nobody leads after one has dropped out", BARRIER, [("    if (auto* const first = hold.first<barrier_waiter>()) first->leads = true;\n", "")], ["barrier_dropped"]),
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
    # Time.
    ("a timer's tick is rounded down", KEEPER, [("std::chrono::ceil<tick>", "std::chrono::floor<tick>")], "time"),
    ("what a slot held is not sorted in", WHEEL, [("    } else {\n      sort_in(slot);\n    }", "    }")], "time"),
    ("a deadline that is not announced", KEEPER, [("  if (next < in.next.load(std::memory_order_relaxed)) in.next.store(next, std::memory_order_relaxed);\n", "")], "time"),
    ("nobody cancels what is due", KEEPER, [("    if (cancels_.exchange(false, std::memory_order_acquire)) cancel_all_due();\n", "")], "time"),
    ("a timer rings when its shard is free again", KEEPER, [
        ("    waker ready[wake_batch];\n", "    waker ready[wake_batch];\n    wake_up* calls[wake_batch];\n"),
        ("        call.rang.store(true, std::memory_order_release);  // pairs", "        calls[count - 1] = &call;  // pairs"),
        ("++i) ready[i].wake();", "++i) calls[i]->rang.store(true), ready[i].wake();")], ("timer_of_workers_set_again",)),
    ("a timer that is set again wakes who waited before", KEEPER, [
        ("    std::lock_guard hold(shards_[entry.shard].lock);\n    entry.who = who;\n", "    std::lock_guard hold(shards_[entry.shard].lock);\n")], ("timer_by_hand_set_again",)),
    ("a timer is removed while somebody carries it out", KEEPER, [("  std::lock_guard hold(in.lock);\n  unlist(in, entry);", "  unlist(in, entry);")], ("timer_by_hand_removed",)),
    # The whole runtime under the explorer.
    ("sleep without a second look", NEXT, [("bool needed = work_visible() ||", "bool needed = false &&")], "programs"),
    ("the last searcher does not look again", NEXT, [("    if (left.should_wake()) {", "    if (left.should_wake() && false) {")], "programs"),
    ("nobody is told of what was spawned", "runtime/src/sched/schedule.cpp", [("const bool woke_one = seen.should_wake() && wake_somebody();", "const bool woke_one = false;")], "programs"),
    ("an epoch that does not move", "runtime/src/cancel/scope.cpp", [("  scheduler_->cancel_epoch.fetch_add(1, std::memory_order_seq_cst);  // 2\n", "")], "programs"),
    ("a call runs on after its caller has gone", BLOCKING, [("if (!pool.take_back(job)) when_cancelled();", "(void)pool.take_back(job);")], "programs"),
    ("a thread of the pool is counted on while it leaves", POOL, [
        ("    resign(me);\n    return true;\n", "    return true;\n"),
        ("if (time_is_up(me)) return nullptr;", "if (time_is_up(me)) {\n      std::lock_guard hold(mutex_);\n      resign(me);\n      return nullptr;\n    }")], "programs"),
    ("a token of the pool is left over", POOL, [("    me.parker.park();\n", "")], "programs"),
    ("slot closed under a thief", LIFO, [("  void close() noexcept {\n    std::lock_guard no_thief(thieves_);\n", "  void close() noexcept {\n")], ["newest_slot"]),
]

LIBRARIES = ["-lboost_context"] + (["-luring"] if pathlib.Path("/usr/include/liburing.h").exists() else [])

# One of most mechanisms: what every run of the tests does. RAMIE_TEST_SIZE=large, or --all: all of them.
SMALL = {
    "separate wake_pending",
    "ticket not compared",
    "stolen into slots that a thief still reads",
    "revoked without a wait",
    "listed on a closed channel",
    "the last searcher does not look again",
    "an epoch that does not move",
}


def mutated(text, edits):
    for old, new in edits:
        if text.count(old) == 0:
            raise LookupError(f"text not found: {old[:60]!r}")
        text = text.replace(old, new, 1)
    return text


# One changed file in front of the library, whose own copy of it is then not taken.
def build_beside_library(file, edits, folder, probe="nursery_probe.cpp"):
    source = folder / pathlib.Path(file).name
    source.write_text(mutated((TOP / file).read_text(), edits))
    if file == WHEEL:  # a header, seen by the keeper alone
        (folder / "ramie" / "runtime").mkdir(parents=True)
        source.rename(folder / "ramie" / "runtime" / source.name)
        source, file = TOP / KEEPER, KEEPER
    includes = [f"-I{folder}"] + [f"-I{TOP / d}" for d in ("include", "runtime/include", "runtime/internal", "platform/internal", "nursery/include", "channel/include",
                                        "nursery/internal", str(pathlib.Path(file).parent))]
    return CXX + ["-std=c++20", "-w", "-O1", *includes, str(source), str(TOP / "tests/mutants" / probe),
                  str(BUILD / "libramie.a")]


# One changed file among the objects of the explorer of the whole runtime.
def build_programs(file, edits, folder):
    source = folder / pathlib.Path(file).name
    source.write_text(mutated((TOP / file).read_text(), edits))
    includes = [f"-I{TOP / d}" for d in ("tests/explore", "runtime/src", "channel/src", "channel/include", "runtime/include", "runtime/internal",
                                        "platform/internal", "nursery/include", str(pathlib.Path(file).parent))]
    same = "_" + file.removeprefix("runtime/src/").replace("/", "_") + ".o"
    rest = [str(p) for p in (BUILD / "tests" / "ramie-explore-runtime.p").glob("*.o") if not p.name.endswith(same)]
    return CXX + ["-std=c++20", "-w", "-O1", "-DRAMIE_MODEL", "-DRAMIE_MODEL_OF_ALL", *includes, str(source), *rest]


def build_and_run(mutant, folder):
    name, file, edits, scenarios = mutant
    program = folder / "program"
    if scenarios == "programs" or isinstance(scenarios, tuple):
        return judge(build_programs(file, edits, folder), program, [] if scenarios == "programs" else list(scenarios), 120)
    if scenarios == "time":
        return judge(build_beside_library(file, edits, folder, "time_probe.cpp"), program, [], 20)
    if scenarios == "nursery":
        return judge(build_beside_library(file, edits, folder), program, [], 20)
    for room in ("platform", "runtime", "channel"):
        shutil.copytree(TOP / room, folder / room)
    inside = ("runtime/internal/" if file.startswith("ramie/") else "runtime/src/") if not file.startswith(("platform/", "channel/")) else ""
    changed = folder / (inside + file)
    changed.write_text(mutated(changed.read_text(), edits))
    common = CXX + ["-std=c++20", "-w"] + [f"-I{folder / d}" for d in ("runtime/src", "runtime/include", "runtime/internal", "platform/internal")]
    if scenarios is not None:
        again = [(TOP / p if p.startswith("tests/") else folder / p) for p in SEEN_BY[file]]
        rest = [p for p in (BUILD / "tests" / "ramie-explore.p").glob("*.o") if not any(p.name.endswith(f"_{a.name}.o") for a in again)]
        command = common + ["-O1", "-DRAMIE_MODEL", f"-I{TOP}/tests/explore", f"-I{folder}/channel/src", f"-I{folder}/channel/include"] + \
            [str(p) for p in again + rest]
    else:
        files = [p for room in ("runtime", "platform") for p in (folder / room / "src").rglob("*.cpp")
                 if p.name != "unruly.cpp" and p.parent.name not in ("net", "fs", "process", "stream")] + [TOP / "tests" / "mutants" / "probe.cpp"]
        command = common + ["-O0", "-DRAMIE_CHECKS", f"-I{TOP}/tests"] + [str(p) for p in files]
    return judge(command, program, scenarios or [], 120)


def judge(command, program, arguments, patience):
    built = subprocess.run(command + [*LIBRARIES, "-pthread", "-o", str(program)], capture_output=True, text=True)
    if built.returncode != 0:
        return "BROKEN", built.stderr[-400:]
    try:
        ran = subprocess.run([str(program)] + arguments, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return "KILLED", "hangs"
    if ran.returncode == 0:
        return "SURVIVED", ""
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if "holds" not in line]
    return "KILLED", said[0][:150] if said else f"ended with {ran.returncode}"


def run(mutant):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return build_and_run(mutant, pathlib.Path(folder))
        except LookupError as stale:
            return "STALE", str(stale)


PROBES = {"nursery_probe.cpp": "nursery/src/nursery.cpp", "time_probe.cpp": KEEPER}


def run_unchanged(probe):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        return judge(build_beside_library(PROBES[probe], [], folder, probe), folder / "program", [], 60)


def main():
    bad = 0
    everything = "--all" in sys.argv or os.environ.get("RAMIE_TEST_SIZE") == "large"
    only = next((a.removeprefix("--only=") for a in sys.argv if a.startswith("--only=")), None)
    chosen = [m for m in MUTANTS if (only in m[0] or only == m[3] if only else everything or m[0] in SMALL)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for probe, (verdict, detail) in zip(PROBES, pool.map(run_unchanged, PROBES)):  # without a flaw they must pass
            if verdict != "SURVIVED":
                print(f"BROKEN    {probe} without a mutant: {detail}", flush=True)
                bad += 1
        for mutant, (verdict, detail) in zip(chosen, pool.map(run, chosen)):
            print(f"{verdict:9} {mutant[0]}: {detail}", flush=True)
            bad += verdict != "KILLED"
    print(f"{len(chosen) - bad} of {len(chosen)} mutants killed, {len(MUTANTS)} in all")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
