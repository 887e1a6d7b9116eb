#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what every text file of the tree promises: a licence line, no marks of unfinished work, no tabs
in C, no space at line ends, notes that exist when they are cited, switches that are always 0 or 1.

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


def check(root):
    written, cited = set(), []
    for name in tracked(root):
        is_code = name.endswith(CODE) or os.path.basename(name) in ("CMakeLists.txt", "Makefile")
        # Golden data is written by the script beside it, which carries the line.
        if not is_code or name.startswith("third_party/") or (
                name.startswith("tests/golden/") and not name.endswith(".py")):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
        if not text:
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
