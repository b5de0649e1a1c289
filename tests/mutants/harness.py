# SPDX-License-Identifier: BSL-1.0
"""Flaws in what tells of hangs."""
LISTED = {"cases": ["a runtime is listed while it lives, for who looks at one that hangs"]}
REGISTRY = "runtime/src/sched/registry.cpp"

MUTANTS = [
    ("a runtime that has ended stays listed", REGISTRY, [
        ("  platform::take_out(newest_listed, *this, &registration::next_, &registration::previous_);\n", "")], LISTED),
    ("a listed runtime does not learn that its neighbour has ended", "platform/internal/ramie/platform/linked_list.hpp",
     [("  if (node.*next != nullptr) (node.*next)->*previous = node.*previous;\n", "")], LISTED),
]
