# SPDX-License-Identifier: BSL-1.0
"""What a run was measured on."""
import ctypes
import datetime
import os
import platform
import re
import resource
import signal
import subprocess


def first_match(path, pattern, default="unknown"):
    try:
        with open(path, encoding="utf-8") as f:
            found = re.search(pattern, f.read(), re.M)
            return found.group(1).strip() if found else default
    except OSError:
        return default


def output(*command, cwd=None):
    try:
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def available_gb():
    return int(first_match("/proc/meminfo", r"^MemAvailable:\s*(\d+)", "0")) / 2**20


class Neighbours:
    """How much of the machine's time went to somebody else between start and share(): processes that are not ours,
    and the host that ran other machines. Figures of a run with busy neighbours are not to be trusted."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        """Seconds of processor time: all there was, busy or stolen, ours."""
        fields = [int(n) for n in first_match("/proc/stat", r"^cpu +(.*)$", "0 0 0 0 0 0 0 0").split()]
        tick = os.sysconf("SC_CLK_TCK")
        idle = fields[3] + fields[4]
        every = sum(fields[:8])
        ours = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        return every / tick, (every - idle) / tick, ours

    def share(self):
        every, busy, ours = (b - a for a, b in zip(self.start, self.now()))
        return round(100 * max(0.0, busy - ours) / every) if every > 0 else 0


class Weather:
    """So many busy processes beside the programs, as on a machine that others use as well."""

    def __init__(self, busy):
        self.wanted, self.processes = busy, []

    def __enter__(self):
        die_with_us = lambda: ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
        self.processes = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=die_with_us) for _ in range(self.wanted)]

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.wait()


def describe(top):
    changed = output("git", "status", "--porcelain", "--untracked-files=no", cwd=top)
    changed = [line for line in changed.splitlines() if "bench/results/" not in line]
    return {
        "processor": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "cores": os.cpu_count(),
        "memory_gb": round(int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0")) / 2**20, 1),
        "kernel": platform.release(),
        "system": first_match("/etc/os-release", r'^PRETTY_NAME="(.*)"$'),
        "compiler": output("g++", "--version").split("\n")[0],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": (output("git", "rev-parse", "--short", "HEAD", cwd=top) or "unknown") + ("+" if changed else ""),
    }
