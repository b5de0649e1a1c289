#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compiles and runs every C++ example of the documentation.

A block with a main() is a program. Any other block is the body of a fiber: it is put into run(). A ```text block
right after it is what it must print. The library must have been built into the folder given.

An example must print that whoever is faster: it is run as it stands, and then by several numbers of workers under chaos,
each time with another seed (tests/support/chaos_from_environment.cpp).
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

TOP = pathlib.Path(__file__).resolve().parents[2]
WRAPPED = ["_ZN5ramie2v015default_workersEv", "_ZN5ramie2v07runtimeC1ERKNS0_7optionsE"]
CXX = os.environ.get("CXX", "g++").split()
PAGES = ["README.md", "docs/channels.md", "docs/files-and-processes.md", "docs/net.md", "docs/nurseries.md", "docs/stacks.md", "docs/streams.md", "docs/sync.md",
         "docs/testing.md", "docs/time-and-blocking.md"]
OPTIONS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread",
           *(f"-I{TOP / room}" for room in ("include", *(f"{room}/include" for room in ("runtime", "nursery", "channel", "sync", "io"))))]
BLOCK = re.compile(r"^```cpp\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.S | re.M)
USUAL = "#include <array>\n#include <atomic>\n#include <chrono>\n#include <cstdio>\n#include <memory>\n#include <mutex>\n#include <optional>\n#include <shared_mutex>\n#include <span>\n#include <stdexcept>\n#include <string>\n#include <system_error>\n#include <thread>\n" \
        "#include <unistd.h>\n#include <vector>\n#include <ramie/ramie.hpp>\nusing namespace std::chrono_literals;\n"

Example = collections.namedtuple("Example", "page line block expected")


# What all have in common, compiled once: chaos, and the headers of all that are no programs. A compiler that doesn't
# take the .gch takes the header.
def precompile(folder):
    header = pathlib.Path(folder) / "usual.hpp"
    header.write_text(USUAL)
    subprocess.run(CXX + OPTIONS + ["-x", "c++-header", str(header), "-o", f"{header}.gch"], capture_output=True)
    chaos = TOP / "tests" / "support" / "chaos_from_environment.cpp"
    subprocess.run(CXX + OPTIONS + ["-c", str(chaos), "-o", f"{folder}/chaos.o"], check=True)


def is_program(block):
    return "int main(" in block


def one_program(examples):
    """The examples as functions of one program, whose argument says which one to call."""
    parts = ["#include <usual.hpp>\n#include <cstdlib>\n"]
    for i, example in enumerate(examples):
        parts.append(f"static void example_{i}() {{\n  ramie::run([] {{\n#line {example.line + 1} \"{example.page}\"\n{example.block}  }});\n}}\n")
    parts.append("int main(int, char** argv) {\n  switch (std::atoi(argv[1])) {\n")
    parts += [f"    case {i}: example_{i}(); break;\n" for i in range(len(examples))]
    return "".join(parts) + "  }\n}\n"


def compiled(text, a, usual, binary):
    """What the compiler has to say if it fails."""
    libraries = [str(a.build / "libramie.a"), "-lboost_context"]
    if pathlib.Path("/usr/include/liburing.h").exists():
        libraries.append("-luring")
    command = CXX + OPTIONS + [f"-I{usual}", "-x", "c++", "-", "-x", "none", "-o", str(binary), f"{usual}/chaos.o",
                               *(f"-Wl,--wrap={name}" for name in WRAPPED), *libraries]
    built = subprocess.run(command, input=text, capture_output=True, text=True)
    return None if built.returncode == 0 else "does not compile\n" + built.stderr[-2000:]


def schedules(count):
    """The environments to run in: as it stands, and under chaos. Most often by one worker: chaos decides most there."""
    yield {}
    for seed in range(1, count + 1):
        yield {"RAMIE_EXAMPLE_CHAOS": str(seed), "RAMIE_EXAMPLE_WORKERS": str((1, 2, 1, 4)[seed % 4])}


def wrong_once(command, expected, schedule):
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **schedule})
    except subprocess.TimeoutExpired:
        return "does not end"
    if ran.returncode != 0:
        return f"ended with {ran.returncode}\n{ran.stderr[-2000:]}"
    if expected is not None and ran.stdout != expected:
        return f"printed\n{ran.stdout}instead of\n{expected}"
    return None


def wrong(command, expected, seeds):
    for schedule in schedules(seeds):
        problem = wrong_once([str(c) for c in command], expected, schedule)
        if problem is not None:
            return " ".join([*(f"{name}={value}" for name, value in schedule.items()), problem])
    return None


def check(examples, a, usual):
    """(example, what is wrong with it or None) of some that are compiled together; alone if that fails, to see which it is."""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "example"
        alone = len(examples) == 1
        problem = compiled(examples[0].block if is_program(examples[0].block) else one_program(examples), a, usual, binary)
        if problem is None:
            return [(e, wrong([binary, i], e.expected, a.thorough)) for i, e in enumerate(examples)]
        if alone:
            return [(examples[0], problem)]
    return [result for e in examples for result in check([e], a, usual)]


def read_examples():
    for page in PAGES:
        text = (TOP / page).read_text()
        for found in BLOCK.finditer(text):
            yield Example(page, text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--thorough", type=int, default=40, metavar="N", help="run each under chaos with N seeds")
    parser.add_argument("--only", default="", metavar="PAGE[:LINE]", help="only the examples of that place")
    a = parser.parse_args()
    a.build = a.build.resolve()
    return a


def main():
    a = arguments()
    examples = [e for e in read_examples() if a.only in ("", e.page, f"{e.page}:{e.line}")]
    jobs = os.cpu_count() or 1
    bodies = [e for e in examples if not is_program(e.block)]
    groups = [[e] for e in examples if is_program(e.block)] + [g for g in (bodies[i::2 * jobs] for i in range(2 * jobs)) if g]
    bad = 0
    with tempfile.TemporaryDirectory() as usual, concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        precompile(usual)
        for results in pool.map(lambda group: check(group, a, usual), groups):
            for e, problem in results:
                print(("ok      " if problem is None else "FAILED  ") + f"{e.page}:{e.line}" + (f" {problem}" if problem else ""), flush=True)
                bad += problem is not None
    return 1 if bad or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
