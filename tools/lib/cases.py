#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs the cases of a Catch2 executable; one that hangs or dies is a failure, and the run goes on with the next one.

  cases.py EXECUTABLE FILTER [COMMAND …]      COMMAND: what to run it under
  cases.py --self-test EXECUTABLE             shows that all this is so, by the cases of tests/unit/watchdog.cpp

What the executable writes goes to standard output. After it comes one line "FAILED CASE: name" for each failure, with what
failed, and the last line is "cases: N passed, N failed". The executable ends a case that hangs by itself and says why
(tests/support/watchdog.cpp); if it can't even do that it is killed here.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HUNG = 86  # watchdog.hpp
ADDRESS = re.compile(r"^(\S*ramie-tests)\(.*\+(0x[0-9a-f]+)\) ?\[")


def say(text):
    print(text, flush=True)


class Journal:
    """What the executable has noted: cases begun, ended, and signs of life."""

    def __init__(self, path):
        self.path, self.begun, self.ended, self.patience = path, [], {}, 60
        self.lines = 0

    def read(self):
        """True: something has been added."""
        lines = self.path.read_text(errors="replace").splitlines() if self.path.exists() else []
        fresh, self.lines = lines[self.lines:], len(lines)
        for line in fresh:
            what, patience, name = line.split(" ", 2)
            self.patience = int(patience)
            if what == "begins":
                self.begun.append(name)
            elif what != "goes-on":
                self.ended[name] = what == "passed"
        return bool(fresh)

    @property
    def open(self):
        return self.begun[-1] if self.begun and self.begun[-1] not in self.ended else None


def listed(executable, selection):
    """The names of all cases chosen: asked in the way of version 2, then of version 3."""
    for how in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        told = subprocess.run([executable, *selection, *how], capture_output=True, text=True)
        if "rror" not in told.stdout[:40] and "Unrecognised" not in told.stdout + told.stderr:
            return [line.strip() for line in told.stdout.splitlines() if line.strip()]
    return []


def run_once(command, journal, log):
    """Runs until it ends or shows no sign of life for twice as long as it would wait itself. Its exit code."""
    environment = {**os.environ, "RAMIE_TEST_JOURNAL": str(journal.path)}
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    last = time.monotonic()
    while True:
        try:
            code = process.wait(timeout=0.2 if time.monotonic() - last < 5 else 2)
            break
        except subprocess.TimeoutExpired:
            if journal.read():
                last = time.monotonic()
            if time.monotonic() - last > 2 * journal.patience + 30:
                os.killpg(process.pid, signal.SIGKILL)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # whom it has left behind
    except ProcessLookupError:
        pass
    journal.read()
    return code


def with_names(path):
    """Prints a log; addresses in our executable with the function there."""
    lines = path.read_text(errors="replace").splitlines()
    found = [(i, ADDRESS.match(line)) for i, line in enumerate(lines)]
    found = [(i, m) for i, m in found if m]
    if found and shutil.which("addr2line"):
        told = subprocess.run(["addr2line", "-Cfpe", found[0][1][1]], input="\n".join(m[2] for _, m in found), capture_output=True, text=True)
        for (i, _), name in zip(found, told.stdout.splitlines()):
            lines[i] = f"      {name.replace(' at ??:?', '').replace(' at ??:0', '')}"
    say("\n".join(lines))


def excerpts(path):
    """The failed assertions and the reports of sanitizers in a log, a few lines of each."""
    lines = path.read_text(errors="replace").splitlines()
    kept, room = [], 0
    for line in lines:
        if re.search(r": FAILED:$|^(WARNING|==\d+==ERROR|SUMMARY): |runtime error: ", line):
            room = 6
        if room > 0 and line.strip():
            kept.append(f"  {line}")
            room -= 1
    return kept[:60]


def verdict(code):
    if code == HUNG:
        return "hung"
    return f"died of signal {-code}" if code < 0 else f"ended the process with {code}"


def run_all(executable, selection, under):
    passed, left = 0, None
    failures = []  # lines about them; those of "FAILED CASE: " are counted
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        while True:
            journal = Journal(folder / "journal")
            journal.path.unlink(missing_ok=True)
            with open(folder / "log", "wb") as log:
                code = run_once([*under, executable, *selection], journal, log)
            with_names(folder / "log")
            passed += sum(journal.ended.values())
            wrong = [f"FAILED CASE: {case}" for case, good in journal.ended.items() if not good]
            if journal.open is not None:
                wrong.append(f"FAILED CASE: {journal.open} ({verdict(code)})")
            elif code != 0 and not wrong:  # a sanitizer spoke at the end, or nothing was run
                wrong.append(f"FAILED CASE: no case failed, but the process {verdict(code)}")
            if wrong:
                failures += wrong + excerpts(folder / "log")
            # A process that ended before its last case, whether or not the case that ended it was noted as failed.
            left = [c for c in (left or listed(executable, selection)) if c not in journal.begun] if code != 0 and journal.begun else []
            if not left:
                break
            say(f"({wrong[-1]}; going on with the {len(left)} cases that are left)")
            selection = [",".join(re.sub(r'([\\,\[\]"*])', r"\\\1", c) for c in left)]
    bad = sum(line.startswith("FAILED CASE: ") for line in failures)
    say("\n".join([*failures, f"cases: {passed} passed, {bad} failed"]))
    return 1 if bad else 0


def self_test(executable):
    """By cases of which some hang, die or fail, and by a patience of eight seconds: a child that hangs has half of that, and
    the rest is for telling of it, on a machine that may be busy."""
    ran = subprocess.run([sys.executable, __file__, executable, "[watched]"], capture_output=True, text=True,
                         env={**os.environ, "RAMIE_TEST_PATIENCE": "8"})
    bad = 0
    for what, pattern in (
            ("a case that hangs is named, with its place", r'HUNG: "watched: a fiber waits for ever" \(\S*unit/watchdog\.cpp:\d+\)'),
            ("and its last assertion", r"its last assertion was at \S*unit/watchdog\.cpp:\d+"),
            ("its fibers are named, with where they were spawned and what they wait for",
             r"fiber #\d+ 'the patient one', spawned at \S*unit/watchdog\.cpp:\d+: PARKED, waits: \w.*\(\S+:\d+\)"),
            ("so is the plain thread that waits for them", r"thread \d+: a plain thread, waits: run \("),
            ("a case that hangs is a failure", r"^FAILED CASE: watched: a fiber waits for ever \(hung\)"),
            ("a case that ends the process is a failure", r"^FAILED CASE: watched: dies \(ended the process with 5\)"),
            ("a case that aborts is a failure, and costs no other", r"^FAILED CASE: watched: aborts"),
            ("a case that fails is a failure", r"1 == 2"),
            ("it is named at the end, with what failed", r'^FAILED CASE: watched: "fails", as cases do\n(  .*\n)*  *CHECK\( 1 == 2 \)'),
            ("one that goes on is not, nor are those before and after, nor one whose child hangs", r"cases: 4 passed, 4 failed$")):
        good = re.search(pattern, ran.stdout.rstrip(), re.M)
        say(("ok " if good else "FAILED ") + what)
        bad += not good
    if bad:
        say(ran.stdout + ran.stderr)
    return 1 if bad else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2])
    return run_all(sys.argv[1], [sys.argv[2]], sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
