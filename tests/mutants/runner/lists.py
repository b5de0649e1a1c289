# SPDX-License-Identifier: BSL-1.0
"""The lists of mutants (tests/mutants/*.py), and what must be true of them without a build.

A list file holds `MUTANTS = [(name, file, [(text, replacement), ...], how), ...]`. `file` is a path from the top of the
repository. `how` says who notices: a list of scenarios of ramie-explore, a tuple of scenarios of ramie-explore-runtime, or
`{"cases": [names]}` for test cases of ramie-tests, with `"checks": True` if only a build with -Dchecks=enabled notices.
Name only tests that notice by themselves: run.py is content when one of them does, but tests/spec/check.py relies on each.
"""
import ast
import dataclasses
import pathlib
import re
import runpy

LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
CASE = re.compile(r"\b(TEMPLATE_)?TEST_CASE\(\s*" + LITERALS)
SCENARIO = re.compile(r'(?:\{|\bon\()\s*"([a-z0-9_]+)"\s*,')
WHOLE_RUNTIME = re.compile(r"executable\('ramie-explore-runtime'(.*?)include_directories", re.S)  # in tests/meson.build
PROGRAMS = {list: "tests/ramie-explore", tuple: "tests/ramie-explore-runtime", dict: "tests/ramie-tests"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    edits: tuple
    program: str  # the target of the build folder that notices
    tests: tuple  # names of cases or scenarios
    checks: bool

    @property
    def of_cases(self):
        return self.program == PROGRAMS[dict]

    @staticmethod
    def of(entry):
        name, file, edits, how = entry
        if type(how) not in PROGRAMS or isinstance(how, dict) and not {"cases"} <= set(how) <= {"cases", "checks"}:
            raise SystemExit(f"BROKEN    {name}: it can't be read who notices it: {how!r}")
        cases = isinstance(how, dict)
        return Mutant(name, file, tuple(edits), PROGRAMS[type(how)], tuple(how["cases"] if cases else how), cases and bool(how.get("checks")))

    def applied(self, text):
        for old, new in self.edits:
            if old not in text:
                raise LookupError(f"text not found in {self.file}: {old[:60]!r}")
            text = text.replace(old, new, 1)
        return text


def list_files(folder):
    """Every file of the folder that assigns MUTANTS."""
    for page in sorted(folder.glob("*.py")):
        if re.search(r"^MUTANTS\s*=", page.read_text(), re.M):
            yield page


def read_mutants(folder):
    return [Mutant.of(entry) for page in list_files(folder) for entry in runpy.run_path(str(page))["MUTANTS"]]


def read_cases(top):
    """{name of a test case: its file}; the name of a template stands for all its instances."""
    cases = {}
    for page in sorted((top / "tests").rglob("*.cpp")):
        for _, name in CASE.findall(page.read_text()):
            cases["".join(ast.literal_eval(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', name))] = page
    return cases


def read_scenarios(top):
    """{program: {name of a scenario: its file}}"""
    found = {PROGRAMS[list]: {}, PROGRAMS[tuple]: {}}
    whole = " ".join(WHOLE_RUNTIME.findall((top / "tests/meson.build").read_text()))
    for page in sorted((top / "tests/explore").glob("*.cpp")):
        kind = tuple if f"'explore/{page.name}'" in whole else list
        found[PROGRAMS[kind]] |= dict.fromkeys(SCENARIO.findall(page.read_text()), page)
    return found


def known_tests(top):
    """{program: {name of a test: its file}}"""
    return read_scenarios(top) | {PROGRAMS[dict]: read_cases(top)}


def flaw_of(mutant, top, tests):
    """What is wrong with an entry, or None."""
    source = top / mutant.file
    if not source.is_file():
        return f"no file {mutant.file}"
    try:
        if mutant.applied(source.read_text()) == source.read_text():
            return "changes nothing"
    except LookupError as missing:
        return str(missing)
    unknown = [t for t in mutant.tests if t not in tests[mutant.program]]
    if unknown or not mutant.tests:
        return f"{pathlib.Path(mutant.program).name} has no '{unknown[0]}'" if unknown else "names no test"
    return None


def stale(mutants, top, small=()):
    """(name, what is wrong) of every entry that no longer fits the sources, or is the same flaw as another."""
    tests, seen, made = known_tests(top), set(), {}
    for mutant in mutants:
        if mutant.name in seen:
            yield mutant.name, "is listed twice"
        seen.add(mutant.name)
        if (flaw := flaw_of(mutant, top, tests)) is not None:
            yield mutant.name, flaw
            continue
        first = made.setdefault((mutant.file, mutant.applied((top / mutant.file).read_text())), mutant)
        if first is not mutant:
            yield mutant.name, f"makes the same file as '{first.name}'"
    for name in sorted(set(small) - seen):
        yield name, "is in the small set, but in no list"
