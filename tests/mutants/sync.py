# SPDX-License-Identifier: BSL-1.0
"""Flaws of locks, conditions and events."""
MUTEX, SEMAPHORE, NOTIFY, ONCE = (f"sync/src/{f}_core.hpp" for f in ("mutex", "semaphore", "notify", "once"))
QUEUE = "sync/src/wait_queue.hpp"
CONDITION, EVENT, LATCH, BARRIER = (f"sync/src/{f}_core.hpp" for f in ("condition", "event", "latch", "barrier"))

MUTANTS = [
    ("an unlock that forgets the queue", MUTEX, [("if ((seen & (waiting | woken)) == waiting) {", "if (false) {")], ["mutex_two"]),
    ("a woken waiter that says nothing", MUTEX, [("const auto wanted = (seen | locked) & ~woken;", "const auto wanted = seen | locked;")], ["mutex_three"]),
    ("a lock is waited for without a word", MUTEX, [("seen | ((seen & locked) == 0 ? locked : waiting)", "seen | ((seen & locked) == 0 ? locked : 0)")], ["mutex_two"]),
    ("handed over and let go", MUTEX, [("if (!handed_over) m.word", "m.word")], ["mutex_handed_over"]),
    ("permits that slip past a waiter", SEMAPHORE, [("while ((seen & waiting) == 0 && permits(seen) >= count) {", "while (permits(seen) >= count) {")], ["semaphore_in_turn"]),
    ("a leaver's permits stay", SEMAPHORE, [("settle(s, hold, deal_out(permits(seen), hold, wakes));\n  }", "settle(s, hold, permits(seen));\n  }")], ["semaphore_one_leaves"]),
    ("a notification for a stale waiter", NOTIFY, [("first != nullptr ? 0 : permit", "0")], ["notify_disturbed"]),
    ("a failure that wakes nobody", ONCE, [("succeeded ? finish(o) : pass_on(o)", "finish(o)")], ["once_failing"]),
    ("unlocked, then listed", CONDITION, [("    condition_queue::list(condition_, me);\n    Unlock(mutex_);", "    Unlock(mutex_);\n    condition_queue::list(condition_, me);")], ["condition"]),
    ("a notification that a cancelled waiter takes along", CONDITION, [
        ("waiter* const first = hold.claim_first()", "waiter* const first = hold.first(); first != nullptr && hold.claim_listed_first(*first)")], ["condition_one_leaves"]),
    ("who leaves a condition speaks for all", CONDITION, [("hold.remove(me);\n    if (hold.empty()) c.waited_for", "hold.remove(me);\n    c.waited_for")], ["condition_one_leaves"]),
    ("listed though it has happened", EVENT, [("      if ((seen & happened) != 0) return false;\n", "")], ["event"]),
    ("released, but a waiter that is awake does not see it", EVENT, [("me.released || ", "")], ["event_one_leaves"]),
    ("listed at an open latch", LATCH, [("      if (count(seen) == 0) return false;\n", "")], ["latch"]),
    ("waiters of a latch are completed while its queue is locked", LATCH, [("    wake_batch wakes;\n    queue_guard hold(l.waiters);\n", "    queue_guard hold(l.waiters);\n    wake_batch wakes;\n")], ["latch_gone"]),
    ("who has left a barrier has come", BARRIER, [("    ++b.missing;\n", "")], ["barrier_one_leaves"]),
    ("who has passed a barrier is missing again", BARRIER, [("    if (!me.listed) return;\n", "")], ["barrier_disturbed"]),
    ("nobody leads after one has dropped out", BARRIER, [("    if (auto* const first = hold.first<barrier_waiter>()) first->leads = true;\n", "")], ["barrier_dropped"]),
    ("readers behind a writer that gave up stay waiting", "sync/src/shared_mutex_core.hpp",
     [("    admit_beside(m, m.word.load(std::memory_order_relaxed), hold, wakes);\n", "    if (hold.empty()) m.word.fetch_and(~waiting, std::memory_order_relaxed);\n")],
     {"cases": ["a writer that gives up lets the readers behind it in"]}),
    ("a reader passes a writer that waits", "sync/src/shared_mutex_core.hpp",
     [("while ((seen & waiting) == 0 && fits(seen, how)) {", "while (fits(seen, how)) {")],
     {"cases": ["a writer is not starved by readers that keep coming"]}),
    ("a case of a select takes a lock before it has won", QUEUE, [
        ("return Word::publish_only(core_, static_cast<node&>(me));", "return Word::publish(core_, static_cast<node&>(me));")],
     ["select_lock"]),
    ("permits for a stale waiter", SEMAPHORE, [
        ("      if (!hold.claim_listed_first(*first)) continue;\n", "      (void)hold.claim_listed_first(*first);\n")],
     {"cases": ["what a select has not taken goes to the next who waits"]}),
]
