#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""fio's side of bench/compare: its io_uring engine on one thread, without clocks. Same command line as the others, see
program.hpp. A depth of 16 is submitted and reaped in batches: faster than one by one, which is fio's default."""
import json
import os
import subprocess
import sys


def main():
    if sys.argv[1:] == ["--list"]:
        return print("reads 1")
    sizes = dict(a.split("=") for a in sys.argv[3:])
    depth = sizes["depth"]
    command = [
        "fio", "--name=reads", "--filename=" + os.path.join(os.environ["COMPARE_FILES"], "reads"), "--rw=randread",
        "--bs=4k", "--size=" + sizes["bytes"], "--ioengine=io_uring", "--thread", "--iodepth=" + depth,
        "--iodepth_batch_submit=" + depth, "--iodepth_batch_complete_max=" + depth, "--number_ios=" + sizes["count"],
        "--io_size=" + str(4096 * int(sizes["count"])), "--invalidate=0", "--norandommap", "--gtod_reduce=1",
        "--allow_file_create=0", "--output-format=json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["jobs"][0]["read"]
    value = 1e9 / found["iops"]
    print(json.dumps({"workload": "reads", "workers": 1, "value": value, "unit": "ns", "extra": {}}))


main()
