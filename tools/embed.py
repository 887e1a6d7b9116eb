#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a page of the library as C text: the style and the scripts put into the page, cut where its data goes.

  tools/embed.py NAME page.html style.css script.js... -o out.c

The page says where: a line `<!-- style -->`, a line `<!-- script -->`, and `@DATA@`. The result defines NAME_head and
NAME_tail. Lines that are only a comment, and indents, are left away: nobody reads them in the page.
"""

import argparse
import re


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeezed(text, comment):
    """Without indents, empty lines and lines that are nothing but a comment."""
    text = re.sub(r"(?ms)^\s*/\*.*?\*/\s*$", "", text)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not (comment and line.startswith(comment)))


def literal(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    # Bytes outside ASCII as octal escapes, each closed by the next string.
    encoded = "".join(c if ord(c) < 128 else "".join("\\%03o" % b for b in c.encode("utf-8")) for c in escaped)
    return '    "%s\\n"' % encoded


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("name")
    parser.add_argument("page")
    parser.add_argument("style")
    parser.add_argument("scripts", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    scripts = "\n".join(squeezed(read(path), "//") for path in args.scripts)
    page = squeezed(read(args.page), None)
    for mark, text in (("style", squeezed(read(args.style), None)), ("script", scripts)):
        if page.count("<!-- %s -->" % mark) != 1:
            raise SystemExit("%s: needs one <!-- %s -->" % (args.page, mark))
        page = page.replace("<!-- %s -->" % mark, "<%s>\n%s\n</%s>" % (mark, text, mark))
    pieces = page.split("@DATA@")
    if len(pieces) != 2:
        raise SystemExit("%s: needs one @DATA@" % args.page)
    out = ["/* SPDX-License-Identifier: MIT */", "/* Written by tools/embed.py. */",
           "extern const char %s_head[], %s_tail[];" % (args.name, args.name)]
    for part, text in zip(("head", "tail"), pieces):
        out.append("const char %s_%s[] =" % (args.name, part))
        out += [literal(line) for line in text.split("\n")]
        out[-1] += ";"
    with open(args.output, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
