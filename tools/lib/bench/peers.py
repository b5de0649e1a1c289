# SPDX-License-Identifier: BSL-1.0
"""The programs: where they are, how those that meson does not know are built, which versions they are."""
import os
import shutil
import subprocess
import sys

from machine import first_match, output
from toolchains import cargo_tool

# name: what people call it
ALL = {
    "ramie": "ramie",
    "boost": "Boost.Fiber",
    "go": "Go",
    "tokio": "Tokio",
    "tbb": "oneTBB",
    "threads": "threads",
    "asio": "Boost.Asio",
    "nginx": "nginx",
    "fio": "fio",
    "epoll": "raw epoll",
    "uring": "raw io_uring",
    "before": "ramie before",
}
# Nothing that somebody could use instead of ramie: what it costs without any, or what it cost before a change.
FLOORS = ("threads", "epoll", "uring", "before")


def skip(peer, why):
    print(f"    without {ALL[peer]}: {why}")


def compile_with(peer, program, command, tools, **how):
    if not os.path.exists(program):
        print(f"    for {ALL[peer]}, too", flush=True)  # half a minute the first time
    done = subprocess.run(command, capture_output=True, text=True, **how)
    if done.returncode != 0:
        why = "it did not compile:\n" + "\n".join(done.stderr.splitlines()[-15:])
        if peer in tools.named():
            sys.exit(f"tools/bench: {ALL[peer]} with the toolchain that you named: {why}")
        skip(peer, why)
    return done.returncode == 0


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def build_go(top, folder, tools):
    tool = tools.go_tool()
    if tool is None:
        return skip("go", "no go here")
    program, module = os.path.join(folder, "compare-go"), os.path.join(folder, "compare-go.mod")
    write(module, tools.go_mod())
    env = dict(os.environ, GOPROXY="off", GOFLAGS="", GOTOOLCHAIN="local", CGO_ENABLED="1", CGO_CFLAGS="-O2",
               GOCACHE=os.path.join(folder, "go-cache"))
    command = [tool, "build", "-modfile", module, "-o", program, "."]
    source = os.path.join(top, "bench", "compare", "go")
    return program if compile_with("go", program, command, tools, cwd=source, env=env) else None


def build_tokio(top, folder, tools):
    tool = cargo_tool()
    if tool is None or tools.crates_folder() is None:
        return skip("tokio", "no cargo here" if tool is None else "no librust-tokio-dev here")
    room = os.path.join(folder, "tokio")  # a package of links, so that cargo writes nothing into the tree
    os.makedirs(os.path.join(room, ".cargo"), exist_ok=True)
    for name in ("Cargo.toml", "src"):
        link = os.path.join(room, name)
        if os.path.lexists(link):
            os.remove(link)
        os.symlink(os.path.join(top, "bench", "compare", "tokio", name), link)
    if os.path.exists(lock_of_tokio(folder)):
        os.remove(lock_of_tokio(folder))  # it names the versions of the crates that were there the last time
    write(os.path.join(room, ".cargo", "config.toml"), tools.cargo_config())
    env = dict(os.environ, CARGO_TARGET_DIR=os.path.join(room, "target"), RUSTFLAGS="")
    program = os.path.join(env["CARGO_TARGET_DIR"], "release", "compare-tokio")
    command = [tool, "build", "--release", "--offline", "--quiet"]
    return program if compile_with("tokio", program, command, tools, cwd=room, env=env) else None


def lock_of_tokio(folder):
    """Cargo's record of the versions that it has chosen."""
    return os.path.join(folder, "tokio", "Cargo.lock")


def nginx_tool(folder):
    """Debian's package, installed or, as that would start a server, only unpacked."""
    return shutil.which("nginx", path=os.path.join(folder, "nginx", "usr", "sbin") + ":/usr/sbin:" + os.defpath)


def build_script(top, name, tool):
    """A peer that is a tool; a script makes it one of the programs."""
    if tool is None or subprocess.run([tool, "-v"], capture_output=True, check=False).returncode != 0:
        return skip(name, "it is not here")
    return os.path.join(top, "bench", "compare", name + ".py")


def ramie_of(checkout):
    """ramie's own program in a checkout in which tools/bench was run."""
    return os.path.join(checkout, "build-bench", "bench", "compare-ramie")


def build(top, wanted, against, tools):
    """Builds what can be built. Returns {name: program}, the floors among them. `against`: a checkout, for `before`;
    `tools`: the toolchains of Go and Tokio."""
    folder = os.path.join(top, "build-bench")
    programs = {}
    for name in ["floors", *wanted]:
        if name == "go":
            program = build_go(top, folder, tools)
        elif name == "tokio":
            program = build_tokio(top, folder, tools)
        elif name == "nginx":
            os.environ["COMPARE_NGINX"] = nginx_tool(folder) or ""
            program = build_script(top, name, nginx_tool(folder))
        elif name == "before":
            program = ramie_of(against)
        elif name == "fio":
            program = build_script(top, name, shutil.which("fio"))
        else:
            program = os.path.join(folder, "bench", "compare-" + name)
            if not os.path.exists(program):
                program = skip(name, "its library is not here")
        if program is not None:
            programs[name] = program
    return programs


def http_example(program):
    """ramie's HTTP server, beside its program."""
    return os.path.join(os.path.dirname(os.path.dirname(program)), "examples", "http_server")


def server(program, workload, workers):
    """The command that serves."""
    if (os.path.basename(program), workload) == ("compare-ramie", "http"):
        return [http_example(program), "--address", "127.0.0.1:0", "--workers", str(workers), os.environ["COMPARE_FILES"]]
    return [program, workload, str(workers)]


def version(top, peer, against, tools):
    if peer == "ramie":
        return first_match(os.path.join(top, "meson.build"), r"version: '([^']*)'")
    if peer in ("boost", "asio"):
        return first_match("/usr/include/boost/version.hpp", r'BOOST_LIB_VERSION "(.*)"').replace("_", ".")
    if peer == "go":
        return output(tools.go_tool(), "version").removeprefix("go version ").split(" linux")[0].removeprefix("go")
    if peer == "tokio":
        rust = output(cargo_tool(), "--version").split(" ")
        return first_match(lock_of_tokio(os.path.join(top, "build-bench")), r'name = "tokio"\nversion = "(.*)"') + f" (cargo {rust[1]})"
    if peer == "tbb":
        header = "/usr/include/oneapi/tbb/version.h"
        return ".".join(first_match(header, rf"define TBB_VERSION_{part} (\d+)") for part in ("MAJOR", "MINOR"))
    if peer == "nginx":
        done = subprocess.run([nginx_tool(os.path.join(top, "build-bench")), "-v"], capture_output=True, text=True, check=False)
        return done.stderr.strip().rpartition("/")[2]
    if peer == "fio":
        return output("fio", "--version").removeprefix("fio-")
    if peer == "uring":
        return "liburing " + output("pkg-config", "--modversion", "liburing")
    if peer == "before":
        return output("git", "-C", against, "describe", "--always", "--dirty")
    return output("getconf", "GNU_LIBC_VERSION") if peer == "threads" else None
