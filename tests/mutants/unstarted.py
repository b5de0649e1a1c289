# SPDX-License-Identifier: BSL-1.0
"""Flaws of children that have not started: how they are cancelled, described, started, queued, and given a frame."""
RECORD, EXTRAS = "runtime/include/ramie/detail/fiber_ops.hpp", "runtime/src/task/extras.cpp"
RUNNER, JOIN, TASKS = "runtime/src/sched/runner.cpp", "runtime/src/sched/join.cpp", "nursery/src/tasks.cpp"

STARTS, JOINED, NAMED = "task_cancelled_as_it_starts", "task_cancelled_as_a_join_starts_it", "straggler_starts_as_it_is_named"
AIMS = "    if (fiber* const f = handle.block->frame(std::memory_order_acquire)) own->aim_at(*f);\n"
MUTANTS = [
    # Cancelled as they start.
    ("who gives a task its frame does not look whether it is cancelled", RUNNER, [
        ("  if ((task.marks.load(std::memory_order_acquire) & fiber_record::targeted) != 0) [[unlikely]]\n    ops_of(task).aimed_at(task, *f);  // 3\n", "")],
     (STARTS,)),
    ("a join does not look whether a task is cancelled", JOIN, [("|| task.marks.load(std::memory_order_acquire) != 0) [[unlikely]]", ") [[unlikely]]")], (JOINED,)),
    ("a join does not aim the cancellation of a task at the frame it lends", JOIN, [("    f.touched = true;\n    ops_of(task).aimed_at(task, f);\n", "    f.touched = true;\n")],
     (JOINED,)),
    ("who cancels a task does not look for its frame", TASKS, [(AIMS, "")], (JOINED,)),
    ("who cancels a task looks for its frame before it marks it", TASKS, [
        ("    if ((handle.block->marks.fetch_or(task_targeted,", "    fiber* const f = handle.block->frame(std::memory_order_acquire);\n    if ((handle.block->marks.fetch_or(task_targeted,"),
        (AIMS, "    if (f != nullptr) own->aim_at(*f);\n")], (STARTS,)),
    ("a frame that is lent on keeps the cancellation of one child", "runtime/src/cancel/scope.cpp", [("  owner_.get()->set_own_scope(nullptr);\n  owner_.set(nullptr);", "  owner_.set(nullptr);")],
     ("task_cancelled_as_its_lent_frame_goes_on",)),
    # Described as they start.
    ("a task has its frame while its site is still there", RECORD, [
        ("    extras_or_site_.store(0, std::memory_order_relaxed);\n    set_frame(f);\n", "    set_frame(f);\n    extras_or_site_.store(0, std::memory_order_relaxed);\n")],
     (NAMED,)),
    ("who describes a task does not look at its place again", EXTRAS, [(" != 0 && record.is_unstarted_task()) return site;", " != 0) return site;")], (NAMED,)),
    ("who describes a task takes no site for a site", EXTRAS, [("if (std::bit_cast<std::uintptr_t>(site) != 0 && record.is_unstarted_task())", "if (record.is_unstarted_task())")], (NAMED,)),
    ("who describes a task gives up as it starts", EXTRAS, [("for (platform::backoff turn; record.is_unstarted_task(std::memory_order_acquire); turn.wait())", "if (record.is_unstarted_task(std::memory_order_acquire))")],
     (NAMED,)),
]
