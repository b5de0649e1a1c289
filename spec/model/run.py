#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Verifies the models of this directory with Spin: every configuration must be free of errors, every mutant must not be.

What there is to run stands in the models' first comments:
  * run: NAME  -DX=1 -DY=2                   a configuration, searched exhaustively
  * mutant: NAME  -DX=1 -DY=2: WHAT          the same with -DMUTANT_NAME, which must be caught
With -DLIVE the search is for cycles without progress, instead of for waits without an end.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("park_wake", "idle", "deque", "channel_close", "adoption")
JOBS = 2
MEGABYTES = 1500   # for one search
SECONDS = 600      # for one search
DEPTH = 20000

Item = collections.namedtuple("Item", "kind model name flags what")
Result = collections.namedtuple("Result", "states seconds problem exercised")


def items():
    found = []
    for model in MODELS:
        head = (HERE / f"{model}.pml").read_text().split("*/")[0]
        for line in head.splitlines():
            if match := re.match(r" \* run: (.*?)\s+(-D.*)", line):
                found.append(Item("model", model, match[1], match[2].split(), ""))
            elif match := re.match(r" \* mutant: (\w+)\s+(-D[^:]*): (.*)", line):
                found.append(Item("mutant", model, match[1], [f"-DMUTANT_{match[1]}", *match[2].split()], match[3]))
    return found


def first_few(all_items):
    """Of each model one run and four mutants: what a run of all tests does."""
    left = collections.Counter({(kind, model): few for model in MODELS for kind, few in (("model", 1), ("mutant", 4))})
    chosen = []
    for item in all_items:
        left[item.kind, item.model] -= 1
        if left[item.kind, item.model] >= 0:
            chosen.append(item)
    return chosen


def call(command, where, seconds=SECONDS):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=seconds, check=False)
    return done.stdout + done.stderr, done.returncode


def build(item, where):
    """Makes ./pan in the directory `where`."""
    source = where / f"{item.model}.pml"
    source.write_text((HERE / source.name).read_text())
    text, code = call(["spin", "-a", *item.flags, source.name], where)
    if code != 0 or "Error" in text or not (where / "pan.c").exists():
        raise RuntimeError("spin: " + text.strip().splitlines()[0])
    # A mutant is found soon: what counts is how soon the search begins.
    effort = "-O1" if item.kind == "model" else "-O0"
    sort = "-DNP" if "-DLIVE" in item.flags else "-DSAFETY"
    text, code = call(["gcc", effort, "-w", sort, f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"], where)
    if code != 0:
        raise RuntimeError("gcc: " + text.strip().splitlines()[0])


def statements(where, out):
    """The lines with assertions, and whether any copy of each was reached."""
    copies = collections.Counter()
    process = ""
    for line in call(["./pan", "-d"], where)[0].splitlines():
        if match := re.match(r"proctype (\S+)", line):
            process, seen = match[1].strip(":"), set()
        elif match := re.match(r"\s*state\s+(\d+) .*?\.pml:(\d+) => (.*)", line):
            if match[1] not in seen and "assert" in match[3]:
                copies[(process, int(match[2]))] += 1
            seen.add(match[1])
    missed = collections.Counter()
    for line in out.splitlines():
        if match := re.match(r"unreached in (?:proctype )?(\S+)", line):
            process = match[1].strip(":")
        elif match := re.match(r"\s+\S+\.pml:(\d+), state (\d+), \"(.*)", line):
            if "assert" in match[3]:
                missed[(process, int(match[1]))] += 1
    lines = {line: False for _, line in copies}
    for at, number in copies.items():
        lines[at[1]] |= missed[at] < number
    return lines


def search(item, where):
    begun = time.monotonic()
    out, _ = call(["./pan", f"-m{DEPTH}", *(["-l"] if "-DLIVE" in item.flags else [])], where)
    seconds = time.monotonic() - begun
    states = re.search(r"(\d+) states, stored", out)
    errors = re.search(r"errors: (\d+)", out)
    if states is None or errors is None:
        raise RuntimeError("pan: " + (out.strip().splitlines() or ["no output"])[-1])
    problem = ""
    if errors[1] != "0":
        problem = re.sub(r" \(at depth \d+\)", "", re.search(r"pan:1: (.*)", out)[1])
    elif "max search depth too small" in out or "Search not completed" in out or "bound" in out or "TIMED OUT" in out:
        raise RuntimeError("the search is not complete")
    exercised = statements(where, out) if item.kind == "model" else {}
    return Result(int(states[1]), seconds, problem, exercised)


def verify(item):
    with tempfile.TemporaryDirectory(prefix="ramie-model-") as name:
        where = pathlib.Path(name)
        try:
            build(item, where)
            return search(item, where)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as failure:
            return str(failure)


def report(item, result):
    """Prints the line of an item. Returns whether it is as it should be."""
    label = f"model {item.model} ({item.name})" if item.kind == "model" else f"mutant {item.name} ({item.model})"
    if isinstance(result, str):
        print(f"FAILED {label}: {result}", flush=True)
        return False
    good = (result.problem == "") == (item.kind == "model")
    if item.kind == "model":
        text = f"{result.states:,} states, {result.seconds:.1f} s" if good else result.problem
    else:
        text = f"caught after {result.states:,} states: {result.problem}" if good else f"not caught: {item.what}"
    print(f"{'ok' if good else 'FAILED'} {label}: {text}", flush=True)
    return good


def trail(item):
    """The counterexample of a mutant: the statements that were executed, without those that only lead on."""
    with tempfile.TemporaryDirectory(prefix="ramie-model-") as name:
        where = pathlib.Path(name)
        build(item, where)
        found = search(item, where)
        if found.problem == "":
            return print("no counterexample")
        text, _ = call(["spin", "-t", "-p", *item.flags, f"{item.model}.pml"], where)
        source = (HERE / f"{item.model}.pml").read_text().splitlines()
        print(f"{item.what}\n{found.problem}\n")
        for line in text.splitlines():
            if match := re.match(r"\s*(\d+):\s+proc\s+(\d+) \((\S+?):\d+\) \S+:(\d+) \(state \d+\)\s+\[(.*)\]", line):
                if match[5] not in ("else", "(1)", "IF", "DO", "sub-sequence", "break", "goto") and "goto)" not in match[5]:
                    print(f"{match[1]:>4}  {match[3].strip(':')} {match[2]:<3} {match[4]:>4}  {match[5]}")
            elif "Error" in line or "text of failed" in line:
                print(line)
            elif match := re.match(r"\s*\d+:\s+proc\s+(\d+) \((\S+?):\d+\) \S+:(\d+) \(state \d+\)$", line):
                print(f"      {match[2].strip(':')} {match[1]} stands at line {match[3]}: {source[int(match[3]) - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="models or mutants; all if none is given")
    parser.add_argument("--list", action="store_true", help="prints the names")
    parser.add_argument("--quick", action="store_true", help="of each model the first run and the first few mutants")
    parser.add_argument("--trail", metavar="NAME", help="shows the counterexample of a mutant")
    given = parser.parse_args()
    all_items = items()
    known = {name for item in all_items for name in (item.model, item.name)}
    if unknown := [name for name in [*given.names, *filter(None, [given.trail])] if name not in known]:
        parser.error("unknown: " + ", ".join(unknown))
    if given.list:
        for item in all_items:
            print(f"{item.kind} {item.model}: {item.name}" + (f": {item.what}" if item.what else ""))
        return 0
    if given.trail:
        trail(next(item for item in all_items if item.name == given.trail))
        return 0
    wanted = [item for item in all_items if not given.names or {item.model, item.name} & set(given.names)]
    if given.quick:
        wanted = first_few(wanted)
    begun = time.monotonic()
    good, states, counted = True, 0, collections.Counter()
    exercised = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(min(JOBS, os.cpu_count() or 1)) as pool:
        for item, result in zip(wanted, pool.map(verify, wanted)):
            if not report(item, result):
                good = False
                continue
            counted[item.kind] += 1
            if item.kind == "model":
                states += result.states
                for at, was in result.exercised.items():
                    exercised[item.model][at] = exercised[item.model].get(at, False) or was
    if not given.names and not given.quick:
        for model, lines in exercised.items():
            for line in sorted(line for line, was in lines.items() if not was):
                good = False
                print(f"FAILED model {model}: no configuration comes to the assertion in line {line}")
    print(f"{counted['model']} models, {counted['mutant']} mutants caught, {states:,} states, "
          f"{time.monotonic() - begun:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
