# SPDX-License-Identifier: BSL-1.0
"""Predicts how workloads do on more processors than this machine has (bench/scale), and on which lines of memory they wait.

Every program is simulated on so many virtual processors, with a cost for each cache line that moves between two of them:
docs/performance.md, "More processors than we have". On one worker and on two it is run for real, too.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILT = os.path.join(TOP, "build-bench", "bench")
LIMIT = 300  # seconds for one simulation


def arguments():
    parser = argparse.ArgumentParser(prog="tools/bench scale", description=__doc__.splitlines()[0])
    parser.add_argument("workload", nargs="*", help="which workloads (default: all; --list names them)")
    parser.add_argument("--workers", default="1,2,4,8,16,32,64", help="e.g. 2,64; up to 80 (default: 1,2,4,8,16,32,64)")
    parser.add_argument("--seeds", type=int, default=3, help="simulations of each, of which medians are taken (default: 3)")
    parser.add_argument("--lines", type=int, default=0, metavar="N", help="name the N places in the code that wait for most lines")
    parser.add_argument("--no-real", action="store_true", help="don't run anything on this machine's own processors")
    parser.add_argument("--list", action="store_true", help="name the workloads")
    parser.add_argument("--built", default=BUILT, help=argparse.SUPPRESS)
    return parser, parser.parse_args()


def program(a, name):
    return os.path.join(a.built, name)


def workloads(a):
    """{name: (what it is, operation)}"""
    listed = subprocess.run([program(a, "scale"), "--list"], capture_output=True, text=True, check=True).stdout
    return {name: (what, operation) for name, what, operation in (line.split("\t") for line in listed.splitlines())}


def output(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        sys.exit(f"tools/bench scale: {' '.join(command[1:])}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def simulate(a, names, workers):
    """{(name, workers): [result of each seed]}, two at a time."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        runs = {(n, w, s): pool.submit(output, [program(a, "scale"), n, str(w), str(s)])
                for n in names for w in reversed(workers) for s in range(1, a.seeds + 1)}
        for (n, w, _), run in runs.items():
            found.setdefault((n, w), []).append(run.result())
    return found


def median(results, figure):
    return statistics.median(figure(r) for r in results)


def each_ns(r):
    return r["ns"] / r["operations"]


def shown(value):
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def table(title, names, known, workers, cell, last=None):
    print(f"\n| {title} | " + " | ".join(f"{w}" for w in workers) + (" | 64 ÷ 2 |" if last else " |"))
    print("|---|" + "---:|" * (len(workers) + bool(last)))
    for n in names:
        ratio = f" {last(n)} |" if last else ""
        print(f"| {known[n][0]} | " + " | ".join(cell(n, w) for w in workers) + " |" + ratio)


def place_names(a, places):
    """{code: the functions it is in, innermost first, with lines}"""
    asked = [hex(p) for p in places]
    text = subprocess.run(["addr2line", "-e", program(a, "scale"), "-f", "-C", "-i", "-s", "-a", *asked],
                          capture_output=True, text=True).stdout
    found, at = {}, None
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        if lines[i].startswith("0x"):
            at = int(lines[i], 16)
            found[at] = []
            i += 1
        else:
            function = lines[i].split("(")[0].split("::")[-1]
            if not lines[i + 1].startswith(("model_atomic", "traces", "atomic.hpp", "simulated_thread")):
                found[at].append(f"{lines[i + 1].split(' ')[0]} {function}")
            i += 2
    return found


def where(known, code):
    return " < ".join(known.get(code - 1, [])[:3]) or "?"


def print_places(a, names, found, workers):
    ends = [min(w for w in workers if w > 1), max(workers)]
    for n in names:
        lines = found[n, ends[1]][0]["lines"][:a.lines]
        codes = {code for w in ends for r in found[n, w] for code, _ in r["places"]} | {c for l in lines for c, _ in l[2]}
        known = place_names(a, [code - 1 for code in codes])  # the call returns behind the access
        places = {}
        for i, w in enumerate(ends):
            for r in found[n, w]:
                for code, each in r["places"]:
                    places.setdefault(where(known, code), [0, 0])[i] += each / len(found[n, w])
        print(f"\n{n}: transfers an operation, {ends[0]} and {ends[1]} workers, by place in the code")
        for place, (few, many) in sorted(places.items(), key=lambda x: -(x[1][1]))[:a.lines]:
            print(f"  {few:8.4f} {many:8.4f}  {place}")
        print(f"{n}: transfers an operation, {ends[1]} workers, by line of memory, and who waits for it")
        for line, each, by in lines:
            print(f"  {each:8.4f}  {line * 64:#x}")
            for code, of_it in by[:4]:
                print(f"    {of_it:8.4f}  {where(known, code)}")


def main():
    parser, a = arguments()
    known = workloads(a)
    if a.list:
        for name, (what, operation) in known.items():
            print(f"{name:12} {what}; an operation is a {operation}")
        return
    names = a.workload or list(known)
    for name in names:
        if name not in known:
            parser.error(f"no workload '{name}'; there are: {', '.join(known)}")
    try:
        workers = [int(w) for w in a.workers.split(",")]
    except ValueError:
        parser.error("--workers takes numbers, e.g. 2,64")
    if not all(1 <= w <= 80 for w in workers):
        parser.error("--workers takes numbers from 1 to 80")
    found = simulate(a, names, workers)
    get = lambda n, w, f: shown(median(found[n, w], f))
    def growth(n):
        if (n, 2) not in found or (n, 64) not in found:
            return ""
        few, many = (median(found[n, w], lambda r: r["transfers"]) for w in (2, 64))
        return f"{many / few:.2f}" if few > 0 else ""
    table("operations, millions a second; workers:", names, known, workers, lambda n, w: get(n, w, lambda r: 1e3 / each_ns(r)))
    table("cache lines that moved, an operation; workers:", names, known, workers, lambda n, w: get(n, w, lambda r: r["transfers"]), growth)
    table("RMWs an operation; workers:", names, known, workers, lambda n, w: get(n, w, lambda r: r["rmws"]))
    table("sleepers woken, a thousand operations; workers:", names, known, workers, lambda n, w: get(n, w, lambda r: 1e3 * r["wakes"]))
    table("membarriers, a thousand operations; workers:", names, known, workers, lambda n, w: get(n, w, lambda r: 1e3 * r["barriers"]))
    if not a.no_real:
        print("\n| ns an operation: simulated, real, simulated ÷ real; workers: | 1 | | | 2 | | |\n|---|" + "---:|" * 6)
        for n in names:
            cells = []
            for w in (1, 2):
                real = output([program(a, "scale-real"), n, str(w)])["each_ns"]
                simulated = median(found.get((n, w)) or simulate(a, [n], [w])[n, w], each_ns)
                cells += [shown(simulated), shown(real), f"{simulated / real:.2f}"]
            print(f"| {known[n][0]} | " + " | ".join(cells) + " |")
    if a.lines > 0 and max(workers) > 1:
        print_places(a, names, found, workers)


main()
