# SPDX-License-Identifier: BSL-1.0
"""What Go's and Tokio's programs are built with: Debian's packages, or newer ones that the user names.

A path that the user gives is judged before anything is installed, built or measured: what is wrong with it, and what
would be right, is the message of a ValueError.
"""
import argparse
import glob
import json
import os
import re
import shutil

from machine import output

CRATES = "/usr/share/cargo/registry"  # where Debian's librust-…-dev packages put their sources


def named_path(text):
    """A path as the user means it: tools/bench goes to the top of its tree before it starts the driver."""
    return os.path.abspath(os.path.join(os.environ.get("RAMIE_BENCH_FROM", ""), os.path.expanduser(text)))


def number_of(go):
    """The release of a Go tool as a list of numbers; an empty one if it is none."""
    found = re.match(r"go version (?:devel )?go(\d+)\.(\d+)(?:\.(\d+))?", output(go, "version"))
    return [int(n or 0) for n in found.groups()] if found else []


def go_at(path):
    """The go binary that `path` is, or that is in the GOROOT or in the unpacked Debian package that `path` is."""
    what = ("--go takes a go binary, a GOROOT (a folder with bin/go), or a folder into which Debian's golang-1.N-go "
            "and golang-1.N-src were unpacked (dpkg -x PACKAGE.deb FOLDER)")
    if not os.path.exists(path):
        raise ValueError(f"there is no {path}; {what}")
    found = glob.glob(os.path.join(glob.escape(path), "usr/lib/go-*/bin/go"))
    unpacked = max((g for g in found if os.access(g, os.X_OK)), key=number_of, default="")
    places = [os.path.join(path, "bin", "go"), unpacked] if os.path.isdir(path) else [path]
    tool = next((p for p in places if os.access(p, os.X_OK)), None)
    if tool is None:
        raise ValueError(f"no go in {path}; {what}" if os.path.isdir(path) else f"{path} can't be executed; {what}")
    if not number_of(tool):
        raise ValueError(f"'{tool} version' does not answer as Go does; {what}")
    root = output(tool, "env", "GOROOT")
    if not os.path.isdir(os.path.join(root, "src", "runtime")):
        raise ValueError(f"{tool} has no standard library in {root}/src: unpack golang-1.N-src of the same release "
                         "into the same folder, or unset GOROOT")
    return tool


def crates_at(path):
    """The folder of crates that `path` is, or that is in the unpacked Debian packages that `path` is."""
    what = ("--tokio-registry takes a folder with a folder for each crate, as `cargo vendor` makes it, or one into "
            "which Debian's librust-tokio-dev, librust-async-channel-dev and what they depend on were unpacked "
            "(dpkg -x PACKAGE.deb FOLDER)")
    if not os.path.isdir(path):
        raise ValueError(f"there is no folder {path}; {what}")
    unpacked = os.path.join(path, CRATES.lstrip("/"))
    folder = unpacked if os.path.isdir(unpacked) else path
    for crate in ("tokio", "async-channel", "libc"):
        if not has_crate(folder, crate):
            raise ValueError(f"no crate {crate} in {folder}; {what}")
        if not has_crate(folder, crate, ".cargo-checksum.json"):
            raise ValueError(f"the crate {crate} in {folder} has no .cargo-checksum.json, so cargo can't build from it "
                             f"(its own cache in ~/.cargo/registry is such a folder); {what}")
    return folder


def has_crate(folder, crate, file="Cargo.toml"):
    """Whether `folder` has a crate with that file, in a folder that is named with or without the crate's version."""
    here = glob.escape(os.path.join(folder, crate))
    return bool(glob.glob(os.path.join(here, file)) or glob.glob(os.path.join(here + "-[0-9]*", file)))


class Toolchains:
    """`go`: a go binary, `crates`: a folder of crates; None: Debian's."""

    def __init__(self, go=None, crates=None):
        self.go, self.crates = go, crates

    def named(self):
        """The peers whose toolchain the user has named: no package is needed for them; they may not be left out."""
        return [peer for peer, own in (("go", self.go), ("tokio", self.crates)) if own is not None]

    def go_tool(self):
        """The newest that is here."""
        found = [g for g in [shutil.which("go"), *glob.glob("/usr/lib/go-*/bin/go")] if g]
        return self.go or max(found, key=number_of, default=None)

    def crates_folder(self):
        return self.crates or (CRATES if has_crate(CRATES, "tokio") else None)

    def go_mod(self):
        """A go.mod that asks for the tool's own release. By the one in the tree, a newer Go would behave as Go 1.19 did,
        e.g. its timers."""
        release = number_of(self.go_tool())
        found = re.search(r"go(\d+\.\d+(?:\.\d+|rc\d+|beta\d+)?)", output(self.go_tool(), "version"))
        return f"module compare\n\ngo {found.group(1) if release >= [1, 21, 0] else '.'.join(map(str, release[:2]))}\n"

    def cargo_config(self):
        """Cargo's configuration: the crates are there and nowhere else."""
        folder = json.dumps(self.crates_folder(), ensure_ascii=False)
        return f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = {folder}\n'


def cargo_tool():
    ours = os.path.expanduser("~/.cargo/bin/cargo")
    return shutil.which("cargo") or (ours if os.access(ours, os.X_OK) else None)


def add_arguments(parser):
    def checked(find):
        def judge(text):
            try:
                return find(named_path(text))
            except ValueError as e:
                raise argparse.ArgumentTypeError(str(e)) from None
        return judge
    parser.add_argument("--go", type=checked(go_at), metavar="PATH",
                        help="another Go than Debian's: a go binary, a GOROOT, or a folder with unpacked packages of "
                        "Debian")
    parser.add_argument("--tokio-registry", type=checked(crates_at), metavar="DIR",
                        help="another Tokio than Debian's: a folder of crates (cargo vendor), or one with unpacked "
                        "packages of Debian; the first cargo of PATH builds it")
