# SPDX-License-Identifier: BSL-1.0
"""Checks that builds with them lack: what a program does wrong, and nobody says so."""
MUTEX, SHARED, ONCE = (f"sync/src/{f}.cpp" for f in ("mutex", "shared_mutex", "once"))
LATCH, SEMAPHORE, BARRIER, MISUSE = (f"sync/src/{f}.cpp" for f in ("latch", "semaphore", "barrier", "misuse"))

MISPLACED = {"cases": ["builds with checks notice a misplaced fiber and a changed rounding mode"], "checks": True}
OWN = {"cases": ["builds with checks notice who locks its own lock"], "checks": True}
ANOTHERS = {"cases": ["builds with checks notice who unlocks another's lock"], "checks": True}
EARLY = {"cases": ["builds with checks notice a lock or event that is destroyed too early"], "checks": True}
BEYOND = {"cases": ["counts that can't be are refused, and change nothing"]}  # in all builds


MUTANTS = [
    # The scheduler.
    ("a fiber that is queued from outside is not looked at", "runtime/src/sched/run_queues.cpp",
     [("  check_runnable(f);\n  pushed_outside_", "  pushed_outside_")], MISPLACED),
    ("a fiber that is queued by a worker is not looked at", "runtime/src/sched/run_queues.hpp",
     [("  check_runnable(f);\n  w.count.enqueued", "  w.count.enqueued")], MISPLACED),
    ("nobody looks at the rounding mode of a fiber that waits", "runtime/src/sched/runner.hpp",
     [("  if constexpr (platform::debug_checks) check_float_controls(w, leaver);\n", "")], MISPLACED),
    # Who has a lock.
    ("a mutex does not look who wants it", MUTEX,
     [("  if (until == never && owned_by(m.owner, at)) {", "  if (false) {")], OWN),
    ("a shared mutex does not look who wants it", SHARED, [("    if (until == never && owned_by(m.owner, at)) {", "    if (false) {")], OWN),
    ("a once does not look who wants it", ONCE, [("    if (owned_by(o.owner, at)) {", "    if (false) {")], OWN),
    ("a mutex does not look who unlocks it", MUTEX, [("    if (!owned_by(m.owner, at)) {", "    if (false) {")], ANOTHERS),
    ("a shared mutex does not look who unlocks it", SHARED,
     [("    if (!owned_by(m.owner, at)) {", "    if (false) {")], ANOTHERS),
    ("a shared mutex does not look whether anybody shares it", SHARED,
     [("    if (m.word.load(std::memory_order_relaxed) < shared_mutex_word::reader) {", "    if (false) {")], ANOTHERS),
    # What is destroyed too early.
    ("nobody notices what is destroyed too early", MISUSE,
     [("  if constexpr (platform::debug_checks) {\n    platform::fatal(\"%s destroys", "  if constexpr (false) {\n    platform::fatal(\"%s destroys")], EARLY),
    # What is counted too far.
    ("a latch below zero is put up with", LATCH,
     [("  if (!latch_word::count_down(l, count)) [[unlikely]]", "  if (!latch_word::count_down(l, count) && false)")], BEYOND),
    ("too many permits are put up with", SEMAPHORE,
     [("  if (!semaphore_word::release(s, static_cast<std::uint64_t>(count))) [[unlikely]]",
       "  if (!semaphore_word::release(s, static_cast<std::uint64_t>(count)) && false)")], BEYOND),
    ("a wait at a barrier that all have left is put up with", BARRIER,
     [("  if (barrier_parties::are_gone(b)) no_parties_left", "  if (false) no_parties_left")], BEYOND),
]
