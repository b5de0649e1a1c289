#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""docs/architecture.md names files and functions: all of them exist, where the page says, and each walk has as many files as it says.

On that page `a/path.hpp` in backticks is a file or folder of this tree. Any other word in backticks is a name. It must be
declared or used in the code (not in a comment, a string or an #include) of the file that it is ascribed to: in a paragraph,
list item or table row that names files, the one named last before it, or else the first one after it; elsewhere, in some
source file. (`file.hpp` without a folder is the name of a file.) A walk is a section "## Walk: … (N files, goal M)"; the
files that it names are counted, but for those of which it says "`a/path.hpp` only forwards" or "only declares". A walk that
needs more files than its goal says so; that is no failure. Examples in ``` blocks are not read.

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
WALK = re.compile(r"^## Walk: (.*) \((\d+) files, goal \d+\)$", re.M)
IN_PASSING = re.compile(r"`([^`\n]+)`\s+only\s+(?:forwards|declares)\b")
NO_CODE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*|//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.M | re.S)
FILE_NAME = re.compile(r"\w+\.(?:hpp|cpp)\Z")
WALKS = 4


class Sources:
    def __init__(self, top):
        self.top = top
        self.words = {p: set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", NO_CODE.sub(" ", p.read_text()))) for room in ROOMS
                      for p in sorted((top / room).rglob("*")) if p.suffix in (".hpp", ".cpp")}
        self.all = set().union(*self.words.values()) if self.words else set()

    def has(self, name, file):
        if FILE_NAME.match(name):
            return any(p.name == name for p in self.words)
        known = self.all if file is None else self.words.get(self.top / file, set())
        return all(word in known for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", name))


def is_path(quoted):
    return "/" in quoted and " " not in quoted


def is_file(quoted):
    return is_path(quoted) and quoted.endswith((".hpp", ".cpp"))


def files_in(text):
    return [q for q in QUOTED.findall(text) if is_file(q)]


def ascribed(part):
    """(name or path, the file that it is ascribed to, or None) of all that a part quotes."""
    file = next(iter(files_in(part)), None)
    for quoted in QUOTED.findall(part):
        file = quoted if is_file(quoted) else file
        yield quoted, file


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
        for quoted, file in ascribed(part):
            if is_path(quoted):
                result((top / quoted).exists(), f"`{quoted}` exists")
            elif FILE_NAME.match(quoted):
                result(sources.has(quoted, None), f"`{quoted}` is a file")
            elif NAME.match(quoted.replace("::", "_").removesuffix("()")):
                result(sources.has(quoted, file), f"`{quoted}` is in the code of {file or 'some file'}")
    walks = list(WALK.finditer(text))
    result(len(walks) == WALKS, f"{len(walks)} walks")
    for walk in walks:
        after = text[walk.end():]
        section = after[:after.index("\n## ")] if "\n## " in after else after
        named = set(files_in(section)) - set(IN_PASSING.findall(section))
        result(len(named) == int(walk[2]), f"{walk[1]}: {len(named)} files, as it says")
    return bad


GOOD = {
    "nursery/src/a.cpp": "#include <knob.hpp>\nvoid spawn_it();  // not wait_here\n/* nor\n   handle */ auto said = \"and no \\\" hinge\";",
    "runtime/src/b.hpp": "struct door { int wait_here; };", "runtime/src/c.hpp": "void pass_on();",
    PAGE: "# x\n\nThe `door` of `runtime/src`.\n\n```\n`gone`\n```\n" + "".join(
        f"\n## Walk: {n} (2 files, goal 1)\n\n`pass_on` of `runtime/src/c.hpp` only\nforwards to `b.hpp`.\n\n1. `nursery/src/a.cpp`: `spawn_it` does\n   it.\n"
        "2. `runtime/src/b.hpp`: `door::wait_here`.\n" for n in "abcd"),
}
BROKEN = [
    ("spawn_it` does", "spawn_that` does", "`spawn_that` is in the code of nursery/src/a.cpp"), ("src/a.cpp", "src/e.cpp", "`nursery/src/e.cpp` exists"),
    ("The `door`", "The `window`", "`window` is in the code of some file"), ("(2 files", "(3 files", "a: 2 files, as it says"),
    ("(2 files", "(1 files", "a: 2 files, as it says"), ("only\nforwards", "just\nforwards", "a: 3 files, as it says"),
    ("## Walk: a", "## Stroll: a", "3 walks"), ("wait_here", "wait_there", "`door::wait_there` is in the code of runtime/src/b.hpp"),
    ("`spawn_it` does", "`door` does", "`door` is in the code of nursery/src/a.cpp"), ("`runtime/src`", "`runtime/source`", "`runtime/source` exists"),
    ("`spawn_it` does", "`wait_here` does", "`wait_here` is in the code of nursery/src/a.cpp"),  # a comment has it
    ("`spawn_it` does", "`handle` does", "`handle` is in the code of nursery/src/a.cpp"),
    ("`spawn_it` does", "`hinge` does", "`hinge` is in the code of nursery/src/a.cpp"),  # a string
    ("`spawn_it` does", "`knob` does", "`knob` is in the code of nursery/src/a.cpp"),  # an #include
    ("`pass_on` of", "`door` of", "`door` is in the code of runtime/src/c.hpp"),  # ascribed to the first file after it
    ("does\n   it.", "does `pass_on` of `runtime/src/c.hpp`.", "`pass_on` is in the code of nursery/src/a.cpp"),  # the last one before it
    ("`b.hpp`", "`d.hpp`", "`d.hpp` is a file"),
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
