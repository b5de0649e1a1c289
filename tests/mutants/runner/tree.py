# SPDX-License-Identifier: BSL-1.0
"""A copy of the sources, made of links, in which one file is changed. Includes relative to a file stay inside the copy."""
import contextlib
import os
import pathlib
import shutil
import tempfile

ROOMS = ("platform", "runtime", "nursery", "channel", "sync", "io")
FOLDERS = ROOMS + ("include", "tests", "examples")
SOURCES = (".hpp", ".cpp", ".h", ".ipp")


class Tree:
    """The sources at `place`, which is the repository itself or a copy."""

    def __init__(self, top, place):
        self.top, self.place = top, place

    def moved(self, path):
        """The same path in the copy, or as it was if it is of none of our folders. The top is among them: tests include by it."""
        inside = os.path.relpath(path, self.top)
        return str(self.place / inside) if inside == "." or inside.split("/")[0] in FOLDERS else str(path)

    def moved_flags(self, flags):
        return ["-I" + self.moved(f[2:]) if f.startswith("-I") else f for f in flags]


@contextlib.contextmanager
def copied_tree(top, scratch, file=None, text=""):
    scratch.mkdir(parents=True, exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(prefix="tree", dir=scratch))
    for folder in FOLDERS:
        for at, _, names in os.walk(top / folder):
            into = place / os.path.relpath(at, top)
            into.mkdir(parents=True, exist_ok=True)
            for name in names:
                if name.endswith(SOURCES):
                    (into / name).symlink_to(os.path.join(at, name))
    if file is not None:
        (place / file).unlink()
        (place / file).write_text(text)
    try:
        yield Tree(top, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
