# SPDX-License-Identifier: BSL-1.0
"""Flaws in what tells of hangs."""
LISTED = {"cases": ["a runtime is listed while it lives, for who looks at one that hangs"]}
REGISTRY = "runtime/src/sched/registry.cpp"

MUTANTS = [
    ("a runtime that has ended stays listed", REGISTRY, [("(previous_ != nullptr ? previous_->next_ : newest_listed) = next_;", "")], LISTED),
    ("a listed runtime does not learn that its neighbour has ended", REGISTRY,
     [("  if (next_ != nullptr) next_->previous_ = previous_;\n", "")], LISTED),
]
