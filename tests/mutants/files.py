# SPDX-License-Identifier: BSL-1.0
"""Flaws of files and directories."""
MUTANTS = [
    ("a replaced file loses its permissions", "runtime/src/fs/replacement.cpp",
     [("return result < 0 ? result : outcome_of([&] { return ::fchmod(descriptor(), permissions); });", "return result;")],
     {"cases": ["a replaced or copied file has the permissions but not the powers"]}),
    ("a failed replacement leaves its own file behind", "runtime/src/fs/replacement.cpp",
     [("  if (!own_.empty()) (void)::unlink(own_.c_str());\n", "")],
     {"cases": ["a copy that is cancelled leaves nothing"]}),
    ("a long file name is made too long", "runtime/src/fs/replacement.cpp",
     [(".substr(0, 200)", "")],
     {"cases": ["a file with the longest name there is can be replaced"]}),
    ("a folder that can't be opened is told a level too deep", "runtime/src/fs/walk.cpp",
     [("folder_.depth == 0 ? 0 : folder_.depth - 1", "folder_.depth")],
     {"cases": ["a walk goes on behind what it can't enter"]}),
    ("a skipped folder is entered", "runtime/src/fs/walk.cpp",
     [("void skip() noexcept { enter_last_ = false; }", "void skip() noexcept {}")],
     {"cases": ["a walk hands out all that is below, in batches of any size"]}),
]
