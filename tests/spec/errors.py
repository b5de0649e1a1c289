#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""what() of every error has the form that docs/errors.md promises.

Read are the texts in the sources, and the places that make a usage_error, std::invalid_argument, std::system_error or
transfer_error:
- a text begins with "ramie: <function>", then ends or goes on with ": "; the function is declared in a public header, or
  is one of SYSTEM. A text may get its function from a parameter: "ramie: " + function.
- an error is made with a text. If the text is a parameter, or begins with one, whoever passes it is read instead.
- a misuse says what went wrong and, in another sentence, what to do instead. "… . Use at least 1."
- the category of an errno is std::system_category().

One line a text, "ok …" or "FAILED …"; exit code 1 if any failed. --self-test: shows that each kind of mistake is found.
"""
import pathlib
import re
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("nursery", "channel", "sync", "io", "runtime", "platform")
# Where it is not known which public function needed it: what the system was asked for.
SYSTEM = {"pthread_create", "pthread_key_create", "epoll_create1", "epoll_ctl", "eventfd", "io_uring_setup", "RAMIE_IO_BACKEND"}

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)+'", re.S)
MADE = re.compile(r"\b(usage_error|invalid_argument|system_error|transfer_error)\(")
NAME = r"(?:[a-z_0-9]+(?:::[a-z_0-9]+)?|RAMIE_IO_BACKEND)"
FORM = re.compile(rf"ramie: ({NAME})(: |\Z)")
QUALIFIED = re.compile(r"([a-z_0-9]+)::([a-z_0-9]+)(?:: .*)?\Z", re.S)
ADVICE = re.compile(r"(?:\. [A-Z]|: let ).*\.\Z", re.S)
PARAMETER = re.compile(r"(?:std::string\()?(?:what|text|otherwise)\b")


def without_comments(text):
    return TOKEN.sub(lambda m: " " if m[0].startswith("/") else m[0], text)


def arguments(text, begin):
    """The arguments of a call whose first one begins there, as written."""
    depth, found, last = 0, [], begin
    at = begin
    while at < len(text):
        token = TOKEN.match(text, at)
        if token:
            at = token.end()
            continue
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return found + [text[last:at].strip()]
            depth -= 1
        elif c == "," and depth == 0:
            found.append(text[last:at].strip())
            last = at + 1
        at += 1
    return found


def joined(literals):
    return "".join(LITERAL.findall(literals))


def shape(expression):
    """A text that is put together, with {} for what is no literal."""
    parts = [joined(p) if p.startswith('"') else "{}" for p in re.split(r"\s*\+\s*(?=[\"a-z(])", unwrapped(expression))]
    return "".join(parts)


def unwrapped(expression):
    return re.sub(r'std::string\(("(?:[^"\\\n]|\\.)*")\)', r"\1", expression)


class Page:
    def __init__(self, top, path):
        self.name = path.relative_to(top).as_posix()
        self.text = without_comments(path.read_text())
        self.asserts = [(m.start(), m.end() + len(",".join(arguments(self.text, m.end())))) for m in re.finditer(r"static_assert\(", self.text)]

    def line(self, at):
        return f"{self.name}:{self.text.count(chr(10), 0, at) + 1}"

    def in_assert(self, at):
        return any(begin <= at < end for begin, end in self.asserts)


def read_public(top):
    """The words of each public header."""
    return [set(re.findall(r"\w+", without_comments(p.read_text()))) for room in ROOMS
            for p in sorted((top / room / "include").rglob("*.hpp"))]


def declared(name, public):
    return name in SYSTEM or any(all(part in words for part in name.split("::")) for words in public)


def wrong_text(text, follows, public, page):
    """What is wrong with a literal that begins with "ramie: "; `follows` is the source behind it."""
    if text == "ramie: ":
        return None if re.match(r"\)?\s*\+", follows) else "names no function"
    form = FORM.match(text)
    if not form:
        return "does not begin with the function"
    if not declared(form[1], public):
        return f"no public header declares {form[1]}"
    whole = form[2] == ": " and not re.match(r"\)?\s*\+", follows) and not page.name.startswith("platform/")
    return "does not say what to do" if whole and not ADVICE.search(text) and "received::value" not in text else None


def check(top, say):
    public, bad = read_public(top), 0

    def result(wrong, where, what):
        nonlocal bad
        bad += bool(wrong)
        say(f"FAILED {where}: {wrong}: {what}" if wrong else f"ok {where}: {what}")

    for path in (p for room in ROOMS for p in sorted((top / room).rglob("*")) if p.suffix in (".hpp", ".cpp")):
        page = Page(top, path)
        in_system_error = set()
        for made in MADE.finditer(page.text):
            before = page.text[:made.start()].rstrip()
            if not re.search(r"(?:\b(?:throw|return)|\)\s*:)(?:\s+std::)?\Z", before):  # made, not declared
                continue
            given = arguments(page.text, made.end())
            text = given[0] if made[1] in ("usage_error", "invalid_argument") else given[-1 if made[1] == "system_error" else 1]
            if made[1] in ("system_error", "transfer_error"):
                in_system_error.update(range(made.start(), made.end() + len(",".join(given)) + 8))
            if PARAMETER.match(text):
                continue
            whole = shape(text)
            wrong = None if whole.startswith("ramie: ") else "has no text of ours"
            if not wrong and made[1] in ("usage_error", "invalid_argument"):
                wrong = None if ADVICE.search(whole) or whole.endswith("{}") else "does not say what to do"
            result(wrong, page.line(made.start()), whole)
        for literals in LITERALS.finditer(page.text):
            text = joined(literals[0])
            if page.in_assert(literals.start()) or "%" in text or "fatal: " in text:
                continue
            if text.startswith("ramie: "):
                follows = "+" if literals.start() in in_system_error else page.text[literals.end():literals.end() + 20]
                result(wrong_text(text, follows, public, page), page.line(literals.start()), text)
            elif QUALIFIED.match(text):
                name = "::".join(QUALIFIED.match(text).groups())
                result(None if declared(name, public) else f"no public header declares {name}", page.line(literals.start()), text)
        for mark in re.finditer("generic_category", page.text):
            result("not the category of an errno", page.line(mark.start()), "generic_category")
    return bad


GOOD = {
    "io/include/ramie/a.hpp": "class door { void open(); door(); };  // close\n"
    'template <class T> void knock() { static_assert(true, "ramie: whatever."); }\n',
    "io/src/a.cpp": 'void door::open() {\n  if (x) throw usage_error("ramie: door::open: it is locked. " /* a */\n "Unlock it.");\n'
    '  // throw usage_error("no");\n  throw std::system_error(errno, std::system_category(), "ramie: door::open");\n'
    '  throw usage_error(std::string("ramie: ") + function + ": " + to_string(f(1, 2)) + " doors. Use one.");\n'
    '  throw std::system_error(ec, "ramie: knock: \'" + name + "\'");\n  must(x, "ramie: knock: nobody. Wait.");\n'
    '  refuse("door::open"); or_throw("ramie: door::door"); log("ramie: %s\\n");\n  throw std::system_error(ec, what);\n}\n',
}
BROKEN = [
    ('"ramie: door::open: it', '"ramie: the door: it', "does not begin with the function"),
    ('"ramie: door::open: it', '"the door: it', "has no text of ours"),
    ("locked. ", "locked ", "does not say what to do"),
    ("nobody. Wait.", "nobody.", "does not say what to do"),
    (" doors. Use one.", " doors.", "does not say what to do"),
    ('"ramie: door::open")', '"ramie: door::close")', "no public header declares door::close"),
    ('"ramie: door::open")', '"ramie: gate::open")', "no public header declares gate::open"),
    ('"ramie: knock: \'"', '"ramie: ring: \'"', "no public header declares ring"),
    ('refuse("door::open")', 'refuse("door::shut")', "no public header declares door::shut"),
    (', "ramie: door::open")', ")", "has no text of ours"),
    ("std::system_category(), ", "std::generic_category(), ", "not the category of an errno"),
    ('or_throw("ramie: door::door")', 'or_throw("ramie: ")', "names no function"),
]


def try_out(old, new):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GOOD.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new, 1) if name.endswith("cpp") and old else text)
        said = []
        return check(pathlib.Path(folder), said.append), said


def self_test():
    bad, said = try_out("", "")
    failures = int(bad != 0 or len(said) < 8)
    print("ok good texts pass" if not failures else "FAILED good texts pass\n" + "\n".join(said))
    for old, new, expected in BROKEN:
        bad, said = try_out(old, new)
        found = any(line.startswith("FAILED") and expected in line for line in said)
        failures += not found
        print(f"{'ok' if found else 'FAILED'} found: {expected}" + ("" if found else "\n" + "\n".join(said)))
    return failures


if __name__ == "__main__":
    sys.exit(1 if (self_test() if "--self-test" in sys.argv else check(TOP, print)) else 0)
