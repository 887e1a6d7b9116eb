#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that the programs shown in README.md and docs/user are the programs in examples/, which the tests run, and that
the page of each layer names every file of its folder.

A block that must agree is preceded by a comment naming its file:

    <!-- file: examples/hello.c -->
    ```c
    …
    ```

`--fix` copies the files into the blocks.

Files are named in the first column of a table: `plan.c`, `iter.[ch]`, `kern/gemm*`, `kern/{exp,log}64.h`, or `alloc` for
alloc.c and alloc.h.
"""

import argparse
import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(<!-- file: (\S+) -->\n```\w*\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)


def shown(path):
    """The file without its licence line: what a reader needs to see."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"\A/\* SPDX[^\n]*\*/\n", "", text)


def check(root, name, fix, wrong):
    """Compare the blocks of one page; how many there are."""
    page = os.path.join(root, name)
    with open(page, encoding="utf-8") as file:
        text = file.read()

    def compare(match):
        path = os.path.join(root, match.group(2))
        if not os.path.isfile(path):
            wrong.append("%s shows %s, which does not exist" % (name, match.group(2)))
            return match.group(0)
        want = shown(path)
        if match.group(3) != want and not fix:
            wrong.append("%s: the block of %s differs from the file (tools/check_readme.py --fix)"
                         % (name, match.group(2)))
        return match.group(1) + want + match.group(4)

    fixed, n = BLOCK.subn(compare, text)
    if fix and fixed != text:
        with open(page, "w", encoding="utf-8") as file:
            file.write(fixed)
    return n


def named(page):
    """The names, or patterns of names, in the first columns of the tables of a page."""
    with open(page, encoding="utf-8") as file:
        cells = [line.split("|")[1] for line in file if line.startswith("|")]
    for name in re.findall(r"`([^`]+)`", "\n".join(cells)):
        several = re.match(r"(.*)\{(.*)\}(.*)", name)
        if several:
            before, choices, after = several.groups()
            yield from (before + choice + after for choice in choices.split(","))
        else:
            yield name


def check_files(root, folder, page, wrong):
    """Each source file of a folder must be named on its page, and what is named like a file must be there."""
    top = os.path.join(root, folder)
    files = [os.path.relpath(os.path.join(where, name), top)
             for where, _, names in os.walk(top) for name in names if name.endswith((".c", ".h", ".inc"))]
    if not os.path.isfile(os.path.join(root, page)):
        wrong.append("%s has no %s" % (folder, page))
        return
    names = set(named(os.path.join(root, page)))

    def fits(file, name):
        return fnmatch.fnmatchcase(file, name) or os.path.splitext(file)[0] == name

    for file in sorted(files):
        if not any(fits(file, name) for name in names):
            wrong.append("%s does not name %s" % (page, os.path.join(folder, file)))
    for name in sorted(names):
        if re.fullmatch(r"[\w/*]+\.(c|h|inc|\[ch\])", name) and not any(fits(file, name) for file in files):
            wrong.append("%s names %s, which is not in %s" % (page, name, folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--fix", action="store_true")
    args = parser.parse_args()
    wrong = []
    n = check(args.root, "README.md", args.fix, wrong)
    if n == 0:
        wrong.append("README.md has no block marked <!-- file: … -->")
    guides = os.path.join(args.root, "docs", "user")
    for name in sorted(os.listdir(guides)) if os.path.isdir(guides) else []:
        if name.endswith(".md"):
            n += check(args.root, "docs/user/" + name, args.fix, wrong)
    layers = os.path.join(args.root, "src")
    for layer in sorted(os.listdir(layers)) if os.path.isdir(layers) else []:
        folder = "src/" + layer
        check_files(args.root, folder, folder + "/README.md", wrong)
    if os.path.isdir(os.path.join(args.root, "python", "src")):
        check_files(args.root, "python/src", "docs/dev/python.md", wrong)
    for line in wrong:
        print(line)
    print("readme: %d blocks, %d wrong" % (n, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
