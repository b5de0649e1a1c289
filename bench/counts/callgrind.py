# SPDX-License-Identifier: BSL-1.0
"""Runs a program under callgrind and tells how many instructions and RMWs its functions executed.

RMWs are instructions with a lock prefix, xchg with memory, and mfence, which costs as much. Callgrind says how often
each address was executed, and the bytes there say what it is. Only x86-64 is known: elsewhere there are no RMWs.
"""
import collections
import pathlib
import re
import struct
import subprocess
import tempfile

COMMAND = ["setarch", "-R", "valgrind", "--tool=callgrind",
           "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no"]
PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
LOCK, XCHG, MFENCE = 0xF0, (0x86, 0x87), b"\x0f\xae\xf0"
LONGEST_INSTRUCTION = 15
X86_64, PT_LOAD = 62, 1

Executed = collections.namedtuple("Executed", "instructions rmws")  # both by function


def is_rmw(code):
    at = 0
    while code[at] in PREFIXES:
        if code[at] == LOCK:
            return True
        at += 1
    if code[at] & 0xF0 == 0x40:  # REX
        at += 1
    in_memory = code[at + 1] < 0xC0
    return (code[at] in XCHG and in_memory) or code[at:at + 3] == MFENCE


class Binary:
    """The bytes of an ELF file by the addresses it was linked for, which are those that callgrind writes."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        self.segments = []
        if self.bytes[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", self.bytes, 18)[0] != X86_64:
            return
        headers, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.bytes, headers + i * size)
            if kind == PT_LOAD:
                self.segments.append((address, address + length, offset - address))

    def at(self, address):
        for begin, end, shift in self.segments:
            if begin <= address < end:
                return self.bytes[address + shift:address + shift + LONGEST_INSTRUCTION]
        return None


def addresses(lines):
    """(object, function, address, executions) of an out-file. What a call cost is its callee's already."""
    binary = function = None
    after_call = False
    for line in lines:
        if line.startswith("0x"):
            if not after_call:
                address, _, times = line.split()
                yield binary, function, int(address, 16), int(times)
            after_call = False
        elif line.startswith("ob="):
            binary = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            after_call = True


def short(function):
    """Without what every name has, the marks of recursion, and the parameters of the outermost."""
    name = re.sub(r"'\d+$", "", function)
    name = re.sub(r"\b(ramie::)?(\w+_internal|v0|platform)::|\(anonymous namespace\)::", "", name)
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name[:at]
    return name


def read(path):
    lines = pathlib.Path(path).read_text().splitlines()
    binaries, found = {}, Executed(collections.Counter(), collections.Counter())
    for binary, function, address, times in addresses(lines):
        function = short(function)
        found.instructions[function] += times
        if binary not in binaries:
            binaries[binary] = Binary(binary) if pathlib.Path(binary).is_file() else None
        code = binaries[binary].at(address) if binaries[binary] else None
        if code and is_rmw(code):
            found.rmws[function] += times
    total = next(int(line.split()[1]) for line in lines if line.startswith("totals:"))
    if sum(found.instructions.values()) != total:
        raise RuntimeError(f"{path} says {total} instructions, its lines {sum(found.instructions.values())}")
    return found


def run(*command):
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        subprocess.run([*COMMAND, f"--callgrind-out-file={out}", *command], check=True, capture_output=True, timeout=600)
        return read(out)
