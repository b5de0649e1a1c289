#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Drives the HTTP example: http_server.py PROGRAM [--io MECHANISM]. By curl, and by sockets for what curl won't send."""
import argparse
import email.utils
import hashlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import LIMIT, Checks, Program, connect, read_to_end, sockets_and_files, wait_for

BIG = bytes(range(256)) * 12_000 + b"end"
MTIME = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT


def make_site(folder):
    root = os.path.join(folder, "root")
    os.makedirs(os.path.join(root, "sub", "deep"))
    files = {"index.html": b"<h1>root</h1>\n", "a.txt": b"0123456789", "empty.css": b"", "big.bin": BIG,
             "sub/index.html": b"sub", "with space & \xc3\xbc.txt": b"odd name"}
    for name, content in files.items():
        path = os.path.join(root.encode(), name if isinstance(name, bytes) else name.encode("latin-1"))
        with open(path, "wb") as f:
            f.write(content)
        os.utime(path, (MTIME, MTIME))
    with open(os.path.join(folder, "secret"), "wb") as f:
        f.write(b"SECRET")
    os.symlink("../secret", os.path.join(root, "link-out"))
    os.symlink("..", os.path.join(root, "up"))
    os.symlink("a.txt", os.path.join(root, "link-in"))
    os.mkfifo(os.path.join(root, "fifo"))
    return root


def curl(port, path, *options, data=None):
    """The exit code of curl, the head and the body of the last response."""
    command = ["curl", "--silent", "--show-error", "--max-time", str(LIMIT), "--path-as-is", "--include", *options,
               f"http://127.0.0.1:{port}{path}"]
    if data is not None:
        command += ["--data-binary", "@-"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=2 * LIMIT)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    return done.returncode, head.decode("latin-1"), body


def status_of(head):
    return int(head.split(" ", 2)[1]) if head.startswith("HTTP/1.1 ") else 0


def raw(port, request, shut=False):
    """Sends bytes; all that comes back until the server closes."""
    with connect(port) as s:
        s.sendall(request)
        if shut:
            s.shutdown(socket.SHUT_WR)
        return read_to_end(s)


def statuses(answers):
    return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", answers)]


def get(path, *fields, close=False):
    lines = [f"GET {path} HTTP/1.1", "Host: test", *fields] + (["Connection: close"] if close else [])
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def test_files(c, port):
    begun = time.time()
    code, head, body = curl(port, "/")
    ended = time.time()
    c.equal("curl gets the index", (code, status_of(head), body), (0, 200, b"<h1>root</h1>\n"))
    c.check("with its type", "Content-Type: text/html; charset=utf-8\r\n" in head, head)
    c.check("and its date of change", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n" in head, head)
    date = re.search(r"^Date: (.*)\r$", head, re.M)
    told = email.utils.parsedate_to_datetime(date[1]).timestamp() if date else 0
    c.check("the Date is now", begun - 2 < told < ended + 2, head)  # in whole seconds, and kept for one
    code, head, body = curl(port, "/big.bin")
    c.equal("a large file is whole", hashlib.sha256(body).digest(), hashlib.sha256(BIG).digest())
    c.equal("an empty file is empty", curl(port, "/empty.css")[2], b"")
    c.equal("escapes are decoded", curl(port, "/with%20space%20%26%20%C3%BC.txt")[2], b"odd name")
    c.equal("a query is not part of the name", curl(port, "/a.txt?b=/../c")[2], b"0123456789")
    code, head, body = curl(port, "/big.bin", "--head")
    c.equal("HEAD has the length and no body", (status_of(head), f"Content-Length: {len(BIG)}" in head, body),
            (200, True, b""))
    code, head, body = curl(port, "/sub")
    c.check("a folder without its slash moves", status_of(head) == 301 and "\r\nLocation: /sub/" in head, head)
    c.equal("and is followed", curl(port, "/sub", "--location")[0], 0)
    c.equal("a folder has an index", curl(port, "/sub/")[2], b"sub")
    c.equal("or is not there", status_of(curl(port, "/sub/deep/")[1]), 404)
    c.equal("what is not there is not there", status_of(curl(port, "/nothing")[1]), 404)
    c.equal("a file is no folder", status_of(curl(port, "/a.txt/")[1]), 404)
    c.equal("a named pipe is not served", status_of(curl(port, "/fifo")[1]), 403)
    c.equal("a link within is followed", curl(port, "/link-in")[2], b"0123456789")


def test_conditions(c, port):
    def since(date):
        return curl(port, "/a.txt", "--header", f"If-Modified-Since: {date}")

    code, head, body = since("Sun, 06 Nov 1994 08:49:37 GMT")
    c.check("not modified since", status_of(head) == 304 and body == b"" and "Content-Length" not in head, head)
    c.equal("in the older way, too", status_of(since("Sunday, 06-Nov-94 08:49:37 GMT")[1]), 304)
    c.equal("modified since", status_of(since("Sun, 06 Nov 1994 08:49:36 GMT")[1]), 200)
    c.equal("no date is no condition", status_of(since("yesterday")[1]), 200)

    def part(value, *more):
        _, head, body = curl(port, "/a.txt", "--header", f"Range: {value}", *more)
        return status_of(head), (re.search(r"^Content-Range: (.*)\r?$", head, re.M) or [0, ""])[1].strip(), body

    c.equal("a range", part("bytes=2-4"), (206, "bytes 2-4/10", b"234"))
    c.equal("to the end", part("bytes=7-"), (206, "bytes 7-9/10", b"789"))
    c.equal("from the end", part("bytes=-3"), (206, "bytes 7-9/10", b"789"))
    c.equal("too long", part("bytes=5-99"), (206, "bytes 5-9/10", b"56789"))
    c.equal("beyond the end", part("bytes=10-"), (416, "bytes */10", b""))
    c.equal("several are answered by all", part("bytes=0-1,3-4"), (200, "", b"0123456789"))
    c.equal("if it is still the same", part("bytes=0-1", "--header", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"),
            (206, "bytes 0-1/10", b"01"))
    c.equal("else all", part("bytes=0-1", "--header", "If-Range: Sun, 06 Nov 1994 08:49:38 GMT"),
            (200, "", b"0123456789"))
    _, head, body = curl(port, "/big.bin", "--range", "1000000-1999999")
    c.check("a large range", body == BIG[1_000_000:2_000_000], head)


def test_root(c, port):
    ways_out = ["/../secret", "/%2e%2e/secret", "/%2E%2e%2fsecret", "/sub/../../secret", "/..%5csecret", "/..\\secret",
                "/.%00./secret", "/link-out", "/up/secret", "/up/root/../secret", "//../secret", "/./../secret",
                "/%252e%252e/secret", "/sub/%2e%2e/%2e%2e/secret", "/..;/secret"]
    for path in ways_out:
        answer = raw(port, get(path, close=True))
        c.check(f"{path} does not lead out", statuses(answer)[0] in (400, 404) and b"SECRET" not in answer, answer)
    for target in ["http://test/../secret", "file:///etc/passwd", "*", "secret"]:
        answer = raw(port, get(target, close=True))
        c.check(f"nor does {target}", statuses(answer) == [400] and b"SECRET" not in answer, answer)


def test_connections(c, port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    answers = []
    for path in ["/a.txt", "/nothing", "/sub/", "/big.bin", "/a.txt"]:
        connection.request("GET", path)
        response = connection.getresponse()
        answers.append((response.status, len(response.read())))
        local = connection.sock and connection.sock.getsockname()
    c.equal("a connection is kept", answers, [(200, 10), (404, 10), (200, 3), (200, len(BIG)), (200, 10)])
    c.check("the same one", local is not None)
    connection.close()

    done = subprocess.run(["curl", "--silent", "--verbose", "--max-time", str(LIMIT), f"http://127.0.0.1:{port}/a.txt",
                           f"http://127.0.0.1:{port}/sub/"], capture_output=True, timeout=2 * LIMIT)
    c.check("curl uses it again", done.stdout == b"0123456789sub" and b"Re-using existing connection" in done.stderr,
            done.stderr)

    many = b"".join([get("/a.txt"), get("/nothing"), get("/sub/", "Range: bytes=0-0"), get("/big.bin")] * 20)
    answer = raw(port, many + get("/", close=True))
    c.equal("a pipeline is answered in order", statuses(answer), [200, 404, 206, 200] * 20 + [200])
    c.equal("with all it asked for", answer.count(BIG), 20)
    byte_by_byte = get("/a.txt") + b"\r\n" + get("/sub/", close=True)
    with connect(port) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(byte_by_byte)):
            s.sendall(byte_by_byte[i:i + 1])
        c.equal("byte by byte", statuses(read_to_end(s)), [200, 200])

    answer = raw(port, b"GET /a.txt HTTP/1.0\r\n\r\n")
    c.check("HTTP/1.0 ends with its response", statuses(answer) == [200] and b"Connection: close\r\n" in answer, answer)
    answer = raw(port, b"GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /sub/ HTTP/1.0\r\n\r\n")
    c.check("unless asked otherwise", statuses(answer) == [200, 200] and b"Connection: keep-alive\r\n" in answer, answer)


def test_bodies(c, port):
    post = b"POST /a.txt HTTP/1.1\r\nHost: test\r\n"
    end = get("/sub/", close=True)
    answer = raw(port, post + b"Content-Length: 5\r\n\r\nhello" + end)
    c.check("other methods are told so, their bodies passed over",
            statuses(answer) == [405, 200] and b"Allow: GET, HEAD\r\n" in answer, answer)
    answer = raw(port, post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n" + end)
    c.equal("chunked ones, too", statuses(answer), [405, 200])
    c.equal("methods that are none", statuses(raw(port, b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n" + end)), [501, 200])
    # curl waits for an answer before it sends the body, so that none of it is under way when the server closes.
    code, head, _ = curl(port, "/a.txt", "--expect100-timeout", str(LIMIT), data=b"x" * 3_000_000)
    c.equal("too large a body", (code, status_of(head)), (0, 413))
    code, head, _ = curl(port, "/a.txt", "--header", "Transfer-Encoding: chunked", data=b"x" * 3_000_000)
    c.check("also if its length is not known", code in (0, 55, 56) and status_of(head) in (0, 405), (code, head))
    code, head, _ = curl(port, "/a.txt", "--header", "Expect: 100-continue", data=b"x" * 9)
    c.equal("who waits for a 100 gets the end", (code, status_of(head)), (0, 405))


def test_refusals(c, port):
    def refused(what, request, status):
        answer = raw(port, request + get("/a.txt"))
        c.check(what, statuses(answer) == [status] and b"Connection: close\r\n" in answer, answer)

    refused("a target that is too long", get("/" + "a" * 5000), 414)
    refused("a line that is too long", b"G" * 20_000, 414)
    refused("a head that is too large", get("/", *[f"X{i}: " + "y" * 2000 for i in range(9)]), 431)
    refused("too many fields", get("/", *[f"X{i}: y" for i in range(101)]), 431)
    refused("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
    refused("no Host", b"GET / HTTP/1.1\r\n\r\n", 400)
    refused("two Hosts", get("/", "Host: b"), 400)
    refused("folded lines", get("/", "X: a\r\n b"), 400)
    refused("bare line feeds", b"GET / HTTP/1.1\nHost: a\n\n", 400)
    refused("space before a colon", get("/", "Content-Length : 5"), 400)
    refused("two lengths", get("/", "Content-Length: 5", "Content-Length: 5"), 400)
    refused("a length and a coding", get("/", "Content-Length: 5", "Transfer-Encoding: chunked"), 400)
    refused("another coding", get("/", "Transfer-Encoding: gzip, chunked"), 501)
    refused("another expectation", get("/", "Expect: miracles"), 417)
    refused("TLS", bytes.fromhex("16030102000100") + b"\n", 400)
    answer = raw(port, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" + get("/"))
    c.equal("nothing is read behind a broken chunk", statuses(answer), [405])


def test_truncation(c, port):
    whole = get("/a.txt", "X: y")
    for n in (1, 10, len(whole) - 1):
        c.equal(f"a head cut short after {n} bytes has no answer", raw(port, whole[:n], shut=True), b"")
    answer = raw(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", shut=True)
    c.equal("a body cut short ends the connection", statuses(answer), [405])
    c.equal("who sends no more may still read", statuses(raw(port, get("/a.txt") * 3, shut=True)), [200] * 3)
    with connect(port) as s:  # resets while a response is under way
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.sendall(get("/big.bin") * 10)
        s.recv(1000)
    c.equal("others are served after a reset", status_of(curl(port, "/")[1]), 200)


def test_times(c, program, root, environment):
    # Who is idle has time to be held up between connecting and asking.
    with Program([program, "--address", "127.0.0.1:0", "--head", "200", "--body", "200", "--idle", "1500", "--write",
                  "300", root], environment) as p:
        port = p.port()
        begun = time.monotonic()
        answer = raw(port, b"GET / HT")
        c.check("a slow head is told", statuses(answer) == [408], answer)
        c.check("in time", 0.15 < time.monotonic() - begun < LIMIT)
        with connect(port) as s:  # a byte now and then does not help
            begun = time.monotonic()
            try:
                for b in b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 1000:
                    s.sendall(bytes([b]))
                    time.sleep(0.02)
                    if time.monotonic() - begun > LIMIT:
                        break
            except OSError:
                pass
            c.check("nor does a byte now and then help", time.monotonic() - begun < LIMIT)
        answer = raw(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        c.equal("a slow body ends the connection", statuses(answer), [405])
        c.equal("a silent connection is closed", raw(port, b""), b"")
        c.equal("an idle one, too", statuses(raw(port, get("/a.txt"))), [200])
        nobody = sockets_and_files(p.process.pid)
        with connect(port) as s:  # asks for much and reads one byte
            s.sendall(get("/big.bin") * 20)
            s.recv(1)  # it is being served
            c.check("who does not read is dropped", wait_for(lambda: sockets_and_files(p.process.pid) <= nobody))
            c.check("in the middle of it", len(read_to_end(s)) < 20 * len(BIG) - 1)
        c.equal("others are served", status_of(curl(port, "/")[1]), 200)
        c.equal("and it ends well", p.end()[0], 0)


def test_end(c, program, root, environment):
    # More time than it takes, however slow we are.
    patient = ["--grace", str(1000 * LIMIT), "--head", str(1000 * LIMIT)]
    with Program([program, "--address", "127.0.0.1:0", *patient, root], environment) as p:
        idle, busy, late = connect(p.port()), connect(p.port()), connect(p.port())
        idle.sendall(get("/a.txt"))
        c.check("before", b"0123456789" in idle.recv(65536))
        late.sendall(get("/a.txt") + b"GET /a.txt HT")  # with the first answer it has begun to read the second
        c.check("and begun", b"0123456789" in late.recv(65536))
        busy.sendall(get("/big.bin"))
        first = busy.recv(1)
        p.process.send_signal(signal.SIGTERM)
        c.check("an idle connection is closed at the end", read_to_end(idle) == b"")

        def refused():
            try:
                connect(p.port()).close()
                return False
            except ConnectionRefusedError:
                return True

        c.check("nobody new is accepted", wait_for(refused))
        c.check("a response under way is finished", (first + read_to_end(busy)).endswith(BIG))
        late.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")
        answer = read_to_end(late)
        c.check("so is a request under way, and its connection closed",
                statuses(answer) == [200] and b"Connection: close\r\n" in answer, answer)
        rest, _ = p.process.communicate(timeout=LIMIT)
        c.check("and told", p.process.returncode == 0 and "served 4 requests on 3 connections; 0 were cut short" in rest,
                (p.process.returncode, rest))
        for s in (idle, busy, late):
            s.close()
    with Program([program, "--address", "127.0.0.1:0", "--grace", "200", "--connections", "1", root],
                 environment) as p:
        with connect(p.port()) as s, connect(p.port()):  # the second one waits for a place
            s.sendall(get("/big.bin") * 20)
            s.recv(1)
            begun = time.monotonic()
            code, rest = p.end(signal.SIGINT)
        c.check("the grace is no longer than it was said", time.monotonic() - begun < LIMIT)
        c.check("who takes longer than the grace is cut short", code == 1 and "1 were cut short" in rest, (code, rest))


def test_changes(c, program, root, environment):
    """Small files that have not changed for two seconds are kept in memory, and looked at once a second."""
    def write(content):
        with open(os.path.join(root, "new"), "wb") as f:
            f.write(content)
        os.replace(os.path.join(root, "new"), os.path.join(root, "changing"))

    def content():
        return curl(port, "/changing")[2]

    with Program([program, "--address", "127.0.0.1:0", root], environment) as p:
        port = p.port()
        written = time.monotonic()
        write(b"first" * 5000)
        c.equal("a file that is new is served as it is", content(), b"first" * 5000)
        kept = time.monotonic() - written > 0.9  # on a slow machine it may have been two seconds old, which count whole
        write(b"again" * 5000)
        c.check("also when it is another", wait_for(lambda: content() == b"again" * 5000, LIMIT if kept else 0))
        time.sleep(2.5)  # from here on it is kept
        c.equal("a file that is kept is served", [content() == b"again" * 5000 for _ in range(5)], [True] * 5)
        _, head, body = curl(port, "/changing", "--range", "3-9")
        c.equal("and its parts", (status_of(head), body), (206, b"inagain"))
        c.equal("and its head", curl(port, "/changing", "--head")[2], b"")
        answer = raw(port, get("/changing") * 10 + get("/a.txt") + get("/changing", close=True))
        c.equal("and in a pipeline", (statuses(answer), answer.count(b"again" * 5000)), ([200] * 12, 11))
        write(b"third" * 5000)
        c.check("a change is seen", wait_for(lambda: content() == b"third" * 5000))
        with open(os.path.join(root, "changing"), "wb") as f:
            f.write(b"4")
        c.check("one in place, too", wait_for(lambda: content() == b"4"))
        os.remove(os.path.join(root, "changing"))
        c.check("and its end", wait_for(lambda: status_of(curl(port, "/changing")[1]) == 404))


def test_crowd(c, port):
    """More than it takes at once, all served in the end."""
    crowd = []
    for i in range(200):
        s = connect(port)
        s.sendall(get("/a.txt", close=True))
        crowd.append(s)
    good = sum(statuses(read_to_end(s)) == [200] for s in crowd)
    for s in crowd:
        s.close()
    c.equal("a crowd waits for its turn", good, 200)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--io", default="")
    a = arguments.parse_args()
    environment = dict(os.environ, **({"RAMIE_IO_BACKEND": a.io} if a.io else {}))
    c = Checks("http" + (f" {a.io}" if a.io else ""))
    with tempfile.TemporaryDirectory() as folder:
        root = make_site(folder)
        with Program([a.program, "--address", "127.0.0.1:0", "--connections", "50", root], environment) as p:
            for test in (test_files, test_conditions, test_root, test_connections, test_bodies, test_refusals,
                         test_truncation, test_crowd):
                test(c, p.port())
            code, rest = p.end()
            c.check("it ends when told, with nothing left", code == 0 and "0 were cut short" in rest, (code, rest))
        test_times(c, a.program, root, environment)
        test_end(c, a.program, root, environment)
        test_changes(c, a.program, root, environment)
    c.done()


if __name__ == "__main__":
    main()
