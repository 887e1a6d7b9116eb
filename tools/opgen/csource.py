# SPDX-License-Identifier: MIT
"""Text of C sources: headers of files, lists that wrap, prototypes, comments, string literals."""

import textwrap

from cargs import declare

COLUMNS = 100


def banner(model, what, layer):
    """The comment on top of a generated file. LAYER may be "" for public headers and tests."""
    sources = ", ".join(file.label for file in model.files) or "no operator declarations"
    text = "Generated from %s by tools/opgen; do not edit. %s" % (sources, what)
    if layer:
        text += " Layer: %s." % layer
    lines = textwrap.wrap(text, COLUMNS - 3, break_long_words=False, break_on_hyphens=False)
    return "/* SPDX-License-Identifier: MIT */\n/* " + "\n * ".join(lines) + " */\n"


def includes(*names):
    return "".join('#include "%s"\n' % name for name in names) + "\n"


def wrapped(head, items, tail, indent=0):
    """head + "a, b, c" + tail, broken at the commas and aligned behind the head."""
    pad = " " * indent
    one = pad + head + ", ".join(items) + tail
    if len(one) <= COLUMNS or not items:
        return one + "\n"
    column = indent + len(head)
    if column > COLUMNS // 2:
        column = indent + 4
        lines, line = [pad + head.rstrip()], " " * column
    else:
        lines, line = [], pad + head
    for i, item in enumerate(items):
        last = i == len(items) - 1
        piece = item + (tail if last else ",")
        if line.strip() and line[-1] not in " (" and len(line) + 1 + len(piece) > COLUMNS:
            lines.append(line)
            line = " " * column
        line += (" " if line.strip() and line[-1] not in " (" else "") + piece
    return "\n".join(lines + [line]) + "\n"


def parameters(params):
    return [declare(ctype, name) for ctype, name in params] or ["void"]


def prototype(result, name, params, prefix="", tail=";"):
    return wrapped("%s%s%s(" % (prefix, result + ("" if result.endswith("*") else " "), name),
                   parameters(params), ")" + tail)


def function(result, name, params, body, prefix=""):
    """A definition; BODY is a list of lines or wrapped pieces, already indented."""
    text = prototype(result, name, params, prefix, "") + "{\n"
    for piece in body:
        text += piece if piece.endswith("\n") else "    " + piece + "\n"
    return text + "}\n"


def call(head, names, tail, indent=4):
    """A statement that calls: head ends in "("."""
    return wrapped(head, list(names), tail, indent)


def literal(text):
    """A C string literal."""
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?\x3f", "?\\?")
    return '"%s"' % out


def literal_lines(text, indent):
    """A long literal, one source line a text line."""
    pieces = text.split("\n")
    lines = [literal(piece + ("\n" if i < len(pieces) - 1 else "")) for i, piece in enumerate(pieces)]
    return ("\n" + " " * indent).join(lines)


def doxygen(paragraphs):
    """/** … */ of paragraphs, each a string or a list of lines that stay as they are."""
    lines = []
    for i, paragraph in enumerate(paragraphs):
        if i:
            lines.append("")
        if isinstance(paragraph, list):
            lines += paragraph
        else:
            for part in paragraph.split("\n"):
                lines += textwrap.wrap(part, COLUMNS - 3, break_long_words=False,
                                       break_on_hyphens=False) or [""]
    text = [line.replace("*/", "* /") for line in lines]
    if len(text) == 1 and len(text[0]) <= COLUMNS - 7:
        return "/** %s */\n" % text[0]
    return "/**\n" + "".join((" * " + line).rstrip() + "\n" for line in text) + " */\n"


def guard(name, body):
    return "#ifndef %s\n#define %s\n\n%s\n#endif\n" % (name, name, body.rstrip("\n") + "\n")


class Shared:
    """Functions that differ in name alone: the first is a function, the others are names for it."""

    def __init__(self):
        self.first = {}  # text without the name: name

    def add(self, result, name, params, body):
        """The definition, or the declaration of another name for one that is there."""
        text = function(result, "NAME", params, body)
        known = self.first.setdefault(text, name)
        if known == name:
            return function(result, name, params, body)
        return prototype(result, name, params, tail=' __attribute__((alias("%s")));' % known)
