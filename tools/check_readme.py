#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that the programs shown in README.md and docs/user are the programs in examples/, which the tests run.

A block that must agree is preceded by a comment naming its file:

    <!-- file: examples/hello.c -->
    ```c
    …
    ```

`--fix` copies the files into the blocks.
"""

import argparse
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
    for line in wrong:
        print(line)
    print("readme: %d blocks, %d wrong" % (n, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
