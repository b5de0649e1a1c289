# SPDX-License-Identifier: BSL-1.0
"""Flaws of joins and nurseries."""
LIVE = "runtime/internal/ramie/runtime/live_count.hpp"
JOIN, NURSERY, TASKS = "runtime/src/sched/join.cpp", "nursery/src/nursery.cpp", "nursery/src/tasks.cpp"

MUTANTS = [
    ("a result that the handle and the end of its task left to each other stays", "nursery/src/task_store.cpp", [
        ("      destroy_result(task);\n      recycle(&task, task.origin);\n    });\n  }\n  if (shelf.free == nullptr)",
         "      recycle(&task, task.origin);\n    });\n  }\n  if (shelf.free == nullptr)")], ("handle_dropped_as_its_task_ends",)),
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
    ("in place whatever the scope (J2)", NURSERY, [("if (at.innermost() == &n) [[likely]] {", "if (true) {")], {"cases": ["a join inside with_timeout does not bury the joiner", "a join from inside an inner scope parks"]}),
    ("in place whoever it is (J6)", JOIN, [("return f.home == &of || f.home->inside(of);", "return true;")], {"cases": ["a stranger at the young end is handed over to"]}),
    ("in place without room (J7)", JOIN, [(" || f.size_class > largest) return false;", ") return false;")], {"cases": ["nurseries nest as deep as there is memory"]}),
    ("the joiner's exceptions in sight", JOIN, [("const bool unwinding = ", "const bool unwinding = false && ")], {"cases": ["the joiner's exceptions are out of its children's sight"]}),
    ("a failure cancels nobody", TASKS, [("  home.cancel(std::move(why), what);\n", "")], {"cases": ["the first failure cancels the scope and is rethrown by join"]}),
    ("a task is recycled although its handle is held", "nursery/src/task_store.cpp",
     [("return has_finished(task) && task.dropped.load(std::memory_order_acquire);", "return has_finished(task);")],
     {"cases": ["random trees of nurseries leave nothing behind"]}),
    ("an over-aligned object gets no slack", "nursery/src/arena.cpp",
     [("alignment > alignof(std::max_align_t) ? alignment : 0", "0")],
     {"cases": ["a chunk of its own has room for its object wherever it is aligned"]}),
]
