# SPDX-License-Identifier: BSL-1.0
"""Flaws of children that have not started: how they are cancelled, described, started, queued, and given a frame."""
RECORD, EXTRAS = "runtime/include/ramie/detail/fiber_ops.hpp", "runtime/src/task/extras.cpp"
RUNNER, JOIN, TASKS = "runtime/src/sched/runner.cpp", "runtime/src/sched/join.cpp", "nursery/src/tasks.cpp"

STARTS, JOINED, NAMED = "task_cancelled_as_it_starts", "task_cancelled_as_a_join_starts_it", "straggler_starts_as_it_is_named"
QUEUED, JOINED_WITHOUT, STOLEN = (f"a child that there is no memory to start fails like any other, {how}" for how in ("taken from a queue", "called by a join", "stolen"))
LEFT = "a child that a join calls leaves nothing to the next one in its frame"
QUEUES, INJECTION = "runtime/src/sched/run_queues.cpp", "runtime/src/sched/injection_queue.hpp"
ROOM, ROOM_FOR_TWO = "there is room for the tasks that full rings shed", "there is room for the tasks of two workers at once"
REFUSED = "a spawn that there is no room for has done nothing"
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
    ("a child that has not started is described as if it had", EXTRAS, [('append_place(name.append("not started ("), *site);', 'append_place(name.append("#0 ("), *site);')],
     {"cases": ["shutdown names a child that has not started by where it was spawned"]}),
    # Without memory for a frame.
    ("a child that there was no memory to start leaves its record a frame on a stack", RUNNER, [("  fiber& stand_in = w.run.stand_in;\n", "  fiber stand_in;\n")],
     {"cases": ["shutdown names who is left beside a child that there was no memory to start"]}),
    ("a child that there is no memory to start is forgotten", RUNNER, [("    fail_without_frame(w, task);\n    return nullptr;", "    return nullptr;")], {"cases": [QUEUED]}),
    ("a child that there is no memory to start was cancelled", RUNNER, [("discard(task, discard_cause::no_memory);", "discard(task, discard_cause::cancelled);")],
     {"cases": [QUEUED, JOINED_WITHOUT, STOLEN]}),
    ("a child that there is no memory to start is not counted out", RUNNER, [("no_memory);\n  ops_of(task).retire(task, home, nullptr);\n", "no_memory);\n")], {"cases": [QUEUED]}),
    ("a thief that has no memory to start a child takes that for a fiber", QUEUES, [("return f != nullptr ? f : pop_oldest(w);", "return f;"),
       ("    if (taken == 0) continue;", "    if (f == nullptr) platform::fatal(\"nothing was stolen\");")], {"cases": [STOLEN]}),
    # One frame for the children of a join.
    ("a child that a join calls has the site of another", JOIN, [("  lent.site.set(task.task_site());\n", "")], {"cases": [LEFT]}),
    ("a frame that was away is lent on", JOIN, [("return !(lent.touched || lent.scope != &of);", "return lent.scope == &of;")], {"cases": [LEFT]}),
    ("a frame that left its stack is lent on", "runtime/src/sched/runner.hpp", [("    leaver.stack.set(w.run.active.get());\n    leaver.touched = true;\n", "    leaver.stack.set(w.run.active.get());\n")],
     {"cases": [LEFT]}),
    ("a frame that is lent again finds clean what its last joiner did", "runtime/src/task/frame_pool.hpp", [("    f->seen_epoch.set(seen_epoch);\n", "    (void)seen_epoch;\n")],
     {"cases": ["a frame that is lent again knows nothing of the scopes of before"]}),
    ("a frame that nobody has counts as blocked", "runtime/src/testing/director.cpp", [("      if (f.home == nullptr) return nullptr;  // a frame that joins lend: nobody's\n", "")],
     {"cases": ["a deadlock names nobody for a frame that joins lend"]}),
    # Room in the injection queue.
    ("a full ring sheds tasks that nobody has reserved room for", QUEUES, [("  if (!w.sched.queues.injection_.try_reserve_for_tasks(overflow_batch + 1)) return false;\n", "")], {"cases": [ROOM]}),
    ("there is no room for the tasks of rings", QUEUES, [("injection_(of.capacity() * most_tasks_of_worker)", "injection_(0)")], {"cases": [ROOM_FOR_TWO]}),
    ("a task that can't be queued stays counted", "runtime/src/sched/spawn.cpp", [("  scope.live.spawn_failed(true);\n", "  (void)scope;\n")], {"cases": [REFUSED]}),
    ("a task that can't be queued counts as spawned", "runtime/src/sched/spawn.cpp", [("  w.count.spawned.add(-1);\n", "")], {"cases": [REFUSED]}),
    ("a spawn makes a frame at once", "runtime/src/sched/spawn.cpp", [("  return !w.current.get()->has_extras.get();\n", "  return w.current.get() == nullptr;\n")],
     {"cases": ["a million children that have not started need a block and an entry each"]}),
    # Tests that decide what runs.
    ("a policy is not asked about tasks", "runtime/src/sched/run_queues.hpp", [("return w.policy == nullptr && w.queue.ring.try_push_quick(as_entry(task));", "return w.queue.ring.try_push_quick(as_entry(task));"),],
     {"cases": ["under a policy no task goes to the ring past it"]}),
    ("a spawner never yields to the task it has spawned", QUEUES, [("    w.policy->enqueue_task(w, task);\n    (void)runner::preemption_point_after_wake(w);\n", "    w.policy->enqueue_task(w, task);\n")],
     {"cases": ["explore finds what depends on the order of a select, a spawn, a wake"]}),
]
