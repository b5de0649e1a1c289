#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""docs/architecture.md names files and functions: all of them exist, and no walk has more files than its goal.

On that page `a/path.hpp` in backticks is a file or folder of this tree. Any other word in backticks is a name: in a list
item or table row that names files, one of those files must have it, and elsewhere some source file. A walk is a section
"## Walk: … (at most N files)"; the files that it names are counted. Examples in ``` blocks are not read.

One line a check, "ok …" or "FAILED …"; exit code 1 if any failed. --self-test: shows that each kind of mistake is found.
"""
import pathlib
import re
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/architecture.md"
ROOMS = ("nursery", "channel", "sync", "io", "runtime", "platform")
QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
WALK = re.compile(r"^## Walk: (.*) \(at most (\d+) files\)$", re.M)
WALKS = 4


class Sources:
    def __init__(self, top):
        self.top = top
        self.words = {p: set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", p.read_text())) for room in ROOMS
                      for p in sorted((top / room).rglob("*")) if p.suffix in (".hpp", ".cpp")}
        self.all = set().union(*self.words.values()) if self.words else set()

    def has(self, name, files):
        wanted = re.findall(r"[A-Za-z_][A-Za-z0-9_]*", name)
        if not wanted:
            return True
        texts = [self.words[f] for f in files if f in self.words]
        return any(all(word in words for word in wanted) for words in texts) if texts else all(word in self.all for word in wanted)


def is_path(quoted):
    return "/" in quoted and " " not in quoted


def files_in(text):
    return [q for q in QUOTED.findall(text) if is_path(q) and q.endswith((".hpp", ".cpp"))]


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def paragraphs(text):
    """List items, table rows and paragraphs."""
    return re.split(r"\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|\n\s*\n", text)


def check(top, say):
    text, sources, bad = without_blocks((top / PAGE).read_text()), Sources(top), 0

    def result(good, what):
        nonlocal bad
        bad += not good
        say(f"{'ok' if good else 'FAILED'} {PAGE}: {what}")

    for part in paragraphs(text):
        files = [top / f for f in files_in(part)]
        for quoted in QUOTED.findall(part):
            if is_path(quoted):
                result((top / quoted).exists(), f"`{quoted}` exists")
            elif NAME.match(quoted.replace("::", "_").removesuffix("()")):
                where = " or ".join(files_in(part)) or "the sources"
                result(sources.has(quoted, files), f"`{quoted}` is in {where}")
    walks = list(WALK.finditer(text))
    result(len(walks) == WALKS, f"{len(walks)} walks")
    for walk in walks:
        after = text[walk.end():]
        named = set(files_in(after[:after.index("\n## ")] if "\n## " in after else after))
        result(0 < len(named) <= int(walk[2]), f"{walk[1]}: {len(named)} files, at most {walk[2]}")
    return bad


GOOD = {
    "nursery/src/a.cpp": "void spawn_it();", "runtime/src/b.hpp": "struct door { int wait_here; };",
    PAGE: "# x\n\nThe `door` of `runtime/src`.\n\n```\n`gone`\n```\n" + "".join(
        f"\n## Walk: {n} (at most 2 files)\n\n1. `nursery/src/a.cpp`: `spawn_it` does\n   it.\n2. `runtime/src/b.hpp`: `door::wait_here`.\n" for n in "abcd"),
}
BROKEN = [
    ("spawn_it` does", "spawn_that` does", "`spawn_that` is in nursery/src/a.cpp"), ("src/a.cpp", "src/c.cpp", "`nursery/src/c.cpp` exists"),
    ("The `door`", "The `window`", "`window` is in the sources"), ("at most 2", "at most 1", "a: 2 files, at most 1"),
    ("## Walk: a", "## Stroll: a", "3 walks"), ("wait_here", "wait_there", "`door::wait_there` is in runtime/src/b.hpp"),
    ("`spawn_it` does", "`door` does", "`door` is in nursery/src/a.cpp"), ("`runtime/src`", "`runtime/source`", "`runtime/source` exists"),
]


def try_out(old, new):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GOOD.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new, 1) if name == PAGE and old else text)
        said = []
        return check(pathlib.Path(folder), said.append), said


def self_test():
    bad, said = try_out("", "")
    failures = bad != 0
    print("ok a true page passes" if not failures else "FAILED a true page passes\n" + "\n".join(said))
    for old, new, expected in BROKEN:
        bad, said = try_out(old, new)
        found = any(line == f"FAILED {PAGE}: {expected}" for line in said)
        failures += not found
        print(f"{'ok' if found else 'FAILED'} found: not {expected}" + ("" if found else "\n" + "\n".join(said)))
    return failures


if __name__ == "__main__":
    sys.exit(1 if (self_test() if "--self-test" in sys.argv else check(TOP, print)) else 0)
