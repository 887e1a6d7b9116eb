#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Report the sizes of source files. Never fails: a long file with one clear job is better than two that
share it, but somebody should have looked."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_text  # noqa: E402  (the same folder)

LOOK_AT = 500


def main():
    sizes = []
    for name in check_text.tracked(check_text.ROOT):
        if name.endswith((".c", ".h", ".inc", ".py", ".cu")) and not name.startswith("tests/golden/"):
            with open(os.path.join(check_text.ROOT, name), encoding="utf-8") as file:
                sizes.append((sum(1 for _ in file), name))
    sizes.sort(reverse=True)
    for lines, name in sizes:
        if lines > LOOK_AT:
            print("%6d  %s" % (lines, name))
    middle = sizes[len(sizes) // 2][0] if sizes else 0
    print("sizes: %d files, %d lines, median %d, %d over %d lines" % (
        len(sizes), sum(lines for lines, _ in sizes), middle,
        sum(lines > LOOK_AT for lines, _ in sizes), LOOK_AT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
