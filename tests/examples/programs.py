#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Drives the smaller examples: programs.py FOLDER-OF-PROGRAMS [--io MECHANISM] [--under CIRCUMSTANCES].

The circumstances are only told in the report: the environment makes them, as for the programs of tests/examples/meson.build.
"""
import argparse
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading

from harness import LIMIT, Checks, Program, connect, read_to_end

HERE = "127.0.0.1:0"


def run(command, environment, **more):
    return subprocess.run(command, capture_output=True, timeout=2 * LIMIT, env=environment, **more)


def test_echo(c, folder, environment):
    done = run([f"{folder}/echo_server", "--test"], environment)
    c.equal("echo talks to itself", (done.returncode, done.stdout), (0, b"50 of 50 clients had their echo\n"))
    with Program([f"{folder}/echo_server", HERE], environment) as p:
        text = random.Random(1).randbytes(3_000_000)
        with connect(p.port()) as s, connect(p.port()) as silent:
            silent.sendall(b"here")
            c.equal("echo has another guest", silent.recv(4, socket.MSG_WAITALL), b"here")  # who is accepted, then silent
            sender = threading.Thread(target=lambda: (s.sendall(text), s.shutdown(1)))
            sender.start()
            c.check("echo sends back 3 MB to another", read_to_end(s) == text)
            sender.join(LIMIT)
            c.equal("echo ends when told, with a guest there", p.end(signal.SIGINT), (0, "done\n"))
            c.equal("who is told so", read_to_end(silent), b"")


class Guest:
    def __init__(self, port, name):
        self.socket = connect(port)
        self.lines = self.socket.makefile("r")
        self.say(name)
        self.name = name
        self.welcome = self.lines.readline()

    def say(self, text):
        self.socket.sendall(f"{text}\n".encode())

    def close(self):
        self.lines.close()
        self.socket.close()


def test_chat(c, folder, environment):
    with Program([f"{folder}/chat", HERE], environment) as p:
        ann = Guest(p.port(), "Ann")
        bob = Guest(p.port(), "Bob")
        c.equal("chat welcomes", ann.welcome + bob.welcome, "* welcome, Ann\n* welcome, Bob\n")
        c.equal("others hear who comes", ann.lines.readline(), "* Bob comes\n")
        crowd = [Guest(p.port(), f"G{i}") for i in range(20)]
        c.equal("each of a crowd", [ann.lines.readline() for _ in crowd], [f"* {g.name} comes\n" for g in crowd])
        bob.say("hello, all")
        c.equal("what one says all hear", {g.lines.readline() for g in [ann, crowd[-1]]}, {"Bob: hello, all\n"})
        ann.say("hello, Bob")
        while (heard := bob.lines.readline()).startswith("*"):
            pass
        c.equal("but not oneself", heard, "Ann: hello, Bob\n")
        bob.close()
        while (heard := ann.lines.readline()).startswith("* G"):
            pass
        c.equal("and who goes", heard, "* Bob goes\n")
        rude = connect(p.port())
        rude.sendall(b"Rude\n" + b"x" * 100_000)
        while (heard := ann.lines.readline()) == "* Rude comes\n":
            pass
        c.equal("who never ends a line is shown out", heard, "* Rude goes\n")
        rude.close()
        c.equal("chat ends when told", p.end(), (0, "done\n"))
        for g in [ann, *crowd]:
            g.close()


def make_tree(folder):
    """Some hundred files with words at random, a binary one, an empty one, one without a last line feed, links."""
    draw = random.Random(7)
    words = ["ramie", "Ramie", "fiber", "wool", "RAMIE!", "linen", "a:b", "x ramie y"]
    for i in range(300):
        path = os.path.join(folder, *[f"d{draw.randrange(3)}" for _ in range(draw.randrange(4))])
        os.makedirs(path, exist_ok=True)
        lines = [" ".join(draw.choices(words, k=draw.randrange(5))) for _ in range(draw.randrange(200))]
        with open(os.path.join(path, f"f{i}.txt"), "w") as f:
            f.write("\n".join(lines) + draw.choice(["", "\n"]))
    with open(os.path.join(folder, "binary"), "wb") as f:
        f.write(b"\0ramie\n")
    open(os.path.join(folder, "empty"), "w").close()
    os.symlink("d0", os.path.join(folder, "link"))


def test_grep(c, folder, environment):
    with tempfile.TemporaryDirectory() as tree:
        make_tree(tree)
        environment = dict(environment, LC_ALL="C")
        for options in ([], ["-n"], ["-i"], ["-n", "-i"], ["-l"]):
            for text in ("ramie", "a:b", "not there"):
                ours = run([f"{folder}/grep", *options, text, tree], environment)
                real = run(["grep", "-rFI", *options, "-e", text, tree], environment)
                same = sorted(ours.stdout.splitlines()) == sorted(real.stdout.splitlines())
                c.check(f"grep {' '.join([*options, repr(text)])} finds what grep finds",
                        same and ours.returncode == real.returncode, (ours.returncode, real.returncode))
        ours = run([f"{folder}/grep", "x", f"{tree}/nothing"], environment)
        c.check("grep tells what is not there", ours.returncode == 2 and b"No such file" in ours.stderr, ours)


def test_pipeline(c, folder, environment):
    def pipeline(*words, **more):
        return run([f"{folder}/pipeline", *words], environment, **more)

    done = pipeline("seq", "100000", ",", "grep", "7", ",", "wc", "-l")
    c.equal("a pipeline of three", (done.returncode, done.stdout.strip()), (0, b"40951"))
    c.check("counts what passes", re.search(rb"^seq +588895 bytes out, exit code 0$", done.stderr, re.M), done.stderr)
    done = pipeline("cat", ",", "tr", "a-z", "A-Z", input=b"hello\n" * 100_000)
    c.equal("reads our input", done.stdout, b"HELLO\n" * 100_000)
    done = pipeline("yes", ",", "head", "-n", "3")
    c.equal("one that ends early ends those before it", (done.returncode, done.stdout), (0, b"y\n" * 3))
    c.check("by a signal", b"signal 13" in done.stderr, done.stderr)
    c.equal("the last one's exit code counts", pipeline("true", ",", "sh", "-c", "exit 3").returncode, 3)
    c.equal("what is not there", pipeline("true", ",", "/no/such/program").returncode, 127)
    c.equal("nothing to do", pipeline("true", ",").returncode, 2)


def test_fetcher(c, folder, environment):
    done = run([f"{folder}/fetcher", "--test"], environment)
    c.equal("the fetcher fetches all, no faster than allowed", done.returncode, 0)
    with tempfile.TemporaryDirectory() as root:
        for i in range(10):
            with open(f"{root}/{i}.txt", "w") as f:
                f.write("x" * i * 10_000)
        with Program([f"{folder}/http_server", "--address", HERE, root], environment) as p:
            paths = [f"/{i}.txt" for i in range(10)] + ["/nothing"]
            done = run([f"{folder}/fetcher", "--rate", "1000", "127.0.0.1", str(p.port()), *paths], environment)
            found = sorted(line.split() for line in done.stdout.decode().splitlines())
            wanted = sorted([["200", str(i * 10_000), f"/{i}.txt"] for i in range(10)] + [["404", "10", "/nothing"]])
            c.equal("from the HTTP server, too", (done.returncode, found), (0, wanted))
        done = run([f"{folder}/fetcher", "127.0.0.1", "1", "/"], environment)
        c.check("and tells what fails", done.returncode == 1 and b"failed: /" in done.stdout, done)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--io", default="")
    arguments.add_argument("--under", default="")
    a = arguments.parse_args()
    environment = dict(os.environ, **({"RAMIE_IO_BACKEND": a.io} if a.io else {}))
    c = Checks(" ".join(filter(None, ["examples", a.io, f"({a.under})" if a.under else ""])))
    for test in (test_echo, test_chat, test_grep, test_pipeline, test_fetcher):
        test(c, a.folder, environment)
    c.done()


if __name__ == "__main__":
    main()
