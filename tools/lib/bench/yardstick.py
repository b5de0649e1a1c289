# SPDX-License-Identifier: BSL-1.0
"""The programs of the public table of fork-join libraries (bench/yardstick), interleaved: ramie, oneTBB, and any others that
somebody has built.

A program is run as the driver of that table does: PROGRAM [SIZE] THREADS; it prints YAML with a line `duration: N us`.
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILT = os.path.join(TOP, "build-bench", "bench")
PROBLEMS = {"fib": "37", "skynet": "", "nqueens": "", "matmul": "2048", "channel": "", "io_socket_st": ""}
LIMIT = 300  # seconds for one run


def arguments():
    parser = argparse.ArgumentParser(prog="tools/bench yardstick", description=__doc__.splitlines()[0])
    parser.add_argument("problem", nargs="*", help=f"which of: {', '.join(PROBLEMS)} (default: all)")
    parser.add_argument("--threads", default="1,2", help="e.g. 1,2 (default)")
    parser.add_argument("--runs", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--with", dest="others", action="append", default=[], metavar="NAME=FOLDER",
                        help="another library's programs, each named like its problem; may be given several times")
    a = parser.parse_args()
    for name in a.problem:
        if name not in PROBLEMS:
            parser.error(f"no problem '{name}'; there are: {', '.join(PROBLEMS)}")
    if not re.fullmatch(r"\d+(,\d+)*", a.threads) or a.runs < 1:
        parser.error("--threads takes numbers, e.g. 1,2; --runs at least 1")
    for other in a.others:
        if not os.path.isdir(other.partition("=")[2]):
            parser.error(f"--with {other}: NAME=FOLDER, and the folder must be there")
    return a


def programs(problem, others):
    """{library: program} of those that have it."""
    found = {library: os.path.join(BUILT, f"yardstick-{library}-{problem}") for library in ("ramie", "tbb")}
    found.update({name: os.path.join(folder, problem) for name, _, folder in (o.partition("=") for o in others)})
    return {library: program for library, program in found.items() if os.access(program, os.X_OK)}


def milliseconds(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    found = re.search(r"duration: (\d+) us", done.stdout)
    if done.returncode != 0 or found is None or re.search(r"FAIL|ERROR|error:", done.stdout):
        raise ValueError((done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1])
    return int(found.group(1)) / 1000


def main():
    a = arguments()
    cells = {}  # (problem, threads, library): (command, [milliseconds])
    for problem in a.problem or PROBLEMS:
        for threads in ["1"] if problem == "io_socket_st" else a.threads.split(","):
            size = [PROBLEMS[problem]] if PROBLEMS[problem] else []
            for library, program in programs(problem, a.others).items():
                command = [program] if problem == "io_socket_st" else [program, *size, threads]
                cells[problem, threads, library] = (command, [])
    if not any(library == "ramie" for _, _, library in cells):
        sys.exit("tools/bench yardstick: ramie's programs are not built")
    failed = {}
    for _ in range(a.runs):
        for key in random.sample(list(cells), len(cells)):
            try:
                if key not in failed:
                    cells[key][1].append(milliseconds(cells[key][0]))
            except (ValueError, subprocess.TimeoutExpired) as e:
                failed[key] = str(e)
    libraries = list(dict.fromkeys(library for _, _, library in cells))
    print(f"\n{'ms, medians of ' + str(a.runs):24}{'threads':>8}" + "".join(f"{name:>12}" for name in libraries) + "   ramie ÷ best other")
    for problem, threads in dict.fromkeys((p, t) for p, t, _ in cells):
        medians = {name: statistics.median(cells[problem, threads, name][1])
                   for name in libraries if cells.get((problem, threads, name), (0, []))[1]}
        others = [ms for name, ms in medians.items() if name != "ramie"]
        ratio = f"{medians['ramie'] / min(others):>21.2f}" if others and "ramie" in medians else ""
        title = f"{problem}({PROBLEMS[problem]})" if PROBLEMS[problem] else problem
        print(f"{title:24}{threads:>8}" + "".join(f"{medians[n]:>12.0f}" if n in medians else f"{'':>12}" for n in libraries) + ratio)
    for (problem, threads, library), why in failed.items():
        print(f"{library} {problem} {threads}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
