#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Public headers compile alone, with nothing but what is installed; rooms include only what they may; likely mistakes
are told by a sentence.

--quick: alone with one compiler, since what a header forgets to include is the standard library's and not the
compiler's; with the others all of them together.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from mistakes import BEFORE, IN_A_FUNCTION, MISTAKES, MOST_ERRORS, NO_MISTAKE

TOP = pathlib.Path(__file__).resolve().parents[2]
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++", "-"]
COMPILERS = [c for c in ("g++", "clang++", "clang++-19") if shutil.which(c)]

# Which rooms a room may see, itself included: the only directions there are.
SEES = {
    "platform": ["platform"],
    "runtime": ["runtime", "platform"],
    "nursery": ["nursery", "runtime", "platform"],
    "channel": ["channel", "runtime", "platform"],
    "sync": ["sync", "runtime", "platform"],
    "io": ["io", "runtime", "platform"],
}
# A header of each room, to try and reach it by: one for the rooms above, where there is any above.
DOOR = {
    "platform": "ramie/platform/cpu.hpp",
    "runtime": "ramie/runtime/wait.hpp",
    "nursery": "ramie/nursery.hpp",
    "channel": "ramie/channel.hpp",
    "sync": "ramie/mutex.hpp",
    "io": "ramie/tcp.hpp",
}


def compiles(compiler, text, folders):
    includes = [f"-I{TOP / f}" for f in folders if (TOP / f).is_dir()]
    return subprocess.run([compiler, *includes, *STRICT], input=text, text=True, capture_output=True)


def folders_of(rooms):
    return [f"{room}/{kind}" for room in rooms for kind in ("include", "internal")]


def report(good, name, detail=""):
    print(("ok      " if good else "FAILED  ") + name + (f"\n{detail[-1500:]}" if not good else ""), flush=True)
    return good


def first_error(text):
    """The line of it. What it was instantiated from comes before (g++) or after (clang++)."""
    return next((line for line in text.splitlines() if " error: " in line), "no error")


def check_mistakes(pool, public, compilers):
    """The headers are parsed once for each compiler, else this would take minutes."""
    good = True
    includes = [f"-I{TOP / f}" for f in public]
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder) / "before.hpp"
        header.write_text(BEFORE)
        use = {}
        for compiler in compilers:
            parsed = f"{header}.{'gch' if compiler == 'g++' else 'pch'}"
            subprocess.run([compiler, *includes, *STRICT[:-4], "-x", "c++-header", str(header), "-o", parsed], check=True)
            use[compiler] = ["-include", str(header)] if compiler == "g++" else ["-include-pch", parsed]
        tries = [(compiler, *mistake) for mistake in MISTAKES + [NO_MISTAKE] for compiler in compilers]
        command = lambda t: [t[0], *includes, *use[t[0]], *STRICT]
        run = lambda t: subprocess.run(command(t), input=IN_A_FUNCTION % t[2], text=True, capture_output=True)
        for (compiler, name, _, sentence), result in zip(tries, pool.map(run, tries)):
            told = sentence in first_error(result.stderr) and (result.returncode == 0) == (sentence == "no error")
            told &= result.stderr.count(" error: ") <= MOST_ERRORS
            good &= report(told, f"{compiler}: {name}", result.stderr[:1500])
    return good


def main():
    all_good = bool(COMPILERS)
    public = [f"{room}/include" for room in SEES]
    headers = sorted(p for room in SEES for p in (TOP / room / "include").glob("ramie/**/*.hpp"))
    names = [h.relative_to(h.parents[1] if h.parent.name == "ramie" else h.parents[2]) for h in headers]
    # Each header of the API with every compiler, what lies inside them with one.
    quick = "--quick" in sys.argv
    tries = [(compiler, [name]) for name in names for compiler in (COMPILERS[-1:] if quick or "detail" in name.parts else COMPILERS)]
    if quick:
        tries += [(compiler, names) for compiler in COMPILERS[:-1]]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = pool.map(lambda t: compiles(t[0], "".join(f"#include <{name}>\n" for name in t[1] * 2), public), tries)
        for (compiler, tried), result in zip(tries, results):
            what = f"<{tried[0]}> stands alone" if len(tried) == 1 else f"all {len(tried)} headers, one after another"
            all_good &= report(result.returncode == 0, f"{compiler}: {what}", result.stderr)
        all_good &= check_mistakes(pool, [*public, "include"], COMPILERS[:1 if quick else 2])
    for room, seen in SEES.items():
        for other, door in DOOR.items():
            result = compiles(COMPILERS[0], f"#include <{door}>\n", folders_of(seen))
            if other in seen:
                all_good &= report(result.returncode == 0, f"{room} reaches {other}", result.stderr)
            else:
                all_good &= report(result.returncode != 0, f"{room} can't include {other}")
    # The build gives each room exactly these folders.
    for room, seen in SEES.items():
        text = (TOP / room / "meson.build").read_text()
        foreign = [r for r in SEES if r not in seen and re.search(rf"\b{r}_(room|include|internal|dep|sources)\b", text)]
        all_good &= report(not foreign, f"{room}/meson.build names no room above it", str(foreign))
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
