#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compiles and runs every C++ example of the documentation.

A block with a main() is a program. Any other block is the body of a fiber: it is put into run(). A ```text block
right after it is what it must print. The library must have been built into the folder given.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "build").resolve()
CXX = os.environ.get("CXX", "g++").split()
PAGES = ["README.md", "docs/channels.md", "docs/files-and-processes.md", "docs/net.md", "docs/nurseries.md", "docs/streams.md", "docs/sync.md",
         "docs/testing.md", "docs/time-and-blocking.md"]
OPTIONS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-pthread",
           *(f"-I{TOP / room}" for room in ("include", "runtime/include", "nursery/include", "channel/include"))]
BLOCK = re.compile(r"^```cpp\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.S | re.M)
USUAL = "#include <array>\n#include <atomic>\n#include <chrono>\n#include <cstdio>\n#include <memory>\n#include <mutex>\n#include <optional>\n#include <shared_mutex>\n#include <span>\n#include <stdexcept>\n#include <string>\n#include <system_error>\n#include <thread>\n" \
        "#include <unistd.h>\n#include <vector>\n#include <ramie/ramie.hpp>\nusing namespace std::chrono_literals;\n"


# The headers of all that are no programs, parsed once. A compiler that doesn't take the .gch takes the header.
def precompile(folder):
    header = pathlib.Path(folder) / "usual.hpp"
    header.write_text(USUAL)
    subprocess.run(CXX + OPTIONS + ["-x", "c++-header", str(header), "-o", f"{header}.gch"], capture_output=True)


def program(block):
    if "int main(" in block:
        return block
    return "#include <usual.hpp>\nint main() {\n  ramie::run([] {\n" + block + "  });\n}\n"


def check(example, usual):
    name, block, expected = example
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder) / "example.cpp", pathlib.Path(folder) / "example"
        source.write_text(program(block))
        command = CXX + OPTIONS + [f"-I{usual}", str(source), "-o", str(binary), str(BUILD / "libramie.a"), "-lboost_context", *(["-luring"] if pathlib.Path("/usr/include/liburing.h").exists() else [])]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            return name, "does not compile\n" + built.stderr[-2000:]
        try:
            ran = subprocess.run([str(binary)], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return name, "does not end"
        if ran.returncode != 0:
            return name, f"ended with {ran.returncode}\n{ran.stderr[-2000:]}"
        if expected is not None and ran.stdout != expected:
            return name, f"printed\n{ran.stdout}instead of\n{expected}"
        return name, None


def main():
    examples = []
    for page in PAGES:
        text = (TOP / page).read_text()
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            examples.append((f"{page}:{line}", found.group(1), found.group(2)))
    bad = 0
    with tempfile.TemporaryDirectory() as usual, concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        precompile(usual)
        for name, problem in pool.map(lambda example: check(example, usual), examples):
            print(("ok      " if problem is None else "FAILED  ") + name + (f" {problem}" if problem else ""), flush=True)
            bad += problem is not None
    return 1 if bad or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
