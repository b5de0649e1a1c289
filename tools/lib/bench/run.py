# SPDX-License-Identifier: BSL-1.0
"""Runs every program once a round, in another order each round, so that noise hits all alike.

Nothing is pinned but servers and what loads them (serve.py): every program may use the machine as it does for its users,
and can flee from a busy neighbour. A program that fails costs its cell, not the run.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import time

import machine
import peers

LIMIT = 60  # seconds for one run


class Cell:
    """One program on one workload with so many workers."""

    def __init__(self, workload, workers, peer, command, rounds, memory_gb):
        self.workload, self.workers, self.peer = workload, workers, peer
        self.command, self.rounds, self.memory_gb = command, rounds, memory_gb
        self.samples = []  # what the program printed, a dictionary a run
        self.failure = None
        self.seconds = None

    def run(self):
        if self.memory_gb > machine.available_gb():
            self.failure = "needs more memory than there is"
            return
        start = time.monotonic()
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, timeout=LIMIT)
            self.judge(done)
        except subprocess.TimeoutExpired:
            self.failure = f"took more than {LIMIT} s"
        self.seconds = time.monotonic() - start

    def judge(self, done):
        if done.returncode < 0:
            self.failure = f"died of signal {-done.returncode}"
        elif done.returncode != 0:
            self.failure = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        else:
            try:
                self.samples.append(json.loads(done.stdout))
            except ValueError:
                self.failure = "printed something else than a result"

    def name(self):
        return f"{self.peer} {self.workload} {self.workers}w"


def sizes_of(workload, peer, quick):
    sizes = dict(workload["sizes"])
    if quick:
        sizes.update(workload["quick"])
    for key, value in workload.get("only", {}).get(peer, {}).items():
        sizes[key] = min(value, sizes[key])
    return [f"{key}={value}" for key, value in sizes.items()]


def make_files(folder):
    """What there is to serve and to read, for COMPARE_FILES. Just written or just read, so it is in the page cache."""
    os.makedirs(folder, exist_ok=True)
    os.environ["COMPARE_FILES"] = folder
    for name, size in {"1k": 2**10, "64k": 2**16, "reads": 2**26}.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path) or os.path.getsize(path) != size:
            with open(path, "wb") as f:
                f.write(random.Random(0).randbytes(size))
        with open(path, "rb") as f:
            while f.read(2**20):
                pass


def command_of(w, program, workers, sizes, programs):
    """One that prints a result: the program itself, or what starts and loads a server."""
    if "load" not in w:
        return [program, w["run"], str(workers), *sizes]
    here = os.path.dirname(os.path.abspath(__file__))
    load = "load=" + os.path.join(os.path.dirname(programs["floors"]), "compare-load")
    return [sys.executable, "-B", os.path.join(here, "serve.py"), w["load"], str(workers), load, *sizes, "--",
            *peers.server(program, w["run"], workers)]


def abilities(program):
    """{(workload, workers)}"""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=LIMIT).stdout
    return {(name, int(workers)) for name, workers in (line.split() for line in listed.splitlines())}


def cells(plan, workloads, programs, quick, runs):
    made = []
    able = {peer: abilities(program) for peer, program in programs.items()}
    for peer in {"ramie", "before"} & able.keys():
        able[peer] |= {("http", 1), ("http", 2)}  # by the example
    for floor in plan["floors"]:
        command = [programs["floors"], floor["run"], "1", *sizes_of(floor, "floors", quick)]
        made.append(Cell(floor["run"], 1, "floors", command, runs, 0))
    for w in workloads:
        if w.get("load") == "http" and not shutil.which("wrk"):
            print(f"    without {w['name']}: no wrk here")
            continue
        rounds = min(runs, w.get("rounds", runs), w.get("quick_rounds", runs) if quick else runs)
        for workers in w["workers"]:
            for peer, program in programs.items():
                if peer == "floors" or (w["run"], workers) not in able[peer]:
                    continue
                command = command_of(w, program, workers, sizes_of(w, peer, quick), programs)
                memory = 0 if quick else w.get("memory_gb", {}).get(peer, 0)
                made.append(Cell(w["name"], workers, peer, command, rounds, memory))
    return made


class Progress:
    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.tty = sys.stdout.isatty()

    def show(self, left, what):
        if not self.tty:
            return
        width = 30
        full = round(width * self.done / max(self.total, 1))
        bar = "█" * full + "░" * (width - full)
        line = f"    {bar} {100 * self.done // self.total:3d}%  {int(left) // 60}:{int(left) % 60:02d} left  {what}"
        sys.stdout.write("\r\033[K" + line[:110])
        sys.stdout.flush()

    def say(self, text):
        sys.stdout.write(("\r\033[K" if self.tty else "") + f"    {text}\n")

    def end(self):
        if self.tty:
            sys.stdout.write("\r\033[K")
        seconds = int(time.monotonic() - self.start)
        print(f"    measured in {seconds // 60}:{seconds % 60:02d}")


def seconds_left(todo, every):
    known = [c.seconds for c in every if c.seconds is not None]
    usual = sum(known) / len(known) if known else 0.6
    return sum(usual if c.seconds is None else c.seconds for c in todo)


def rounds(every, runs, seed):
    order = random.Random(seed)
    schedule = []
    for number in range(runs):
        this_round = [c for c in every if number < c.rounds]
        order.shuffle(this_round)
        schedule += this_round
    progress = Progress(len(schedule))
    for at, cell in enumerate(schedule):
        progress.done = at
        progress.show(seconds_left(schedule[at:], every), cell.name())
        if cell.failure is not None:
            continue  # once is enough
        cell.run()
        if cell.failure is not None:
            progress.say(f"{cell.name()}: {cell.failure}")
    progress.end()
