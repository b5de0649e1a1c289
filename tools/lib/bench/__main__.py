# SPDX-License-Identifier: BSL-1.0
"""Runs ramie and its peers side by side and compares them. tools/bench installs, builds and starts this."""
import argparse
import json
import os
import random
import sys

import chart
import machine
import peers
import report
import run
import toolchains
from peers import write

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
RESULTS = os.path.join(TOP, "bench", "results")
PAGE = os.path.join(TOP, "docs", "performance.md")  # shows the last whole run


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def arguments(plan):
    names = ", ".join(w["name"] for w in plan["workloads"])
    named = [p for p in peers.ALL if p != "before"]  # which --against adds
    parser = argparse.ArgumentParser(
        prog="tools/bench",
        description="Runs ramie and its peers side by side, interleaved in rounds, and compares their medians. "
        "Writes bench/results/latest.json, .md and .svg.",
        epilog=f"workloads: {names}; peers: {', '.join(named)}. tools/bench micro [SUBJECT ...] measures the parts instead, tools/bench scale predicts what 64 workers do.",
    )
    parser.add_argument("workload", nargs="*", help="which workloads (default: all)")
    parser.add_argument("--peers", metavar="A,B", help="which programs, ramie always among them (default: all)")
    parser.add_argument("--runs", type=positive, metavar="N", help="rounds (default: 5, with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: done in 4 minutes")
    parser.add_argument("--seed", type=int, help="of the order in which programs run")
    parser.add_argument("--against", metavar="DIR",
                        help="another checkout of ramie, in which tools/bench was run: a column for it, and nothing is written")
    parser.add_argument("--weather", type=int, default=0, metavar="N",
                        help="beside N busy foreign processes, as on a machine that is not ours alone; nothing is written")
    toolchains.add_arguments(parser)
    parser.add_argument("--no-install", action="store_true", help="use what is here")
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    known = [w["name"] for w in plan["workloads"]]
    for name in a.workload:
        if name not in known:
            parser.error(f"no workload '{name}'; there are: {names}")
    a.peers = named if a.peers is None else [p for p in a.peers.split(",") if p]
    for name in a.peers:
        if name not in named:
            parser.error(f"no peer '{name}'; there are: {', '.join(named)}")
    a.peers = [p for p in named if p == "ramie" or p in a.peers]
    a.tools = toolchains.Toolchains(a.go, a.tokio_registry)
    for name in a.tools.named():
        if name not in a.peers:
            option = {"go": "--go", "tokio": "--tokio-registry"}[name]
            parser.error(f"{option}: --peers leaves {name} out; add it there, or leave {option} out")
    if a.against is not None:
        a.against = toolchains.named_path(a.against)
        if not os.access(peers.ramie_of(a.against), os.X_OK):
            parser.error(f"no {peers.ramie_of(a.against)}: run tools/bench in that checkout first, e.g. with --peers ramie --quick yield-2")
        a.peers.append("before")
    if a.weather < 0:
        parser.error("--weather takes the number of busy processes, at least 0")
    a.runs = a.runs or (3 if a.quick else 5)
    a.seed = random.randrange(10**6) if a.seed is None else a.seed
    return a


def chosen(plan, a):
    """The workloads of this run, with the sizes and titles that it uses."""
    found = []
    for w in plan["workloads"]:
        if a.workload and w["name"] not in a.workload:
            continue
        if a.quick and w.get("full_only") and w["name"] not in a.workload:
            continue
        found.append(w)
    return found


def main():
    with open(os.path.join(TOP, "bench", "compare", "workloads.json"), encoding="utf-8") as f:
        plan = json.load(f)
    a = arguments(plan)
    if a.plan:
        print(f"install={0 if a.no_install else 1} peers=\"{' '.join(a.peers)}\" named=\"{' '.join(a.tools.named())}\"")
        return 0
    programs = peers.build(TOP, a.peers, a.against, a.tools)
    run.make_files(os.path.join(TOP, "build-bench", "files"))
    cells = run.cells(plan, chosen(plan, a), programs, a.quick, a.runs)
    print(f"    {len(cells)} programs and workloads, {a.runs} rounds, seed {a.seed}")
    neighbours = machine.Neighbours()
    with machine.Weather(a.weather):
        run.rounds(cells, a.runs, a.seed)
        others = neighbours.share()
    found = report.collect(plan, chosen(plan, a), cells, a)
    found["machine"] = {**machine.describe(TOP), "others_percent": others, "weather": a.weather}
    found["versions"] = {p: peers.version(TOP, p, a.against, a.tools) for p in programs if p in peers.ALL}
    print()
    print(report.terminal(found))
    if a.against or a.weather:
        return 0  # an answer for whoever changes ramie, no result that stays
    os.makedirs(RESULTS, exist_ok=True)
    write(os.path.join(RESULTS, "latest.json"), json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write(os.path.join(RESULTS, "latest.md"), report.markdown(found))
    write(os.path.join(RESULTS, "latest.svg"), chart.svg(found))
    chart.png(os.path.join(RESULTS, "latest.svg"))
    if not a.quick and not a.workload:
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()
        write(PAGE, report.renewed(page, found))
    print("\nbench/results/latest.json, latest.md and latest.svg are written")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted: nothing is written", file=sys.stderr)
        sys.exit(130)
