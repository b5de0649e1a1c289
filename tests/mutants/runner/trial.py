# SPDX-License-Identifier: BSL-1.0
"""Builds a program with a mutant and runs the tests that should notice it."""
import collections
import concurrent.futures
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading

from folder import CompileError
from lists import PROGRAMS
from objects import Objects
from tree import copied_tree

CASES = PROGRAMS[dict]
EXPLORER_SECONDS = 300  # of processor time, of which a crowded machine takes more; a search that has found nothing by then does not count as a noticed flaw
ATTEMPTS = 5  # of test cases until a mutant has survived: some flaws show only if one thread is faster than another
PATIENCE = 10  # seconds until a test case hangs, besides five times what it takes without a mutant
ALL_CASES = 1500  # seconds for all named cases without a mutant; each of them has a watchdog besides
FOUND = re.compile(r"^(\w+) .*exhausted: (?!holds)(.*?)(?: \(--replay.*)?$", re.M)  # by an explorer
DURATION = re.compile(r"^(\d+\.\d+) s: (.+)$", re.M)
Ran = collections.namedtuple("Ran", "code said attempt", defaults=[1])
HANGS = "hangs"


def run_limited(command, patience=None, processor_seconds=None):
    """Ends what it started, too: the command has a process group of its own. The code is HANGS if it took too long."""
    quiet = {k: v for k, v in os.environ.items() if not k.startswith(("RAMIE_TEST", "RAMIE_STRESS"))}

    def limit():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if processor_seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds + 1))

    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=quiet, preexec_fn=limit)
        try:
            code = process.wait(patience)
        except subprocess.TimeoutExpired:
            code = HANGS
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        said.seek(0)
        return Ran(code, said.read().decode(errors="replace"))


def summary(ran):
    """The line that says best what went wrong."""
    if ran.code == HANGS:
        return HANGS
    if found := FOUND.search(ran.said):
        return f"{found[1]}: {found[2]}"
    lines = [" ".join(line.split()) for line in ran.said.splitlines()]
    for i, line in enumerate(lines):
        if line.endswith("FAILED:"):
            where = os.path.basename(line.removesuffix(": FAILED:"))
            return f"{where}: {' '.join(lines[i + 1:i + 2])}"[:150]
    said = [line for line in lines if line and "holds" not in line and not set(line) <= set("~-=.")]
    return said[0][:150] if said else f"ended with {ran.code}"


class Trials:
    def __init__(self, folder, tests, jobs):
        self.folder, self.jobs = folder, jobs
        self.processors = threading.Semaphore(jobs)
        self.sleepers = threading.Semaphore(2 * jobs)  # test cases that hang need no processor
        self.objects = Objects(folder, tests, self.processors)
        self.seconds = {}  # {(case, with checks): time without a mutant}

    def link(self, objects, target, output):
        with self.processors:
            return self.folder.link(objects, self.objects.program(target)[1], output)

    def run_cases(self, program, cases, patience, *options):
        escaped = [re.sub(r'([\\,\[\]"*])', r"\\\1", c) for c in cases]
        wanted = ",".join(f"{e},{e} - *" for e in escaped)  # the second: instances of a template
        with self.sleepers:
            return run_limited([str(program), wanted, *options], patience)

    def run_scenarios(self, program, scenarios):
        with self.processors:
            return run_limited([str(program), *scenarios], None, EXPLORER_SECONDS)

    def verdict(self, mutant):
        """(KILLED, SURVIVED, STALE or BROKEN, why)"""
        try:
            text = mutant.applied((self.folder.top / mutant.file).read_text())
            with copied_tree(self.folder.top, self.folder.scratch, mutant.file, text) as tree:
                compiled = self.objects.with_mutant_and_checks if mutant.checks else self.objects.with_mutant
                ran = self.run(mutant, self.link(compiled(mutant, tree), mutant.program, tree.place / "program"))
        except LookupError as stale:
            return "STALE", str(stale)
        except CompileError as broken:
            return "BROKEN", str(broken)
        if ran.code in (0, -signal.SIGXCPU):
            return "SURVIVED", "" if ran.code == 0 else f"nothing found in {EXPLORER_SECONDS} s"
        return "KILLED", summary(ran) + (f" (at attempt {ran.attempt})" if ran.attempt > 1 else "")

    def run(self, mutant, program):
        if mutant.program != CASES:
            return self.run_scenarios(program, mutant.tests)
        patience = PATIENCE + 5 * sum(self.seconds.get((c, mutant.checks), 0) for c in mutant.tests)
        for attempt in range(ATTEMPTS):
            ran = self.run_cases(program, mutant.tests, patience, "-a")
            if ran.code != 0:
                break
        return ran._replace(attempt=attempt + 1)

    # Without a mutant every named case must run and pass, or what it says of a mutant means nothing. The scenarios of the
    # explorer are run by `tools/test explore`.

    def without_mutants(self, mutants):
        """What is wrong, a line each."""
        for checks in (False, True):
            of_kind = [m for m in mutants if m.program == CASES and m.checks == checks]
            if of_kind:
                yield from self.pass_without_mutant(of_kind, checks)

    def pass_without_mutant(self, mutants, checks):
        cases = sorted({c for m in mutants for c in m.tests})
        with copied_tree(self.folder.top, self.folder.scratch) as tree:
            try:
                if checks:
                    objects = self.objects.without_mutant_with_checks(CASES, cases)
                else:
                    objects = self.objects.without_mutant(CASES, {m.file for m in mutants}, tree)
                ran = self.run_cases(self.link(objects, CASES, tree.place / "program"), cases, ALL_CASES, "-d", "yes")
            except CompileError as broken:
                yield f"the library without a mutant: {broken}"
                return
        seconds = {n: float(s) for s, name in DURATION.findall(ran.said) for n in (name, name.rpartition(" - ")[0])}
        self.seconds |= {(c, checks): seconds.get(c, 0) for c in cases}
        kind = "with" if checks else "without"
        if ran.code != 0:
            yield f"the named cases without a mutant, {kind} checks: {summary(ran)}"
        yield from (f"'{c}' does not run in a build {kind} checks" for c in cases if ran.code == 0 and c not in seconds)

    def verdicts(self, mutants):
        """(mutant, verdict, why) in the order in which they are done."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=4 * self.jobs) as pool:
            asked = {pool.submit(self.verdict, m): m for m in mutants}
            for done in concurrent.futures.as_completed(asked):
                yield asked[done], *done.result()
