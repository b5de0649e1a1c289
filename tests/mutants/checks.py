# SPDX-License-Identifier: BSL-1.0
"""Checks that builds with them lack: what a program does wrong, and nobody says so."""
HOT, SCHEDULE = "runtime/src/sched/hot.hpp", "runtime/src/sched/schedule.cpp"
MUTEX, SHARED, ONCE = (f"channel/src/sync/{f}.cpp" for f in ("mutex", "shared_mutex", "once"))
LATCH, SEMAPHORE = "channel/src/sync/latch.cpp", "channel/src/sync/semaphore.cpp"

MISPLACED = {"cases": ["builds with checks notice a misplaced fiber and a changed rounding mode"], "checks": True}
OWN = {"cases": ["builds with checks notice who locks its own lock"], "checks": True}
ANOTHERS = {"cases": ["builds with checks notice who unlocks another's lock"], "checks": True}
EARLY = {"cases": ["builds with checks notice a lock or signal that is destroyed too early"], "checks": True}
BEYOND = {"cases": ["counting beyond what there is ends the program"]}  # in all builds


def destroyed(name, function, of, argument=""):
    """Nobody looks whether it is used when it is destroyed."""
    begins = f"void {function}_destroyed(const {function}_core&{argument}) noexcept {{\n  if constexpr ("
    return name, f"channel/src/sync/{of}.cpp", [(begins + "platform::debug_checks", begins + "false")], EARLY


MUTANTS = [
    # The scheduler.
    ("a fiber that is queued from outside is not looked at", SCHEDULE,
     [("  check_runnable(f);\n  enqueued_outside", "  enqueued_outside")], MISPLACED),
    ("a fiber that is queued by a worker is not looked at", HOT,
     [("  check_runnable(f);\n  w.count.enqueued", "  w.count.enqueued")], MISPLACED),
    ("nobody looks at the rounding mode of a fiber that waits", HOT,
     [("  if constexpr (platform::debug_checks) check_float_controls(w, *leaver);\n", "")], MISPLACED),
    # Who has a lock.
    ("a mutex does not look who wants it", MUTEX,
     [("  if (owned_by(m.owner, at)) {\n    misused(at, \"locks", "  if (false) {\n    misused(at, \"locks")], OWN),
    ("a shared mutex does not look who wants it", SHARED, [("    refuse_recursion(m, at);\n", "")], OWN),
    ("a once does not look who wants it", ONCE, [("    if (owned_by(o.owner, at)) {", "    if (false) {")], OWN),
    ("a mutex does not look who unlocks it", MUTEX, [("    if (!owned_by(m.owner, at)) {", "    if (false) {")], ANOTHERS),
    ("a shared mutex does not look who unlocks it", SHARED,
     [("    if (!owned_by(m.owner, at)) {", "    if (false) {")], ANOTHERS),
    ("a shared mutex does not look whether anybody shares it", SHARED,
     [("    if (m.word.load(std::memory_order_relaxed) < shared_mutex_word::reader) {", "    if (false) {")], ANOTHERS),
    # What is destroyed too early.
    destroyed("a mutex is destroyed while it is locked", "mutex", "mutex", " m"),
    destroyed("a shared mutex is destroyed while it is locked", "shared_mutex", "shared_mutex", " m"),
    destroyed("a semaphore is destroyed while somebody waits", "semaphore", "semaphore"),
    destroyed("an event is destroyed while somebody waits", "event", "event"),
    destroyed("a latch is destroyed while somebody waits", "latch", "latch"),
    destroyed("a barrier is destroyed while somebody waits", "barrier", "barrier"),
    destroyed("a notify is destroyed while somebody waits", "notify", "notify"),
    destroyed("a condition variable is destroyed while somebody waits", "condition", "condition_variable"),
    destroyed("a once is destroyed while somebody is at it", "once", "once"),
    # What is counted too far.
    ("a latch below zero is put up with", LATCH,
     [("  if (!latch_word::count_down(l, by)) [[unlikely]] {", "  if (!latch_word::count_down(l, by) && false) {")], BEYOND),
    ("too many permits are put up with", SEMAPHORE,
     [("  if (!semaphore_word::release(s, count)) [[unlikely]] {",
       "  if (!semaphore_word::release(s, count) && false) {")], BEYOND),
]
