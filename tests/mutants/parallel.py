# SPDX-License-Identifier: BSL-1.0
"""Forks and the indices of loops."""
RANGE, FORK, PARALLEL = "nursery/src/index_range.hpp", "runtime/src/sched/fork.cpp", "nursery/src/parallel.cpp"
TAKEN = {"cases": ["what a worker has taken is a fiber, which fails and is described like one"]}
WAITS = {"cases": ["a call that waits leaves the others to any worker"]}

MUTANTS = [
    ("a thief of indices does not look again", RANGE, [("if (next <= middle) {", "if (true) {")], ["range_of_three"]),
    ("a thief of indices goes away with nothing if the owner has passed its middle", RANGE, [("while (share.empty() && next < limit);", "while (false);")], ["range_with_a_call_that_waits"]),
    ("an owner of indices goes on between two tries of a thief", RANGE, [("    do {\n      const auto middle", "    for (unsigned odd = splits + 1; true; odd += 2) {\n      splits_.store(odd, std::memory_order_relaxed);\n      const auto middle"),
                                                                        ("    } while (share.empty() && next < limit);\n    splits_.store(splits + 2, std::memory_order_release);", "      splits_.store(odd + 1, std::memory_order_release);\n      if (!share.empty() || next >= limit) break;\n    }\n    ")], ["range_of_three"]),
    ("an owner of indices does not look again", RANGE, [("if (index < limit_.load(std::memory_order_acquire)) [[likely]]  // 3; pairs with the release in split", "if (index < seen_)"),
                                                       ("  platform::atomic<std::size_t> next_;", "  std::size_t seen_ = limit_.load(std::memory_order_relaxed);\n  platform::atomic<std::size_t> next_;"),
                                                       ("explicit index_range(piece all) noexcept : next_(all.first), limit_(all.last) {}", "explicit index_range(piece all) noexcept : seen_(all.last), next_(all.first), limit_(all.last) {}")], ["range_of_three"]),
    ("an owner of indices believes a limit that may go back", RANGE, [("return take_slow(index);", "return false;")], ["range_of_three"]),
    ("a fork that has ended wakes nobody", FORK, [("if ((marks & fork_record::wanted) != 0) part.waits->wake();", "(void)marks;")], ("fork_is_taken_as_its_caller_comes_back",)),
    ("a caller does not ask again whether its fork has ended", FORK, [("return (marks & fork_record::finished) == 0;                                       // 3", "(void)marks;\n    return true;")], ("fork_is_taken_as_its_caller_comes_back",)),
    ("a fork that nobody could start is not called", FORK, [("check_cancelled(); return true;", "check_cancelled(); return false;")], {"cases": ["a fork that there is no memory for is called by its caller"]}),
    ("a loop goes on after a failure", PARALLEL, [("of.whole.stopped.store(true, std::memory_order_relaxed);", "")], {"cases": ["who has taken a part of a loop begins no call after a failure"]}),
    ("a loop does not look at cancellations", FORK, [("if (w.cancel_epoch->load(std::memory_order_acquire) != self.seen_epoch.get()) [[unlikely]]\n    check_cancelled();\n  w.count", "w.count")], {"cases": ["a cancellation from outside ends the calls that wait, and a loop of calls that do not"]}),
    ("the failure of a fork is dropped", FORK, [("case fork_outcome::failed: break;", "case fork_outcome::failed: return false;")], TAKEN),
    ("forks of a task that may be cancelled alone", FORK, [("return self.reaches_forks && plain_in_reach(w, self);", "return plain_in_reach(w, self);")], {"cases": ["a task that is cancelled alone ends the calls that others have taken"]}),
    ("a share whose calls have left a value is not offered", FORK, [("  worker* const w = caller_in_fiber(\"\");\n", "  worker* const w = caller_in_fiber(\"\");\n  if (!forks_are_plain(*w, *w->current.get())) return fork_push::alone;\n")], {"cases": ["a share whose calls have left a value to inherit is offered like any other"]}),
    ("failures of children are dropped when their caller unwinds", PARALLEL, [("  if (first_ != nullptr) report_fork_failure(first_);\n", "")], {"cases": ["a failure is reported when the caller unwinds for another reason"]}),
    ("a call that ends its thread waits for what others have taken", FORK, [("    thread_ended_in_fiber();  // at once", "    // at once")], {"cases": ["pthread_exit in a fiber ends the program and says what to do"]}),
    ("a single call is no poll", FORK, [("    (void)let_others_pass(w, *w.current.get());\n", "    (void)w;\n")], {"cases": ["whoever divides nothing over and over lets others have their turn"]}),
    ("forks of who has values to inherit", FORK, [("(extras == nullptr || !has_inheritable(*extras))", "(extras == nullptr || true)")], {"cases": ["calls inherit fiber-local values, whoever makes them"]}),
]
