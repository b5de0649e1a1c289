#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A crowd at the HTTP example, most of it ill-mannered: http_crowd.py PROGRAM [--connections N] [--seconds S] [--io M].

All of them hold their connections at once: silent ones, ones that send a byte now and then, ones that shut down half of the
connection, ones that reset it, ones that ask and never read. Who goes is replaced. Meanwhile polite clients must be served,
all of them; memory must be flat once the crowd is there; and when it has gone, no descriptor may be left.
"""
import argparse
import asyncio
import os
import random
import resource
import socket
import struct
import tempfile
import time

from harness import Checks, Program, sockets_and_files, wait_for

BIG = 4_000_000
ASK = b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n"
ASK_MUCH = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"


class Crowd:
    def __init__(self, port):
        self.port = port
        self.until = time.monotonic() + 90  # to come together
        self.there = 0
        self.served = 0
        self.unserved = 0

    def left(self):
        return self.until - time.monotonic()

    async def pause(self, low, high):
        await asyncio.sleep(max(0, min(random.uniform(low, high), self.left())))

    async def silent(self, r, w):
        await self.pause(20, 120)

    async def slow(self, r, w):
        for b in ASK * 100:
            w.write(bytes([b]))
            await self.pause(0.5, 2)
            if self.left() <= 0 or r.at_eof() or w.is_closing():
                return

    async def half_open(self, r, w):
        w.write(ASK[:random.randrange(len(ASK))])
        w.write_eof()
        await r.read(-1)
        await self.pause(1, 10)

    async def resetting(self, r, w):
        w.write(random.choice([ASK, ASK_MUCH, ASK[:9]]))
        await self.pause(0, 5)
        w.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def deaf(self, r, w):
        w.transport.pause_reading()
        w.write(ASK_MUCH * 4)
        await self.pause(5, 20)

    async def one(self):
        """One place in the crowd."""
        manners = [self.silent, self.slow, self.half_open, self.resetting, self.deaf]
        weights = [70, 24, 2, 2, 2]  # of those who come; the hasty come more often
        while self.left() > 0:
            try:
                r, w = await asyncio.open_connection("127.0.0.1", self.port, limit=4096)
            except OSError:
                await self.pause(0.1, 0.5)
                continue
            self.there += 1
            try:
                await random.choices(manners, weights)[0](r, w)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                self.there -= 1
                w.transport.abort()

    async def polite(self):
        while self.left() > 0:
            try:
                r, w = await asyncio.open_connection("127.0.0.1", self.port)
                for _ in range(20):
                    w.write(ASK)
                    head = await asyncio.wait_for(r.readuntil(b"\r\n\r\n"), 20)
                    body = await asyncio.wait_for(r.readexactly(5), 20)
                    good = head.startswith(b"HTTP/1.1 200 ") and body == b"small"
                    self.served += good
                    self.unserved += not good
                w.close()
                await w.wait_closed()
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                self.unserved += 1
            await self.pause(0.01, 0.05)


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def hold(crowd, size, seconds, pid, samples):
    """Lets them come, and then stay for so long."""
    places = []
    for i in range(size):
        places.append(asyncio.create_task(crowd.one()))
        if i % 100 == 99:
            await asyncio.sleep(0.01)
    while crowd.there < 0.97 * size and crowd.left() > 0:
        await asyncio.sleep(0.05)
    crowd.until = time.monotonic() + seconds
    polite = [asyncio.create_task(crowd.polite()) for _ in range(8)]
    while crowd.left() > 0:
        samples.append((crowd.there, resident(pid), sockets_and_files(pid)))
        await asyncio.sleep(seconds / 20)
    await asyncio.gather(*polite)
    for place in places:
        place.cancel()
    await asyncio.gather(*places, return_exceptions=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--connections", type=int, default=500)
    arguments.add_argument("--seconds", type=float, default=4)
    arguments.add_argument("--io", default="")
    a = arguments.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    random.seed(1)
    environment = dict(os.environ, **({"RAMIE_IO_BACKEND": a.io} if a.io else {}))
    c = Checks("crowd" + (f" {a.io}" if a.io else ""))
    with tempfile.TemporaryDirectory() as root:
        for name, size in {"small": b"small", "big": b"x" * BIG}.items():
            with open(f"{root}/{name}", "wb") as f:
                f.write(size)
        command = [a.program, "--address", "127.0.0.1:0", "--connections", "20000", "--idle", "90000", "--head",
                   "20000", "--write", "10000", root]
        with Program(command, environment, limit=a.seconds + 240) as p:
            pid = p.process.pid
            before = sockets_and_files(pid)
            crowd, samples = Crowd(p.port()), []
            asyncio.run(hold(crowd, a.connections, a.seconds, pid, samples))
            most, least = max(s[2] for s in samples), min(s[0] for s in samples)
            c.check(f"{a.connections} were there at once, but for those who came and went", least > 0.8 * a.connections, least)
            c.check(f"the polite were served ({crowd.served} times)", crowd.served > 100 and crowd.unserved == 0,
                    crowd.unserved)
            half = [s[1] for s in samples[len(samples) // 2:]]
            c.check(f"memory is flat ({half[0]:.0f} to {half[-1]:.0f} MB)", half[-1] < 1.25 * half[0] + 10, half)
            c.check("no descriptor is left", wait_for(lambda: sockets_and_files(pid) == before), (before, sockets_and_files(pid)))
            code, rest = p.end()
            c.check("and it ends well", code == 0 and "0 were cut short" in rest, (code, rest))
            print(f"    {least} to {most} descriptors, {half[-1] * 1e6 / most:.0f} bytes each; {rest.strip()}")
    c.done()


if __name__ == "__main__":
    main()
