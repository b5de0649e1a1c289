# SPDX-License-Identifier: BSL-1.0
"""Flaws of a fiber's state word and of the switch."""
STATE = "runtime/src/task/state.hpp"

MUTANTS = [
    # wake_pending beside the state instead of in the word: decision 10 says how that loses a wake.
    ("separate wake_pending", STATE, [
        ("} else if (replace(seen, seen.with(word_view::claimed | word_view::notified))) {\n        return wake_result::deferred;",
         "} else {\n        pending_.store(1);\n        return wake_result::deferred;"),
        ("} else if (replace(seen, seen.in(lifecycle::parked))) {\n        return commit_result::parked;",
         "} else if (replace(seen, seen.in(lifecycle::parked))) {\n        if (pending_.exchange(0) == 1) {\n"
         "          auto now = load();\n          if (now.state() == lifecycle::parked && replace(now, now.in(lifecycle::runnable))) return commit_result::must_enqueue;\n"
         "        }\n        return commit_result::parked;"),
        ("platform::atomic<std::uint64_t> bits_{0};", "platform::atomic<std::uint64_t> bits_{0};\n  platform::atomic<int> pending_{0};"),
    ], ["two_waits_one_worker"]),
    # Flaw 2: the park is committed on the fiber's own stack.
    ("commit before the switch", "runtime/src/sched/runner.hpp", [("leaver.stack.set(w.run.active.get());",
       "leaver.stack.set(w.run.active.get());\n  if (as == departure::park) commit_park(w, leaver);"), ("commit_park(w, *w.run.left_fiber.get());", ";")], {"cases": ["fibers wake each other in turns, on any number of workers"], "checks": True}),
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
    ("a frame is spawned into twice", STATE, [("if (const auto seen = load(); !has_no_fiber(seen.state())) illegal(seen, lifecycle::runnable);", ";")],
     {"cases": ["builds with checks notice a spawn into a frame that holds a fiber"], "checks": True}),
]
