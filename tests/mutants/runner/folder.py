# SPDX-License-Identifier: BSL-1.0
"""What a build folder knows: the objects of each program, how each is compiled and what it includes.

A mutated source is compiled as the build folder compiles it, but faster: little optimisation, no debug information, no
warnings, a precompiled header. The objects that the change does not reach are taken from the build folder.
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import threading

WITH_VALUE = {"-o", "-MF", "-MQ", "-MT", "-include", "-isystem"}
INCLUDED = re.compile(r'^#include\s*[<"]([^>"]+)[>"]', re.M)
ARCHIVE = (".a", ".o")


class CompileError(Exception):
    pass


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise CompileError(lines[0][:300] if lines else f"{command[0]} ended with {done.returncode}")
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Object:
    path: str  # in the build folder
    sources: tuple  # absolute; several if it is a unity build's
    flags: tuple  # language, definitions and include paths


class Folder:
    def __init__(self, top, build):
        self.top, self.build = top, build
        if not (build / "build.ninja").is_file():
            raise SystemExit(f"BROKEN    {build} is not a build folder: meson setup it, and compile it")
        self.scratch = build / "mutants"
        self.steps = {s["output"]: s for s in json.loads(run(["ninja", "-t", "compdb", "-x"], build))}
        self.includes = self.read_includes()
        self.objects = {}
        self.lock = threading.Lock()
        self.compiler = [a for a in self.arguments(next(o for o in self.includes if o.endswith(".o")))[:2] if "ccache" not in a][:1]
        self.linker = next((f"-fuse-ld={n}" for n, p in (("mold", "mold"), ("lld", "ld.lld"), ("gold", "ld.gold")) if shutil.which(p)), None)
        self.headers = {}

    def arguments(self, output):
        return shlex.split(self.steps[output]["command"])

    def read_includes(self):
        """{object: the files of the repository that it was compiled from}"""
        found, files = {}, set()
        for line in run(["ninja", "-t", "deps"], self.build).splitlines():
            if line.startswith("    "):
                path = os.path.normpath(os.path.join(self.build, line.strip()))
                if path.startswith(str(self.top) + "/"):
                    files.add(path)
            elif ": #deps" in line:
                files = found[line.partition(": #deps")[0]] = set()
        return found

    def object(self, path):
        if path not in self.objects:
            step = self.steps[path]
            file = pathlib.Path(os.path.normpath(self.build / step["file"]))
            unity = file.is_relative_to(self.build)
            sources = [os.path.normpath(file.parent / f) for f in INCLUDED.findall(file.read_text())] if unity else [str(file)]
            self.objects[path] = Object(path, tuple(sources), tuple(self.flags(self.arguments(path))))
        return self.objects[path]

    def flags(self, arguments):
        """Without the compiler, source, output, warnings, optimisation and debug information; include paths are absolute."""
        rest = iter(arguments)
        for a in rest:
            if a in WITH_VALUE:
                value = next(rest)
                if a == "-isystem":
                    yield from (a, os.path.normpath(self.build / value))
            elif a.startswith("-I"):
                yield "-I" + os.path.normpath(self.build / a[2:])
            elif a.startswith(("-D", "-U", "-std", "-f", "-m", "-pthread")) and not a.startswith(("-fpch", "-fdiagnostics")):
                yield a

    def program(self, target):
        """(objects, other arguments of the linker) of an executable, its own archives taken apart."""
        if target not in self.steps:
            raise SystemExit(f"BROKEN    {self.build} has no {target}: configure it with -Dtests=true")
        if "no work to do" not in run(["ninja", "-n", target], self.build):
            raise SystemExit(f"BROKEN    {self.build} is not up to date: ninja -C {self.build} {target}")
        objects, libraries, seen = [], [], set()
        arguments = iter(self.arguments(target))
        for a in arguments:
            if a == "-o":
                next(arguments)
            elif a.endswith(ARCHIVE) and a in self.steps | self.includes:
                objects += [o for o in self.members(a) if o not in seen]
                seen.update(objects)
            elif a.startswith(("-l", "-L", "-pthread", "-fsanitize", "-Wl,--wrap", "-Wl,-rpath")) or a.startswith("/") and re.search(r"\.(a|so[.\d]*)$", a):
                libraries.append(a)
        return [self.object(o) for o in objects], libraries

    def members(self, path):
        if path.endswith(".o"):
            return [path]
        return [o for a in self.arguments(path) if a.endswith(ARCHIVE) and a != path for o in self.members(a)]

    def reached_by(self, objects, file):
        return [o for o in objects if str(self.top / file) in self.includes.get(o.path, ())]

    # Compiling and linking.

    def precompiled(self, header, flags, level):
        """The arguments that include a header, precompiled once for each set of flags. Definitions and include paths do not
        reach it: it includes no header of ours."""
        if "clang" in self.compiler[0]:
            return []
        flags = [f for f in flags if not f.startswith(("-D", "-I"))]
        key = hashlib.sha1(repr((str(header), header.read_bytes(), flags, level, self.compiler)).encode()).hexdigest()[:12]
        with self.lock:
            making = self.headers.setdefault(key, threading.Lock())
        place = self.scratch / "headers" / key
        with making:
            if not (place / "all.hpp.gch").exists():
                place.mkdir(parents=True, exist_ok=True)
                (place / "all.hpp").write_text(f'#include "{header}"\n')
                part = place / f"part{os.getpid()}"
                run([*self.compiler, *flags, level, "-g0", "-w", "-x", "c++-header", str(place / "all.hpp"), "-o", str(part)], self.build)
                part.rename(place / "all.hpp.gch")
        return ["-include", str(place / "all.hpp")]

    def compile(self, source, flags, level, output, header):
        output.parent.mkdir(parents=True, exist_ok=True)
        run([*self.compiler, *flags, level, "-g0", "-w", *self.precompiled(header, flags, level), "-c", str(source), "-o", str(output)], self.build)
        return output

    def link(self, objects, libraries, output):
        faster = [self.linker] if self.linker else []
        run([*self.compiler, *faster, "-o", str(output), *map(str, objects), "-Wl,--start-group", *libraries, "-Wl,--end-group", "-pthread"], self.build)
        return output
