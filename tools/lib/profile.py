#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a build cost: seconds by target, and the dearest steps, as ninja has logged them. Run it with -j1 for times that add up.

  profile.py FOLDER
"""
import collections
import pathlib
import sys


def steps(folder):
    """{output: seconds}, the latest of each."""
    last = {}
    for line in (folder / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            start, end, _, output, _ = line.split("\t")
            last[output] = (int(end) - int(start)) / 1000
    return last


def target(output):
    return output.partition(".p/")[0] if ".p/" in output else "archives and programs"


def main():
    last = steps(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
    sums, counts = collections.Counter(), collections.Counter()
    for output, seconds in last.items():
        sums[target(output)] += seconds
        counts[target(output)] += 1
    print(f"{sum(sums.values()):8.1f} s  {len(last)} steps")
    for name, seconds in sums.most_common(20):
        print(f"{seconds:8.1f} s  {name} ({counts[name]})")
    print("the dearest steps")
    for output, seconds in collections.Counter(last).most_common(15):
        print(f"{seconds:8.1f} s  {output}")


if __name__ == "__main__":
    main()
