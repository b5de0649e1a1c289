#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Names in backticks in spec/*.md and docs/*.md exist: every word of them is in some source, test or tool, or in OTHERS.

spec/decisions is not read: it tells what was. Neither are examples in ``` blocks (tools/test docs compiles those), nor words
with a `*` or `…` in them. One line a page, "ok …" or "FAILED …"; exit code 1 if any failed. --self-test: shows that it
finds what it should.
"""
import pathlib
import re
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("nursery", "channel", "sync", "io", "runtime", "platform", "include", "tests", "tools", "bench", "examples", "spec/model")
SOURCES = {".hpp", ".cpp", ".py", ".go", ".rs", ".json", ".pml", ".build", ".sh", ""}
# Names of others, which nothing here uses.
OTHERS = {
    "POLL_FIRST": "a flag of io_uring that is not used", "clear_page_erms": "a function of Linux, seen in a profile",
    "COOP_TASKRUN": "a flag of io_uring, by its last part", "DEFER_TASKRUN": "the same", "io_uring_disabled": "of Linux' sysctl",
    "function_not_supported": "of std::errc", "FileServer": "of Go's net/http", "BOOST_USE_ASAN": "of Boost.Context", "BOOST_USE_TSAN": "of Boost.Context",
}
WORD = re.compile(r"(?<![\w*…])[A-Za-z_]\w*[A-Za-z0-9](?![\w*…])")


def read_words(top):
    found = set(re.findall(r"\w+", "".join((top / f).read_text() for f in ("meson.build", "meson_options.txt") if (top / f).exists())))
    for path in (p for f in FOLDERS for p in (top / f).rglob("*") if p.is_file() and p.suffix in SOURCES):
        text = path.read_text(errors="replace")
        if path.suffix in (".hpp", ".cpp"):
            text = re.sub(r"//[^\n]*", "", text)
        found.update(re.findall(r"\w+", text))
    for path in top.rglob("*"):  # paths are names, too
        if not any(part.startswith((".git", "build")) for part in path.relative_to(top).parts):
            found.update(re.findall(r"\w+", path.name))
    return found


def check(top, say):
    known, bad = read_words(top), 0
    for page in sorted([*(top / "spec").glob("*.md"), *(top / "docs").glob("*.md")]):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)
        gone = sorted({w for quoted in re.findall(r"`([^`\n]+)`", text) for w in WORD.findall(quoted) if w not in known and w not in OTHERS})
        bad += bool(gone)
        name = page.relative_to(top).as_posix()
        say(f"FAILED {name} names what is not there: {', '.join(gone)}" if gone else f"ok {name}: names")
    return bad


def self_test():
    failures = 0
    for text, expected in (("`door::open(x)` of `a.hpp`, `do…`, `POLL_FIRST`", ""), ("the `gate`", "gate"), ("`door::shut`", "shut"),
                           ("`ajar`", "ajar")):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            (top / "io").mkdir()
            (top / "spec").mkdir()
            (top / "io/a.hpp").write_text("class door { void open(int x); };  // ajar")
            (top / "spec/a.md").write_text(text + "\n```\n`nothing`\n```\n")
            said = []
            good = (check(top, said.append) == 0) == (not expected) and said[0].endswith(expected)
            failures += not good
            print(f"{'ok' if good else 'FAILED'} {text}" + ("" if good else f"\n{said}"))
    return failures


if __name__ == "__main__":
    sys.exit(1 if (self_test() if "--self-test" in sys.argv else check(TOP, print)) else 0)
