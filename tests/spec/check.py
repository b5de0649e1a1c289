#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Every clause of spec/ has a row in spec/conformance.md, and every row names what exists.
Ids in comments mean one thing each (ids.py).

One line a row, "ok …" or "FAILED …"; exit code 1 if any failed. A row says `mutant: name` in its test column for each known
flaw (tests/mutants) that breaks its clause: the name must be in the lists, and one of the tests that notice it in the row.
How many rows name one, and how many rows of clauses name none, is told at the end.
--mutants: lists the rows of clauses that name no mutant, and the mutants that no row names; neither is a failure.
--without-models: spec/model may be missing. --self-test: shows that each kind of failure is found.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests/mutants/runner"))
from ids import wrong_ids  # noqa: E402
from lists import read_mutants  # noqa: E402

CLAUSE = re.compile(r"^(?:\|\s*|[-*]\s+|\d+\.\s+)?\*\*([A-Z]{1,2}\d+)\*\*", re.M)
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
CASE = re.compile(r"\bTEST_CASE\(\s*" + LITERALS + r",\s*" + LITERALS)
LINK = re.compile(r"\]\(([^)#:]+)\)")
# How many numbered clauses each section of the original lifecycle specification has.
ORIGINAL = {"0": 5, "1": 6, "F": 5, "3": 8, "4": 9, "5": 11, "6": 5, "7": 5, "8": 5, "9": 15, "10": 11}


class Tree:
    """What there is to be named."""

    def __init__(self, top, without_models=False, original=None):
        self.top, self.without_models = top, without_models
        self.original = ORIGINAL if original is None else original
        self.files = [p for p in top.rglob("*") if p.is_file() and not any(
            part.startswith((".git", "build")) for part in p.relative_to(top).parts)]
        self.paths = [("/" + p.relative_to(top).as_posix(), p) for p in self.files]
        self.texts = {}
        self.clauses, self.doubled, self.said = read_clauses(top / "spec")
        self.cases = read_cases(top / "tests")
        self.tags = set().union(*self.cases.values())
        self.scenarios = find_all(r'(?:\{|\bon\()\s*"([a-z0-9_]+)"\s*,', sorted((top / "tests/explore").glob("*.cpp")))
        self.mutants = {m.name: m for m in read_mutants(top / "tests/mutants")}
        self.models = {p.stem for p in (top / "spec/model").glob("*.pml")}
        listed = re.search(r"^\s*([a-z0-9_ |-]+)\) suites\+=", (top / "tools/test").read_text(), re.M)
        self.suites = set(re.split(r"[ |]+", listed.group(1).strip())) if listed else set()

    def named(self, name):
        return [p for path, p in self.paths if path.endswith("/" + name)]

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text(errors="replace")
        return self.texts[path]

    def holds(self, name, symbol):
        return any(re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", self.text(p)) for p in self.named(name))


def find_all(pattern, paths):
    return {name for p in paths for name in re.findall(pattern, p.read_text())}


def tags_in(text):
    return re.findall(r"\[([^\]]*)\]", text)


def read_clauses(folder):
    """{clause: its page}, those that are two clauses, {clause: its text}"""
    where, doubled, said = {}, [], {}
    for page in sorted(folder.glob("*.md")):
        if page.name == "conformance.md":
            continue
        _, *parts = CLAUSE.split(page.read_text())
        for name, text in zip(parts[::2], parts[1::2]):
            doubled += [name] if name in where else []
            where[name], said[name] = page.name, text
    return where, doubled, said


def read_cases(folder):
    """{name of a test case: its tags}"""
    def joined(literals):
        return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')
    cases = {}
    for page in sorted(folder.rglob("*.cpp")):
        for name, marks in CASE.findall(page.read_text().replace("TEMPLATE_TEST_CASE", "TEST_CASE")):
            cases.setdefault(joined(name), set()).update(tags_in(joined(marks)))
    return cases


def read_rows(text):
    """(part, section, {column: cell}) of every row of every table."""
    part = section = ""
    columns = None
    for line in text.splitlines():
        if line.startswith("## "):
            part, section, columns = line[3:].strip(), "", None
        elif line.startswith("### "):
            section, columns = line[4:].strip(), None
        elif not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = [c.strip() for c in line.strip("| ").split("|")]
        elif not set(line) <= set("|-: "):
            yield part, section, dict(zip(columns, [c.strip() for c in line.strip()[1:-1].split("|")]))


def wrong_test(tree, ref):
    kind, _, name = ref.partition(": ")
    known = {"explore": tree.scenarios, "mutant": tree.mutants, "model": tree.models, "suite": tree.suites}
    if kind == "model" and tree.without_models and not (tree.top / "spec/model").is_dir():
        return None
    if kind in known:
        return None if name in known[kind] else f"no {kind} '{name}'"
    if kind == "later":
        return None if re.fullmatch(r"issue \d+", name) else f"later than what: '{name}'"
    if ref.startswith("["):
        return next((f"no case has the tag [{t}]" for t in tags_in(ref) if t not in tree.tags), None)
    if ref.startswith("static_assert in "):
        file = ref[len("static_assert in "):]
        return None if tree.holds(file, "static_assert") else f"no static_assert in '{file}'"
    return None if ref in tree.cases else f"no test case '{ref}'"


def unnoticed(tree, refs):
    """Of the mutants that a row names, those that none of its other tests is said to notice."""
    named = {r.removeprefix("explore: ") for r in refs if r.startswith("explore: ")}, {r for r in refs if r in tree.cases}
    for ref in refs:
        if ref.startswith("["):
            named[1].update(name for name, tags in tree.cases.items() if tags.issuperset(tags_in(ref)))
    for mutant in (tree.mutants[r] for r in map(mutant_in, refs) if r in tree.mutants):
        if not named[mutant.of_cases].intersection(mutant.tests):
            yield f"none of its tests notices mutant '{mutant.name}', but '{mutant.tests[0]}' does"


def wrong_code(tree, cell):
    file = None
    for name in re.findall(r"`([^`]+)`", cell):
        if re.search(r"\.(hpp|cpp|py|md|pml|build|sh)$", name):
            file = name
            if not tree.named(file):
                yield f"no file '{file}'"
        elif file is None:
            yield f"'{name}' stands in no file"
        elif tree.named(file) and not tree.holds(file, name.split("::")[-1]):
            yield f"no '{name}' in {file}"


def wrong_clause(tree, part, section, row):
    if part != "Clauses":
        return [f"there is no clause {name}" for name in row.get("ours", "").split() if name not in tree.clauses and name != "–"]
    name = row.get("clause", "").partition(" ")[0]
    if name not in tree.clauses:
        return [f"there is no clause {name}"]
    return [] if tree.clauses[name] == section else [f"{name} is a clause of {tree.clauses[name]}"]


def missing(tree, rows):
    named = [row["clause"].partition(" ")[0] for part, _, row in rows if part == "Clauses" and "clause" in row]
    yield from (f"{name} ({page}) has no row" for name, page in tree.clauses.items() if name not in named)
    yield from (f"{name} has two rows" for name in sorted(set(named)) if named.count(name) > 1)
    yield from (f"{name} is two clauses" for name in tree.doubled)
    yield from wrong_ids(tree.top, tree.files, tree.said)
    original = {row["original clause"].partition(" ")[0] for _, _, row in rows if "original clause" in row}
    wanted = [f"F{i}" if s == "F" else f"{s}.{i}" for s, n in tree.original.items() for i in range(1, n + 1)]
    yield from (f"original clause {name} has no row" for name in wanted if name not in original)
    for page in sorted((tree.top / "spec").rglob("*.md")):
        for to in LINK.findall(tree.text(page)):
            if not (page.parent / to).exists() and not (tree.without_models and to == "model/"):
                yield f"{page.name} links to '{to}', which is not there"


def tests_of(row):
    return [r.strip() for r in row.get("test", "").split(";") if r.strip()]


def mutant_in(ref):
    return ref.removeprefix("mutant: ") if ref.startswith("mutant: ") else None


def mutants_of(row):
    return [name for name in map(mutant_in, tests_of(row)) if name]


def check(tree, say=print):
    rows = list(read_rows((tree.top / "spec/conformance.md").read_text()))
    bad = tested = later = 0
    for part, section, row in rows:
        refs = tests_of(row)
        wrong = wrong_clause(tree, part, section, row) + list(wrong_code(tree, row.get("code", "")))
        wrong += [w for w in (wrong_test(tree, r) for r in refs) if w] + ([] if refs else ["has no test"])
        wrong += unnoticed(tree, refs)
        now = [r for r in refs if not r.startswith("later: ")]
        tested, later, bad = tested + bool(now), later + bool(refs and not now), bad + bool(wrong)
        say(f"FAILED {next(iter(row.values()))}: {'; '.join(wrong)}" if wrong else f"ok {next(iter(row.values()))}")
    for lack in missing(tree, rows):
        bad += 1
        say(f"FAILED {lack}")
    with_mutant = sum(bool(mutants_of(row)) for _, _, row in rows)
    clauses = [row for part, _, row in rows if part == "Clauses"]
    without = sum(not mutants_of(row) for row in clauses)
    unnamed = tree.mutants.keys() - {name for _, _, row in rows for name in mutants_of(row)}
    say(f"{len(rows)} rows, {tested} with a test, {later} later; {with_mutant} rows name a mutant; "
        f"{without} of {len(clauses)} rows of clauses name none; {len(unnamed)} of {len(tree.mutants)} mutants are named by no row")
    return bad


def list_mutants(tree):
    rows = list(read_rows((tree.top / "spec/conformance.md").read_text()))
    for part, section, row in rows:
        if part == "Clauses" and not mutants_of(row):
            print(f"{section}: {row.get('clause', '')} names no mutant")
    for name in sorted(tree.mutants.keys() - {name for _, _, row in rows for name in mutants_of(row)}):
        print(f"mutant '{name}' is named by no row")
    return 0


def main():
    if "--self-test" in sys.argv:
        from self_test import self_test
        return self_test(check, Tree)
    tree = Tree(TOP, "--without-models" in sys.argv)
    return list_mutants(tree) if "--mutants" in sys.argv else check(tree)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
