# SPDX-License-Identifier: BSL-1.0
"""What the drivers of examples share: starting a program, ending it, and saying what held.

Every check prints "ok …" or "FAILED …". A driver ends only what it started, and never waits without a limit.
"""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

LIMIT = 20  # seconds that anything may take; none of it is a promise of the program


class Program:
    """A program that was started, its first line of output awaited."""

    def __init__(self, command, environment=None, limit=12 * LIMIT):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True, env=environment)
        self.watchdog = threading.Timer(limit, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        self.first_line = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def port(self):
        """Of "… 127.0.0.1:PORT…"."""
        return int(self.first_line.rsplit(":", 1)[1].strip("/"))

    def end(self, how=signal.SIGTERM):
        """Asks it to end; its exit code and the rest of its output."""
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, rest


class Checks:
    def __init__(self, name):
        self.name = name
        self.failed = 0

    def check(self, what, holds, found=""):
        print(f"ok {self.name}: {what}" if holds else f"FAILED {self.name}: {what} {found!r}", flush=True)
        self.failed += not holds
        return holds

    def equal(self, what, found, wanted):
        return self.check(what, found == wanted, (found, wanted))

    def done(self):
        sys.exit(1 if self.failed else 0)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def read_to_end(s):
    """All that comes up to the end of the stream, or a reset."""
    parts = []
    try:
        while part := s.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        parts.append(b"<reset>")
    return b"".join(parts)


def sockets_and_files(pid):
    """Descriptors of a process, without those that its workers wait with, and the one that each of them opens on a busy
    machine to see whether it has a processor."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            what = os.readlink(f"/proc/{pid}/fd/{fd}")
            count += not (what.startswith(("anon_inode:", "pipe:")) or what.endswith("/schedstat"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return count


def wait_for(condition, limit=LIMIT):
    """Whether it holds within the time; asks once at least."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
