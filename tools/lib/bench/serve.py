# SPDX-License-Identifier: BSL-1.0
"""One measurement of a server: starts it, loads it over the loopback, and prints what was found as one line of JSON.

    serve.py WORKLOAD WORKERS KEY=VALUE … -- SERVER ARGUMENT …

The server prints a line that ends in its port, and ends when its standard input is closed or by SIGTERM. It gets as many processors as it has workers and the
load the next one. On a machine with too few for that, both use all of them.
"""
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

LIMIT = 30  # seconds


def fail(why):
    sys.exit(why)


def places(workers):
    """The processors of the server and of the load."""
    here = sorted(os.sched_getaffinity(0))
    return (here[:workers], here[workers : workers + 1]) if len(here) > workers else (here, here)


def start(command, processors):
    def prepare():
        os.sched_setaffinity(0, processors)
        ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG: it does not outlive us
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=prepare)


class Server:
    def __init__(self, command, processors):
        self.process = start(command, processors)
        try:
            self.port = int(re.search(r"(\d+)/?$", self.process.stdout.readline()).group(1))
        except AttributeError:
            self.end()
            fail("the server did not start")

    def cpu(self):
        """Seconds of processor time that the server and its children used so far."""
        total, todo = 0, [str(self.process.pid)]
        while todo:
            tasks = f"/proc/{todo.pop()}/task"
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
                with open(f"{tasks}/{task}/children", encoding="ascii") as f:
                    todo += f.read().split()
        return total / 1e9

    def end(self):
        self.process.stdin.close()
        for patience, end in ((0.5, self.process.terminate), (LIMIT, self.process.kill)):
            try:
                return self.process.wait(patience)
            except subprocess.TimeoutExpired:
                end()
        return self.process.wait()


def echo(server, processors, sizes):
    """Requests of a closed loop."""
    load = start([sizes["load"], str(server.port), sizes["connections"], sizes["warmup_ms"], sizes["ms"]], processors)
    if load.stdout.readline() != "begin\n":
        fail("the load did not begin")
    cpu = server.cpu()
    found = json.loads(load.stdout.readline() or fail("the load failed"))
    cpu = server.cpu() - cpu
    load.wait(LIMIT)
    found["cpu"] = cpu * 1e6 / max(found.pop("requests"), 1)
    return 1e6 / found["rate"], "us", found


def idle(server, processors, sizes):
    """What connections cost that nobody uses, in ms of processor time."""
    load = start([sizes["load"], str(server.port), sizes["connections"], "0", "0"], processors)
    if load.stdout.readline() != "begin\n":
        fail("the load did not connect")
    time.sleep(0.2)  # until all of them are accepted and wait
    cpu = server.cpu()
    time.sleep(int(sizes["ms"]) / 1000)
    cpu = server.cpu() - cpu
    load.stdin.close()
    load.wait(LIMIT)
    return cpu * 1e3, "ms", {}


UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def http(server, processors, sizes):
    """Requests of wrk's closed loop for one file."""
    url = f"http://127.0.0.1:{server.port}/{sizes['file']}"
    command = ["wrk", "-t1", "-c" + sizes["connections"], "-d" + sizes["seconds"] + "s", "--latency", url]
    cpu = server.cpu()
    load = start(command, processors)
    told = load.communicate(timeout=LIMIT)[0]
    cpu = server.cpu() - cpu
    bad = re.search(r"(Non-2xx.*|Socket errors.*)", told)
    if bad:
        fail(bad.group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1))
    requests = int(re.search(r"(\d+) requests in", told).group(1))
    late = re.search(r"\s99%\s+([\d.]+)(us|ms|s)", told)
    return 1e6 / rate, "us", {"rate": rate, "p99": float(late.group(1)) * UNITS[late.group(2)], "cpu": cpu * 1e6 / requests}


def main():
    at = sys.argv.index("--")
    workload, workers, *sizes = sys.argv[1:at]
    sizes = dict(s.split("=", 1) for s in sizes)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ours, theirs = places(int(workers))
    server = Server(sys.argv[at + 1 :], ours)
    try:
        value, unit, extra = {"echo": echo, "idle": idle, "http": http}[workload](server, theirs, sizes)
    finally:
        server.end()
    print(json.dumps({"workload": workload, "workers": int(workers), "value": value, "unit": unit, "extra": extra}))


if __name__ == "__main__":
    main()
