# SPDX-License-Identifier: MIT
"""Op files as lines: comments, continuation, blocks, quoted texts. What the lines mean is model.py's.

    op SCHEMA {
      key words…
    }
"""

import os
import re
from dataclasses import dataclass, field

from problems import Problem

QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
WORD = re.compile(r"[A-Za-z_]\w*$")
HEAD = re.compile(r"op\s+(.*)\{$")


@dataclass
class Line:
    where: tuple  # (file, line number)
    key: str
    rest: str


@dataclass
class Declaration:
    where: tuple
    family: str  # "linalg" of ops/linalg.op
    schema: str
    lines: list = field(default_factory=list)

    def all(self, key):
        return [line for line in self.lines if line.key == key]

    def one(self, key):
        """The line of a key that occurs at most once, or None."""
        found = self.all(key)
        return found[0] if found else None


@dataclass
class OpFile:
    label: str  # "ops/linalg.op", as messages and tables name it
    family: str
    title: str  # "matrix products", from a comment "# ops/linalg.op: matrix products."
    declarations: list


def strip_comment(line):
    """The line up to a `#` that is outside quotes."""
    quoted = False
    escaped = False
    for i, c in enumerate(line):
        if escaped:
            escaped = False
        elif c == "\\" and quoted:
            escaped = True
        elif c == '"':
            quoted = not quoted
        elif c == "#" and not quoted:
            return line[:i]
    return line


def logical_lines(text, label):
    """(where, text) of each line that says something; a trailing backslash joins the next line."""
    pending, start = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = strip_comment(raw).rstrip()
        if not pending:
            start = number
        if line.endswith("\\"):
            pending += line[:-1].rstrip() + " "
            continue
        joined = (pending + line.strip()).strip()
        pending = ""
        if joined:
            yield (label, start), joined
    if pending.strip():
        yield (label, start), pending.strip()


def unquote(text, where):
    """The text of a whole quoted string; backslash escapes a quote or itself."""
    match = QUOTED.fullmatch(text.strip())
    if not match:
        raise Problem(where, 'want a text in quotes, found %s' % (text.strip() or "nothing"))
    return re.sub(r"\\(.)", r"\1", match.group(1))


def title_of(text, label):
    match = re.search(r"^#\s*%s:\s*(.+?)\.?\s*$" % re.escape(label), text, re.MULTILINE)
    return match.group(1) if match else ""


def parse_text(text, label, problems):
    family = os.path.splitext(os.path.basename(label))[0]
    declarations, current = [], None
    for where, line in logical_lines(text, label):
        if current is None:
            head = HEAD.match(line)
            if head:
                current = Declaration(where, family, head.group(1).strip())
            elif line.startswith("op ") or line == "op":
                problems.add(where, "the head of an operator ends in '{'")
            else:
                problems.add(where, "want `op SCHEMA {`, found '%s'" % line)
        elif line == "}":
            declarations.append(current)
            current = None
        elif HEAD.match(line):
            problems.add(current.where, "'}' is missing: the next operator begins at line %d" % where[1])
            declarations.append(current)
            current = Declaration(where, family, HEAD.match(line).group(1).strip())
        else:
            key, _, rest = line.partition(" ")
            if WORD.match(key):
                current.lines.append(Line(where, key, rest.strip()))
            else:
                problems.add(where, "want a line of the operator's body, found '%s'" % line)
    if current is not None:
        problems.add(current.where, "'}' is missing: the file ends")
        declarations.append(current)
    return OpFile(label, family, title_of(text, label), declarations)


def op_paths(folder):
    """(path, label) of every op file, sorted: the order of files is the order of operators."""
    base = os.path.basename(os.path.abspath(folder))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [(os.path.join(folder, name), base + "/" + name) for name in names if name.endswith(".op")]


def parse_folder(folder, problems):
    files = []
    for path, label in op_paths(folder):
        with open(path, encoding="utf-8") as file:
            files.append(parse_text(file.read(), label, problems))
    return files
