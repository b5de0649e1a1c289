# SPDX-License-Identifier: BSL-1.0
"""The objects of a program with a mutant: few are compiled again, the others come from the build folder."""
import collections
import concurrent.futures
import os
import pathlib
import threading

from folder import CompileError
from tree import ROOMS, Tree

LEVEL, TEST_LEVEL = "-O1", "-O0"
TOGETHER = tuple(r for r in ROOMS if r != "platform")  # whose sources are compiled as one where that works: it is faster
CHECKS = ("-DRAMIE_CHECKS",)


def at_once(function, *arguments):
    """The results of calls that may run at the same time (and wait for a processor)."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(function, *arguments))


class Objects:
    def __init__(self, folder, tests, processors):
        self.folder, self.tests, self.processors = folder, tests, processors
        self.programs = {}
        self.making = collections.defaultdict(threading.Lock)  # of each object that mutants share

    def room(self, source):
        return os.path.relpath(source, self.folder.top).split("/")[0]

    def program(self, target):
        if target not in self.programs:
            self.programs[target] = self.folder.program(target)
        return self.programs[target]

    def parts(self, target, names):
        """(objects without tests, objects with tests, files of the named tests)"""
        objects, _ = self.program(target)
        files = {str(f) for f in self.tests[target].values()}
        with_tests = [o for o in objects if files & set(o.sources)]
        return [o for o in objects if o not in with_tests], with_tests, {str(self.tests[target][n]) for n in names}

    # How a program is put together.

    def with_mutant(self, mutant, tree):
        """What the change reaches is compiled again, and stands in front of what it does not reach. Of the tests that it
        reaches only the files of the named ones."""
        library, with_tests, named = self.parts(mutant.program, mutant.tests)
        reached = self.folder.reached_by(library, mutant.file)
        reached_tests = [o for o in self.folder.reached_by(with_tests, mutant.file) if set(o.sources) & named]
        if not reached and not reached_tests:
            raise CompileError(f"{mutant.program} is not compiled from {mutant.file}")
        new = self.compile_library(tree, reached) + self.compile_tests(tree, reached_tests, named)
        return new + [o.path for o in library + with_tests if o not in reached + reached_tests]

    def with_mutant_and_checks(self, mutant, tree):
        """The same, but the build folder has no objects with debug checks: they are made once for all mutants."""
        library, with_tests, named = self.parts(mutant.program, mutant.tests)
        reached = self.folder.reached_by(library, mutant.file)
        reached_tests = self.folder.reached_by(with_tests, mutant.file)
        new = self.compile_library(tree, reached, CHECKS) + self.compile_tests(tree, reached_tests, named, CHECKS)
        return new + self.checked([o for o in library if o not in reached], [o for o in with_tests if o not in reached_tests], named)

    def without_mutant(self, target, files, tree):
        """What mutants of these files reach, compiled as it is with a mutant, and the rest of the build folder."""
        library, with_tests, _ = self.parts(target, ())
        reached = [o for o in library if any(self.folder.reached_by([o], f) for f in files)]
        return self.compile_library(tree, reached) + [o.path for o in library + with_tests if o not in reached]

    def without_mutant_with_checks(self, target, names):
        return self.checked(*self.parts(target, names))

    # How objects are compiled.

    def compile(self, tree, source, flags, output):
        tested = self.room(source) == "tests" and "/explore/" not in source
        header = self.folder.top / "tests/pch" / ("cases.hpp" if tested and "/support/" not in source else "standard.hpp")
        with self.processors:
            return self.folder.compile(tree.moved(source), tree.moved_flags(flags), TEST_LEVEL if tested else LEVEL, output, header)

    def compile_library(self, tree, objects, extra=()):
        groups = collections.defaultdict(list)
        for o in objects:
            for source in o.sources:
                room = self.room(source)
                groups[(o.flags, room if room in TOGETHER else source)].append(source)

        def compile_group(number, group):
            (flags, room), sources = group
            if len(sources) > 1:
                together = str(self.folder.top / room / f"src/together{number}.cpp")  # exists in the copy alone
                pathlib.Path(tree.moved(together)).write_text("".join(f'#include "{tree.moved(s)}"\n' for s in sources))
                try:
                    return [self.compile(tree, together, [*flags, *extra], tree.place / f"{number}.o")]
                except CompileError:
                    pass  # two of them use the same name; or the mutant does not compile, which shows again below
            return [self.compile(tree, s, [*flags, *extra], tree.place / f"{number}.{i}.o") for i, s in enumerate(sources)]
        return [o for made in at_once(compile_group, range(len(groups)), groups.items()) for o in made]

    def compile_tests(self, tree, objects, named, extra=()):
        return [self.compile(tree, source, [*o.flags, *extra], tree.place / f"{pathlib.Path(source).stem}.test.o")
                for o in objects for source in set(o.sources) & named]

    def checked(self, library, with_tests, named):
        inside = [o for o in library if self.looks_inside(o)]
        wanted = [(o, s) for o in inside for s in o.sources]
        wanted += [(o, s) for o in with_tests for s in sorted(set(o.sources) & named)]
        return at_once(self.checked_object, *zip(*wanted)) + [o.path for o in library if o not in inside]

    def looks_inside(self, o):
        """It is of the library, or a helper of the tests that may depend on how the library is compiled."""
        return self.room(o.sources[0]) in ROOMS or "/tests/support/" in o.sources[0] and not o.sources[0].endswith("/main.cpp")

    def checked_object(self, o, source):
        """Made once, and again when a file that it includes has changed."""
        output = self.folder.scratch / "checks" / o.path / (pathlib.Path(source).name + ".o")
        with self.making[output]:
            files = [f for f in (*self.folder.includes.get(o.path, ()), source) if os.path.exists(f)]
            if not output.exists() or output.stat().st_mtime < max(os.stat(f).st_mtime for f in files):
                self.compile(Tree(self.folder.top, self.folder.top), source, [*o.flags, *CHECKS], output)
        return output
