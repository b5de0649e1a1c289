#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks spec/memory-orders.md: every memory order that the explorer's scenarios come by has a row for each weaker one,
and the scenario named there notices. With RAMIE_TEST_SIZE=large also that no scenario notices what is kept for another
reason. The argument is a build folder (default build)."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
TABLE = TOP / "spec" / "memory-orders.md"
ROW = re.compile(r"^\| `([^`]+)` \| (\w+) \| (?:`(\w+)`|(.+)) \|$")


def explorer(build, *arguments, asked=""):
    # Its own size is the small one, whatever ours is.
    quiet = {k: v for k, v in os.environ.items() if k != "RAMIE_TEST_SIZE"}
    return subprocess.run([build / "tests" / "ramie-explore", *arguments], input=asked, capture_output=True, text=True, env=quiet)


def documented():
    rows = {}
    for line in TABLE.read_text().splitlines():
        if match := ROW.match(line):
            rows[match[1], match[2]] = (match[3], match[4])
    return rows


# One process for many rows: it has to find the sites first.
def weaken(build, rows):
    asked = "\n".join(f"{site} -> {order} @ {scenario or '*'}" for (site, order), (scenario, _) in rows)
    answers = explorer(build, "--weaken", asked=asked).stdout.splitlines()
    for ((site, order), (scenario, reason)), answer in zip(rows, answers + ["died"] * (len(rows) - len(answers))):
        noticed = answer.startswith("noticed")
        yield noticed == (scenario is not None), f"{site} -> {order}: {answer}" + ("" if scenario else f" (kept: {reason})")


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    build = pathlib.Path(arguments[0] if arguments else TOP / "build").resolve()
    rows = documented()
    there = {tuple(line.rsplit(" -> ", 1)) for line in explorer(build, "--sites").stdout.splitlines()}
    bad = 0
    for site, order in sorted(there ^ rows.keys()):
        print(f"FAILED {site} -> {order}: " + ("has no row" if (site, order) in there else "is no longer there"))
        bad += 1
    large = os.environ.get("RAMIE_TEST_SIZE") == "large"
    asked = [row for row in rows.items() if large or row[1][0]]
    jobs = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for results in pool.map(lambda i: list(weaken(build, asked[i::jobs])), range(jobs)):
            for good, text in results:
                print("ok" if good else "FAILED", text, flush=True)
                bad += not good
    print(f"{len(rows)} weaker orders, {sum(1 for s, _ in rows.values() if s)} noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
