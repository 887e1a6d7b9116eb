#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what every text file of the tree promises: a licence line, no marks of unfinished work, no tabs
in C, no space at line ends, notes that exist when they are cited, switches that are always 0 or 1; and that the pages
and public headers which it names are there, and what its pages link to.

  /* Note [Counts] … */ is written once, and cited elsewhere as: see Note [Counts]
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = (".c", ".h", ".inc", ".cu", ".cpp", ".py", ".sh", ".cmake", ".op")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
NOTE_CITED = re.compile(r"\b[Ss]ee Note \[([^\]]+)\]")
NOTE_WRITTEN = re.compile(r"^[\s/*#]*Note \[([^\]]+)\]", re.MULTILINE)
# `#if defined(X) && X` is fine: it lets a file compile without the build's flags.
SWITCH = re.compile(r"^\s*#\s*(?:ifdef|ifndef)\s+(TN_WITH_\w+|TN_STRESS)\b")


def tracked(root):
    """Files that git knows or would know; where there is no git, all files."""
    try:
        output = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout
        names = output.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [os.path.relpath(os.path.join(path, name), root)
                 for path, folders, found in os.walk(root)
                 if not re.search(r"(^|/)(\.git|build[^/]*)(/|$)", os.path.relpath(path, root))
                 for name in found]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(root, name)))


# A page, or a header as users include it.
NAMED = re.compile(r"(?<![\w./-])(docs/[\w/-]+\.md|tenon/\w+\.h)\b")
GENERATED = ("tenon/ops.h", "tenon/kernels.h")
LINK = re.compile(r"(?<![\w\]])\[[^\]]*\]\((?!\w+:)([^)#\s]+)[^)\s]*\)")
QUOTED = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
PAGES = (".md", ".1", ".3")


def check_names(root, name, text):
    """What the file names or links to, and is not there."""
    if name.startswith(("tools/check_", "tools/test_checks")):
        return
    found = [(match.start(), match.group(1)) for match in NAMED.finditer(text)]
    for start, other in found:
        folder = "include" if other.startswith("tenon/") else ""
        if other not in GENERATED and not os.path.isfile(os.path.join(root, folder, other)):
            yield "%s:%d: %s does not exist" % (name, text.count("\n", 0, start) + 1, other)
    if name.endswith(".md"):
        plain = QUOTED.sub(lambda quoted: re.sub(r"[^\n]", " ", quoted.group(0)), text)
        for match in LINK.finditer(plain):
            if not os.path.exists(os.path.join(root, os.path.dirname(name), match.group(1))):
                yield "%s:%d: the link to %s leads nowhere" % (
                    name, plain.count("\n", 0, match.start()) + 1, match.group(1))


def check(root):
    written, cited = set(), []
    for name in tracked(root):
        is_code = name.endswith(CODE) or os.path.basename(name) in ("CMakeLists.txt", "Makefile")
        # Golden data is written by the script beside it, which carries the line.
        is_page = name.endswith(PAGES)
        if not (is_code or is_page) or name.startswith("third_party/") or (
                name.startswith("tests/golden/") and not name.endswith((".py", ".md"))):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
        if not text:
            continue
        yield from check_names(root, name, text)
        if not is_code:
            continue
        lines = text.split("\n")
        if not any("SPDX-License-Identifier: MIT" in line for line in lines[:3]):
            yield "%s:1: no SPDX-License-Identifier line" % name
        if lines[-1] != "":
            yield "%s:%d: no newline at the end" % (name, len(lines))
        written.update(NOTE_WRITTEN.findall(text))
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                yield "%s:%d: mark of unfinished work" % (name, number)
            if line != line.rstrip():
                yield "%s:%d: space at the end of the line" % (name, number)
            if name.endswith((".c", ".h", ".inc", ".cu")):
                if "\t" in line:
                    yield "%s:%d: tab" % (name, number)
                switch = SWITCH.match(line)
                if switch:
                    yield "%s:%d: %s is always defined, as 0 or 1: use #if" % (name, number,
                                                                              switch.group(1))
            if not name.endswith(("check_text.py", "test_checks.py")):
                cited += [(note, name, number) for note in NOTE_CITED.findall(line)]
    for note, name, number in cited:
        if note not in written:
            yield "%s:%d: Note [%s] is cited and not written anywhere" % (name, number, note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=ROOT)
    problems = list(check(parser.parse_args().root))
    for problem in problems:
        print(problem)
    print("text: %d wrong" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
