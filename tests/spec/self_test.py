# SPDX-License-Identifier: BSL-1.0
"""check.py on small trees: one in which all is well, and one for each thing that may be wrong."""
import pathlib
import tempfile

# A small tree in which all is well.
GOOD = {
    "spec/a.md": "**F1** one owner runs it\n\n| **T1** | two |\n", "runtime/x.hpp": "int claim; static_assert(true);  // F1, XY2\n",
    "spec/model/m.pml": "/* Shown\n *   F1  an owner runs it (once, and so on, as the functions below do)\n *   MM1  mine\n */\n",
    "runtime/z.hpp": "//   F1   One owner: nobody else\n//        runs it.\n//   XY2  local\nint C4, b;  // F1 of \"Q7\"\n",
    "tests/a.cpp": 'TEST_CASE("a; b"\n "c", "[unit][x]") {}\nTEMPLATE_TEST_CASE("d", "[unit]", int) {}', "tests/explore/m.cpp": '{"scene", f, 3},',
    "tests/mutants/m.py": 'F = "f"\nMUTANTS = [("flaw", F, [], ["scene"]), ("another", F, [], {"cases": ["d"]}), ("third", F, [], {"cases": ["a; bc"]}),'
    '\n("fourth", F, [], ("scene",))]', "tests/mutants/run.py": "import gone",
    "subprojects/s/s.hpp": "//   F1  something quite different\n//   F9  theirs\n", "tools/test": "    unit | tsan) suites+=\n",
    "spec/conformance.md": "## Original documents\n| original clause | ours | test |\n|---|---|---|\n| 0.1 x | F1 | d |\n| 0.2 y | F1 | d; mutant: another |\n## Clauses\n### a.md\n| clause | code | test |\n|---|---|---|\n"
    "| F1 one | `x.hpp` `claim` | explore: scene; mutant: flaw; [unit][x]; mutant: third |\n| T1 two | – | model: m; suite: tsan; static_assert in x.hpp; later: issue 7 |\n",
}
SUMMARY = ("4 rows, 4 with a test, 0 later; 2 rows name a mutant; 1 of 2 rows of clauses name none; "
           "1 of 4 mutants are named by no row")
# (what is changed where, into what, and what must be said)
BROKEN = [
    ("spec/a.md", "one", "one owner runs\n\n**F2** more", "F2 (a.md) has no row"), ("spec/a.md", "two", "two |\n| **F1** | x", "F1 is two clauses"),
    ("spec/conformance.md", "T1 two", "T9 two", "there is no clause T9"), ("spec/conformance.md", "| F1 | d", "| F7 | d", "there is no clause F7"),
    ("spec/conformance.md", "T1 two", "F1 two", "F1 has two rows"), ("spec/conformance.md", "### a.md", "### b.md", "F1 is a clause of a.md"),
    ("spec/conformance.md", "0.1 x", "0.3 x", "original clause 0.1 has no row"), ("spec/conformance.md", "| F1 | d |", "| F1 | |", "has no test"),
    ("spec/conformance.md", "| F1 | d |", "| F1 | e |", "no test case 'e'"), ("spec/conformance.md", "[x]", "[y]", "no case has the tag [y]"),
    ("spec/conformance.md", "scene", "other", "no explore 'other'"), ("spec/conformance.md", "flaw", "flow", "no mutant 'flow'"),
    ("tests/mutants/m.py", "flaw", "flow", "no mutant 'flaw'"),
    ("tests/mutants/m.py", '["scene"]', '["other"]', "none of its tests notices mutant 'flaw', but 'other' does"),
    ("tests/mutants/m.py", '["scene"]', '{"cases": ["scene"]}', "notices mutant 'flaw'"),  # a scenario is no case of that name
    ("spec/conformance.md", "d; mutant: another", "explore: scene; mutant: another", "notices mutant 'another'"),
    ("spec/conformance.md", "[unit][x]", "d", "notices mutant 'third'"), ("tests/a.cpp", "[unit][x]", "[x]", "notices mutant 'third'"),
    ("spec/conformance.md", "model: m", "model: n", "no model 'n'"), ("spec/conformance.md", "tsan", "msan", "no suite 'msan'"),
    ("spec/conformance.md", "in x.hpp", "in a.cpp", "no static_assert in 'a.cpp'"), ("spec/conformance.md", "issue 7", "some day", "later than what"),
    ("spec/conformance.md", "`x.hpp`", "`y.hpp`", "no file 'y.hpp'"), ("spec/conformance.md", "`claim`", "`clam`", "no 'clam' in x.hpp"),
    ("runtime/z.hpp", "owner: nobody else\n//        runs it.", "lock is held.", "F1 in runtime/z.hpp does not say what clause F1 says"),
    ("runtime/z.hpp", "//        runs it.\n", "//        sleeps whenever thieves search elsewhere.\n", "F1 in runtime/z.hpp does not say what clause F1 says"),
    ("spec/model/m.pml", "owner runs it", "idea", "F1 in spec/model/m.pml does not say what clause F1 says"),
    ("runtime/z.hpp", "XY2", "F2", "F2 in runtime/z.hpp is no clause, but its letters are those of clauses"),
    ("spec/model/m.pml", "MM1", "XY1", "XY1 in spec/model/m.pml has the letters of runtime/z.hpp"),
    ("runtime/x.hpp", "XY2", "XY3", "runtime/x.hpp cites XY3, which nothing defines"),
    ("spec/conformance.md", "`x.hpp` ", "", "'claim' stands in no file"), ("spec/a.md", "one", "[one](gone.md)", "links to 'gone.md'"),
]


def try_out(check, tree, changed, old, new):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GOOD.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new, 1) if name == changed else text)
        said = []
        bad = check(tree(pathlib.Path(folder), original={"0": 1}), said.append)
        return bad, "\n".join(said)


def self_test(check, tree):
    bad, said = try_out(check, tree, "", "", "")
    failures = 0 if bad == 0 and said.endswith(SUMMARY) else 1
    print(f"{'FAILED' if failures else 'ok'} a good map passes")
    for changed, old, new, expected in BROKEN:
        bad, said = try_out(check, tree, changed, old, new)
        found = bad != 0 and any(line.startswith("FAILED") and expected in line for line in said.splitlines())
        failures += not found
        print(f"{'ok' if found else 'FAILED'} found: {expected}" + ("" if found else f"\n{said}"))
    return failures
