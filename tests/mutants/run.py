#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Puts known flaws back into the sources and shows that the tests notice.

    run.py [BUILD] [--all] [--only=NAME]
    run.py --stale

BUILD is a compiled build folder (default: build). What a flaw does not reach is taken from there; what it reaches is compiled
in BUILD/mutants. Without options: a few mutants, one of most mechanisms. --all, or RAMIE_TEST_SIZE=large: all of them.
--only: those whose names contain NAME. --stale: no build, only whether every text and every named test is still there, and
no two mutants make the same file.

The lists are the other files of this folder (runner/lists.py says what an entry is). One line a mutant: KILLED, or
SURVIVED, STALE (the text is gone, or another mutant does the same), BROKEN (it does not compile), each of which is a
failure. A test that hangs has noticed. Test cases get a few attempts; a line says so if the first did not notice.
"""
import sys

sys.path[0] += "/runner"  # and not the lists, one of which may have the name of a module

import os  # noqa: E402
import pathlib  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402

from folder import Folder  # noqa: E402
from lists import known_tests, read_mutants, stale  # noqa: E402
from trial import Trials  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
SMALL = {
    "separate wake_pending",
    "ticket not compared",
    "stolen into slots that a thief still reads",
    "revoked without a wait",
    "listed on a closed channel",
    "the last searcher does not look again",
    "an epoch that does not move",
}


def chosen(mutants):
    only = next((a.removeprefix("--only=") for a in sys.argv if a.startswith("--only=")), None)
    everything = "--all" in sys.argv or os.environ.get("RAMIE_TEST_SIZE") == "large"
    return [m for m in mutants if (only in m.name if only else everything or m.name in SMALL)]


def report_stale(mutants):
    bad = 0
    for name, flaw in stale(mutants, TOP, SMALL):
        print(f"STALE     {name}: {flaw}", flush=True)
        bad += 1
    return bad


def main():
    mutants = read_mutants(TOP / "tests/mutants")
    bad = report_stale(mutants)
    if "--stale" in sys.argv:
        print(f"{len(mutants)} mutants, {bad} stale")
        return bad
    begun, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    build = pathlib.Path(next((a for a in sys.argv[1:] if not a.startswith("--")), TOP / "build")).resolve()
    trials = Trials(Folder(TOP, build), known_tests(TOP), os.cpu_count() or 1)
    wanted = chosen(mutants)
    for flaw in trials.without_mutants(wanted):
        print(f"BROKEN    {flaw}", flush=True)
        bad += 1
    killed = 0
    for mutant, verdict, why in trials.verdicts(wanted):
        print(f"{verdict:9} {mutant.name}: {why}", flush=True)
        killed += verdict == "KILLED"
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(f"{killed} of {len(wanted)} mutants killed, {len(mutants)} in all; {time.monotonic() - begun:.0f} s, {seconds:.0f} s of processors")
    return bad + len(wanted) - killed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
