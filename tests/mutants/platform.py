# SPDX-License-Identifier: BSL-1.0
"""Flaws of stacks."""
MUTANTS = [
    ("regions of a pool that is gone stay announced", "platform/src/stack_pool.cpp",
     [("    withdraw_range(range);\n", "")],
     {"cases": ["a guard page is named by its address, whichever way it was made"]}),
    ("stacks beyond the limit are never trimmed", "platform/src/stack_pool.cpp",
     [("  if (to.hot_count > hot_limit_) trim_wanted_.store(true, std::memory_order_relaxed);\n", "")],
     {"cases": ["stacks beyond the hot limit are trimmed and work again"]}),
    ("a trimmed stack keeps its pages", "platform/src/stack_pool.cpp",
     [("    ::madvise(stacks[i].iov_base, stacks[i].iov_len, MADV_DONTNEED);\n", ""), ("advise_at_once(stacks, count, MADV_DONTNEED)", "count")],
     {"cases": ["many stacks are trimmed, at once or one by one"]}),
    ("a stack's guard that madvise refuses is left out", "platform/src/stack_pool.cpp",
     [("&& !guard_by_mprotect(page)", "&& false")],
     {"cases": ["no stack is ever without its guard"]}),
]
