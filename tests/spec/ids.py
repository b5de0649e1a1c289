# SPDX-License-Identifier: BSL-1.0
"""Ids in comments mean one thing each. check.py calls wrong_ids().

A comment defines an id by a line "//   ID  text" (" *   ID  text" in a model), as the invariants at the top of a file do. Such an
id is a clause of spec/, and then its text says the same as the clause: at least a third of its words are in the clause
(remarks in parentheses do not count). Or it is of that file alone: then no clause begins with its letters, and no other
file defines an id with them. Whatever a comment cites is defined: by a clause, or in some file.
"""
import re

SOURCES = (".hpp", ".cpp", ".pml")
DEFINED = re.compile(r"^(?://| \*)   ([A-Z]{1,2}\d{1,2})  +(\S.*)$")
GOES_ON = re.compile(r"^(?://| \*)    +(\S.*)$")
COMMENT = re.compile(r"//(.*)$|/\*(.*?)\*/|^ \*(.*)$", re.M)
CITED = re.compile(r"(?<![\w\"'.+-])[A-Z]{1,2}\d{1,2}(?![\w\"'(])")
# Looks like an id in a comment, and is none: (file name, word).
OTHERS = {("adoption.pml", "E0"), ("adoption.pml", "E1")}


def letters(name):
    return name.rstrip("0123456789")


def read_definitions(text):
    """(id, its text) of every id that a comment defines."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if found := DEFINED.match(line):
            said = [found[2]]
            for after in lines[i + 1:]:
                if DEFINED.match(after) or not GOES_ON.match(after):
                    break
                said.append(GOES_ON.match(after)[1])
            yield found[1], " ".join(said)


def words(text):
    return {w[:5].lower() for w in re.findall(r"[A-Za-z]{4,}", re.sub(r"\([^()]*\)", "", text))}


def says_the_same(text, clause):
    return 3 * len(words(text) & words(clause)) >= len(words(text))


def citations(name, text):
    for found in COMMENT.finditer(text):
        yield from (c for c in CITED.findall(next(g for g in found.groups() if g is not None)) if (name, c) not in OTHERS)


def wrong_ids(top, paths, clauses):
    """paths: every file, of which those of others (subprojects) are not read. clauses: {id: its text}"""
    ours = [p for p in sorted(paths) if p.suffix in SOURCES and p.relative_to(top).parts[0] != "subprojects"]
    sources = [(p.relative_to(top).as_posix(), p.name, p.read_text(errors="replace")) for p in ours]
    taken, local, home = {letters(c) for c in clauses}, set(), {}
    for where, _, text in sources:
        for name, said in read_definitions(text):
            if name in clauses:
                if not says_the_same(said, clauses[name]):
                    yield f"{name} in {where} does not say what clause {name} says"
            elif letters(name) in taken:
                yield f"{name} in {where} is no clause, but its letters are those of clauses"
            elif home.setdefault(letters(name), where) != where:
                yield f"{name} in {where} has the letters of {home[letters(name)]}"
            else:
                local.add(name)
    for where, name, text in sources:
        yield from (f"{where} cites {c}, which nothing defines" for c in sorted(set(citations(name, text)) - local - clauses.keys()))
