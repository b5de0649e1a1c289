#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""nginx's side of bench/compare: serves the files of the folder that COMPARE_FILES names. Same command line as the
others, see program.hpp; COMPARE_NGINX is the program. It runs as a child in the foreground, in a folder of its own."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIGURATION = """
daemon off;
{user}
pid {room}/pid;
error_log {room}/errors;
worker_processes {workers};
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=16;
  default_type application/octet-stream;
  client_body_temp_path {room}/body;
  proxy_temp_path {room}/proxy;
  fastcgi_temp_path {room}/fastcgi;
  uwsgi_temp_path {room}/uwsgi;
  scgi_temp_path {room}/scgi;
  server {{ listen 127.0.0.1:{port}; root {files}; }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def serve(room, workers):
    port = free_port()
    path = os.path.join(room, "nginx.conf")
    with open(path, "w", encoding="utf-8") as f:
        # Of root's nginx the workers would become somebody else, who may not read the files.
        user = "user root root;" if os.geteuid() == 0 else ""
        files = os.environ["COMPARE_FILES"]
        f.write(CONFIGURATION.format(room=room, workers=workers, port=port, files=files, user=user))
    command = [os.environ["COMPARE_NGINX"], "-p", room, "-e", f"{room}/errors", "-c", path]
    nginx = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 5
        while not answers(port) and nginx.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        print(port if nginx.poll() is None else "nginx ended", flush=True)
        sys.stdin.read()
    finally:
        nginx.terminate()
        nginx.wait()


def main():
    if sys.argv[1:] == ["--list"]:
        return print("http 1\nhttp 2")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # not without ending nginx
    with tempfile.TemporaryDirectory(prefix="compare-nginx-") as room:
        serve(room, sys.argv[2])


main()
