# SPDX-License-Identifier: BSL-1.0
"""Shows that the toolchains which the user of tools/bench names are found, and that a wrong path is told with what to
do.

    self_test.py    a line for each case: "ok self-test: …" or "FAILED self-test: …"; the exit code says whether all hold

No Go, no cargo and no build are needed: a script answers like Go, and a folder is laid out like a registry of crates.
"""
import os
import subprocess
import sys
import tempfile

import toolchains

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def make(path, text="", mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def make_go(root, release="go1.26.1", library=True):
    """A GOROOT whose go answers as Go does."""
    answers = f'case $1 in version) echo "go version {release} linux/amd64" ;; env) echo "{root}" ;; esac'
    if library:
        make(os.path.join(root, "src", "runtime", "proc.go"))
    return make(os.path.join(root, "bin", "go"), f"#!/bin/sh\n{answers}\n", 0o755)


def make_crates(folder, names=("tokio-1.53.2", "async-channel-2.5.0", "libc-0.2.186"), checksum=True):
    for name in names:
        make(os.path.join(folder, name, "Cargo.toml"))
        if checksum:
            make(os.path.join(folder, name, ".cargo-checksum.json"))
    return folder


def told(find, path, *parts):
    """Whether `find` refuses the path with a message that names it and has all parts."""
    try:
        find(path)
    except ValueError as e:
        return all(part in str(e) for part in (path, *parts))
    return False


def found_go(at):
    root, unpacked = at + "/go", at + "/package"
    tool = make_go(root)
    newest = make_go(unpacked + "/usr/lib/go-1.27", "go1.27.0")
    make_go(unpacked + "/usr/lib/go-1.9", "go1.9.7")
    what = "--go takes a go binary"
    yield "a go binary is taken", toolchains.go_at(tool) == tool
    yield "a GOROOT is taken", toolchains.go_at(root) == tool
    yield "of an unpacked package, the newest Go is taken", toolchains.go_at(unpacked) == newest
    yield "a path that leads nowhere is told", told(toolchains.go_at, at + "/nowhere", "there is no", what)
    yield "a folder without Go is told", told(toolchains.go_at, make_crates(at + "/crates"), "no go in", what)
    text, other = make(at + "/text"), make(at + "/other", "#!/bin/sh\n", 0o755)
    yield "a file that is no program is told", told(toolchains.go_at, text, "can't be executed", what)
    yield "a program that is not Go is told", told(toolchains.go_at, other, "version", what)
    bare = make_go(at + "/bare", library=False)
    yield "Go without its library is told", told(toolchains.go_at, bare, "golang-1.N-src")
    lines = {"go1.26.1": "1.26.1", "go1.27rc2": "1.27rc2", "go1.19.8": "1.19"}
    asked = {r: toolchains.Toolchains(go=make_go(f"{at}/as/{r}", r)).go_mod().split()[-1] for r in lines}
    yield "go.mod asks for the release of the tool", asked == lines


def found_crates(at):
    what = "--tokio-registry takes a folder"
    versioned = make_crates(at + "/registry")
    vendored = make_crates(at + "/vendor", ("tokio", "async-channel", "libc"))
    unpacked = make_crates(at + "/package/usr/share/cargo/registry")
    others = make_crates(at + "/others", ("tokio-macros-2.7.2", "async-channel", "libc"))
    cache = make_crates(at + "/cache", checksum=False)
    yield "a registry with versions is taken", toolchains.crates_at(versioned) == versioned
    yield "a folder of cargo vendor is taken", toolchains.crates_at(vendored) == vendored
    yield "an unpacked package is taken", toolchains.crates_at(at + "/package") == unpacked
    yield "a folder that is not there is told", told(toolchains.crates_at, at + "/nowhere", "there is no folder", what)
    yield "a folder without Tokio is told", told(toolchains.crates_at, others, "no crate tokio", what)
    unusable = told(toolchains.crates_at, cache, ".cargo-checksum.json", "cargo vendor")
    yield "crates that cargo can't use are told", unusable
    odd = toolchains.Toolchains(crates=make_crates(at + '/a "b" \\c')).cargo_config()
    yield "cargo is told the folder whatever its name", odd.endswith(f'directory = "{at}/a \\"b\\" \\\\c"\n')


def command_line(at):
    def started(*command):
        env = dict(os.environ, RAMIE_BENCH_FROM=at)
        return subprocess.run(command, capture_output=True, text=True, cwd=at, env=env, check=False)

    def driver(*a):
        return started(sys.executable, "-B", os.path.dirname(os.path.abspath(__file__)), "--plan", *a)
    make_go(at + "/go")
    make_crates(at + "/registry")
    plan = driver("--go", "go", "--tokio-registry", "registry")
    yield "a relative path is the caller's; the plan names what needs no package", 'named="go tokio"' in plan.stdout
    yield "without the options, nothing is named", 'named=""' in driver().stdout
    left_out = driver("--go", "go", "--peers", "tbb")
    refused = left_out.returncode == 2 and "--peers leaves go out" in left_out.stderr
    yield "a toolchain for a peer that is left out is told", refused
    bench = started(os.path.join(TOP, "tools", "bench"), "--go", "nowhere")
    stopped = bench.returncode == 2 and bench.stdout == "" and f"there is no {at}/nowhere; --go takes" in bench.stderr
    yield "tools/bench ends with the message before it does anything", stopped


def main():
    holding = []
    with tempfile.TemporaryDirectory() as folder:
        for cases in (found_go, found_crates, command_line):
            for title, holds in cases(os.path.join(os.path.realpath(folder), cases.__name__)):
                print("ok" if holds else "FAILED", "self-test:", title)
                holding.append(holds)
    return all(holding)


if __name__ == "__main__":
    sys.exit(not main())
