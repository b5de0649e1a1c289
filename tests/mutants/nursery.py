# SPDX-License-Identifier: BSL-1.0
"""Flaws of joins and nurseries."""
LIVE = "runtime/internal/ramie/runtime/live_count.hpp"
JOIN, NURSERY, TASKS = "runtime/src/sched/join.cpp", "nursery/src/nursery.cpp", "nursery/src/tasks.cpp"

ONE = "cancelling a task races with its end, its handle and its nursery's cancellation"
MUTANTS = [
    ("the end of a task does not look for its cancellation", TASKS, [("if ((marks & task_targeted) != 0) [[unlikely]]", "if (marks == 0xff) [[unlikely]]")],
     {"cases": [ONE, "a task is cancelled alone: its siblings and its nursery go on"]}),
    ("the handle of a cancelled task lets go of its block at once", TASKS, [("  own->second.dropped = true;\n  return true;", "  return false;")],
     {"cases": [ONE]}),
    ("the cancellation of a task is kept for ever", TASKS, [("  more.cancellations.erase(&task);\n", "")],
     {"cases": ["a nursery that cancels task after task stays flat in memory"]}),
    ("the end of a task that was cancelled says nothing of it", "nursery/src/core.cpp", [
        ("return ending(own != rest->cancellations.end() ? &own->second.scope : nullptr, by);", "return ending(own != rest->cancellations.end() ? nullptr : nullptr, by);")],
     {"cases": ["a task is cancelled alone: its siblings and its nursery go on"]}),
    ("a closed nursery does not know whose it was", "runtime/src/cancel/scope.cpp", [("s = seen_above(opener); s != nullptr;", "s = (void(opener), seen_above()); s != nullptr;")],
     {"cases": ["a task of a joined nursery says that the fiber that opened the nursery was cancelled"]}),
    ("a closed nursery in a destructor keeps out what its children could see", "runtime/internal/ramie/runtime/cancel_scope.hpp", [
        ("return parent_->owner_.get() != owner ||", "return (void(owner), parent_->owner_.get() != owner_.get()) ||")],
     {"cases": ["a task of a nursery that was joined in a destructor says what cancelled it"]}),
    ("the result of a cancelled task is destroyed under a lock", TASKS, [("  hold.unlock();  // the result's destructor is the user's\n", "")],
     {"cases": ["the result of a cancelled task may let go of another cancelled task"]}),
    ("a task that has not ended by the deadline counts as ended", "nursery/src/tasks.cpp", [
        ("== wait_result::timed_out) return false;", "== wait_result::timed_out) return true;")],
     {"cases": ["a wait for a task ends at its deadline, and the task goes on"]}),
    ("functions that run together do not know where", "nursery/include/ramie/gather.hpp", [
        ("n.spawn([&call, &slot, &f] { slot.emplace(call(f)); }, site);", "n.spawn([&call, &slot, &f] { slot.emplace(call(f)); }, (void(site), source_location{}));")],
     {"cases": ["functions that run together know where they were called"]}),
    ("a result that the handle and the end of its task left to each other stays", "nursery/src/block_store.cpp", [
        ("      destroy_result(task);\n      recycle(&task, task.origin);\n    });\n  }\n  if (free_of(size_class).empty())",
         "      recycle(&task, task.origin);\n    });\n  }\n  if (free_of(size_class).empty())")], ("handle_dropped_as_its_task_ends",)),
    ("fold and look apart", LIVE, [("if (shared_.fetch_add(fold, std::memory_order_acq_rel) + fold != 1) return true;",
                                    "const auto before = shared_.load();\n    shared_.fetch_add(fold);\n    if (before + fold != 1) return true;")],
     ["join_and_end"]),
    ("joining is not announced", LIVE, [("const auto fold = 2 * local_.get() + 1;", "const auto fold = 2 * local_.get();"),
                                        ("+ fold != 1) return true;", "+ fold != 0) return true;")], ["join_and_end"]),
    ("the joiner does not wait for the last fiber", LIVE, [
        ("    for (platform::backoff turn; !waker_arrived_.load(std::memory_order_acquire);) turn.wait();\n    std::lock_guard hold(lock_);\n", "")], ["join_woken_by_accident"]),
    ("the owner trusts the count while it joins", LIVE, [("joiner_ = nullptr;\n      if (shared_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;",
                                                          "joiner_ = nullptr;\n      return;")], ["join_woken_by_accident"]),
    ("an end that does not count", LIVE, [("if (shared_.fetch_sub(2, std::memory_order_acq_rel) == 3) wake_joiner();",
                                           "if (shared_.load() == 3) wake_joiner();\n    shared_.fetch_sub(2);")], ["join_and_end"]),
    ("in place whatever the scope (J2)", NURSERY, [("if (at.innermost() == &n) [[likely]] {", "if (true) {")], {"cases": ["a join inside with_timeout does not bury the joiner", "a join from inside an inner scope parks"]}),
    ("in place whoever it is (J6)", JOIN, [("return f.home == &of || f.home->inside(of);", "return true;")], {"cases": ["a stranger at the young end is handed over to"]}),
    ("in place without room (J7)", JOIN, [(" || f.size_class > largest) return false;", ") return false;")], {"cases": ["nurseries nest as deep as there is memory"]}),
    ("the joiner's exceptions in sight", JOIN, [("  return (reinterpret_cast<std::uintptr_t>(exceptions.caught) | exceptions.uncaught) != 0;\n", "  return exceptions.uncaught > 1000;\n")], {"cases": ["the joiner's exceptions are out of its children's sight"]}),
    ("a failure cancels nobody", TASKS, [("  home.cancel(std::move(why), what);\n", "")], {"cases": ["the first failure cancels the scope and is rethrown by join"]}),
    ("a task is recycled although its handle is held", "nursery/src/block_store.cpp",
     [("return has_finished(task) && task.dropped.load(std::memory_order_acquire);", "return has_finished(task);")],
     {"cases": ["random trees of nurseries leave nothing behind"]}),
    ("an over-aligned object gets no slack", "nursery/src/arena.cpp",
     [("alignment > alignof(std::max_align_t) ? alignment : 0", "0")],
     {"cases": ["a chunk of its own has room for its object wherever it is aligned"]}),
]
