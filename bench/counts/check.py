#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that the key operations cost as many instructions and RMWs as recorded.json says: noise can't fool it.

    check.py [BUILD]              one line an operation, "ok …" or "FAILED …"; exit code 1 if any failed
    check.py [BUILD] --record     writes what it finds into recorded.json, for the compiler that built it
    check.py [BUILD] --show       the table, and what is recorded
    check.py [BUILD] --self-test  shows that each kind of failure is found

BUILD is a build folder (default build) with bench/ramie-counts in it. An operation is run N and 2N times under
callgrind, and the difference divided by N: starting and stopping cancel out.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import callgrind

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded.json"
CALIBRATION = "calibration"
TIMES = 50_000
# Of the instructions, or half of one. Runs differ by up to 0.2 %, mostly by less than 0.05 %, also on a busy machine: a
# worker looks around more or less often before it sleeps, while the other thread starts and stops it.
TOLERANCE, HALF = 0.005, 0.5
RMW_TOLERANCE = 0.05
WORTH_RECORDING = 1  # instructions of a function per operation
RENEW = "python3 bench/counts/check.py {build} --record"

Cost = collections.namedtuple("Cost", "instructions rmws functions")  # of each function: [instructions, RMWs]


class Program:
    def __init__(self, build):
        self.path = pathlib.Path(build) / "bench" / "ramie-counts"

    def says(self, option):
        return subprocess.run([self.path, option], check=True, capture_output=True, text=True).stdout.strip()

    def operations(self):
        return [o for o in self.says("--list").split() if o != CALIBRATION]

    def cost(self, operation):
        once, twice = (callgrind.run(self.path, operation, str(n)) for n in (TIMES, 2 * TIMES))
        for counted in once._fields:
            getattr(twice, counted).subtract(getattr(once, counted))
        return Cost(round(sum(twice.instructions.values()) / TIMES, 1),
                    round(sum(twice.rmws.values()) / TIMES, 2),
                    {f: [round(n / TIMES, 1), round(twice.rmws[f] / TIMES, 2)]
                     for f, n in sorted(twice.instructions.items()) if n >= WORTH_RECORDING * TIMES})

    def costs(self):
        operations = self.operations()
        with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            return dict(zip(operations, pool.map(self.cost, operations)))


def recorded():
    records = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return {who: {name: Cost(**cost) for name, cost in costs.items()} for who, costs in records.items()}


def record(who, costs):
    records = recorded() | {who: costs}
    plain = {w: {name: cost._asdict() for name, cost in c.items()} for w, c in sorted(records.items())}
    text = json.dumps(plain, indent=1)
    RECORDED.write_text(re.sub(r"\[\s+(\S+)\s+(\S+)\s+\]", r"[\1 \2]", text) + "\n")  # a line a function


def grown(now, then, most=5):
    """The functions whose share changed most, biggest first; an RMW weighs as much as ten instructions."""
    change = {f: [a - b for a, b in zip(now.functions.get(f, (0, 0)), then.functions.get(f, (0, 0)))]
              for f in sorted(now.functions.keys() | then.functions.keys())}
    weight = {f: abs(instructions) + 10 * abs(rmws) for f, (instructions, rmws) in change.items()}
    return [f"    {change[f][0]:+7.1f} instructions {change[f][1]:+6.2f} RMWs  {f}"
            for f in sorted(change, key=lambda f: -weight[f])[:most] if weight[f] > 0.1]


def verdict(name, now, then, build="build"):
    """The lines to print about one operation; `now` or `then` may be missing."""
    if now is None or then is None:
        where = "recorded.json has it, the program does not" if now is None else "it is not in recorded.json"
        return [f"FAILED {name}: {where}. To renew the record: {RENEW.format(build=build)}"]
    allowed = max(TOLERANCE * then.instructions, HALF)
    instructions, rmws = now.instructions - then.instructions, now.rmws - then.rmws
    told = (f"{name}: {now.instructions:.1f} instructions and {now.rmws:.2f} RMWs, "
            f"recorded {then.instructions:.1f} ± {allowed:.1f} and {then.rmws:.2f}")
    if instructions > allowed or rmws > RMW_TOLERANCE:
        return [f"FAILED {told}: it got dearer. If that is meant: {RENEW.format(build=build)}", *grown(now, then)]
    if instructions < -allowed or rmws < -RMW_TOLERANCE:
        return [f"FAILED {told}: it got cheaper, and the record would hide a later loss. "
                f"Renew it: {RENEW.format(build=build)}", *grown(now, then)]
    return [f"ok {told}"]


def check(program, build):
    who = program.says("--built-by")
    then = recorded().get(who)
    if then is None:
        print(f"skipped: recorded.json knows nothing of {who}. To record it: {RENEW.format(build=build)}")
        return True
    now = program.costs()
    lines = [line for name in {**now, **then} for line in verdict(name, now.get(name), then.get(name), build)]
    print("\n".join(lines))
    return not any(line.startswith("FAILED") for line in lines)


def show(who, costs):
    then = recorded().get(who, {})
    print(f"{who + ', per operation':40} instructions  (recorded)    RMWs  (recorded)")
    for name, now in costs.items():
        before = ("%.1f" % then[name].instructions, "%.2f" % then[name].rmws) if name in then else ("", "")
        print(f"{name:40} {now.instructions:12.1f} {before[0]:>11} {now.rmws:7.2f} {before[1]:>11}")


def self_test(program):
    good = Cost(100.0, 2.0, {"send": [60.0, 1.0], "recv": [40.0, 1.0]})
    more, fewer = 1 + 2 * TOLERANCE, 1 - 2 * TOLERANCE
    slower = good._replace(instructions=100 * more, functions=good.functions | {"send": [61.0, 1.0]})
    cases = [
        ("the same passes", good, "ok"),
        ("a little more passes", good._replace(instructions=100 * (1 + TOLERANCE / 2)), "ok"),
        ("more instructions fail", slower, "FAILED"),
        ("fewer instructions fail", good._replace(instructions=100 * fewer), "FAILED"),
        ("more RMWs fail", good._replace(rmws=2.1), "FAILED"),
        ("fewer RMWs fail", good._replace(rmws=1.9), "FAILED"),
        ("an operation that is gone fails", None, "FAILED"),
    ]
    found = [(title, verdict("it", now, good)[0].startswith(wanted)) for title, now, wanted in cases]
    found.append(("an operation without a record fails", verdict("it", good, None)[0].startswith("FAILED")))
    named = [line.split()[-1] for line in verdict("it", slower, good)[1:]]
    found.append(("the function that grew is named", named == ["send"]))
    perturbed = [(name, cost, other) for costs in recorded().values() for name, cost in costs.items() for other in (
        cost._replace(instructions=cost.instructions * more + 1), cost._replace(rmws=cost.rmws + 0.1),
        cost._replace(instructions=cost.instructions * fewer - 1), cost._replace(rmws=cost.rmws - 0.1))]
    found.append(("every record fails when it is perturbed",
                  perturbed and all(verdict(*it)[0].startswith("FAILED") for it in perturbed)))
    counted = program.cost(CALIBRATION)
    found.append((f"two RMWs are counted as two ({counted.rmws:.2f})", counted.rmws == 2))
    for title, holds in found:
        print("ok" if holds else "FAILED", "self-test:", title)
    return all(holds for _, holds in found)


def main():
    options = {a for a in sys.argv[1:] if a.startswith("--")}
    build = next((a for a in sys.argv[1:] if not a.startswith("--")), "build")
    program = Program(build)
    if options - {"--record", "--show", "--self-test"}:
        sys.exit(__doc__)
    if not program.path.exists():
        sys.exit(f"FAILED {program.path} is not there: ninja -C {build} bench/ramie-counts")
    if "--self-test" in options:
        return self_test(program)
    if not options:
        return check(program, build)
    who, costs = program.says("--built-by"), program.costs()
    show(who, costs)
    if "--record" in options:
        record(who, costs)
    return True


if __name__ == "__main__":
    sys.exit(not main())
