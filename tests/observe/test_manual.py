#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual page of `tenon doctor` tells of every kind of verdict, in their order, and of every key of the JSON."""

import os
import re
import sys

ROOT = os.environ.get("TENON_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def section(page, name):
    """Its text, without the words of the page's language."""
    text = re.search(r'^\.SH "?%s"?\n(.*?)(?=^\.SH|\Z)' % name, page, re.M | re.S).group(1)
    return text.replace("\\-", "-")


def main():
    wrong = []
    page = read("docs/man/tenon-doctor.1")
    kinds = re.findall(r'X\([A-Z]+, "([a-z]+)"\)', read("src/observe/verdict.h"))
    told = re.findall(r"^\.TP\n\.B ([a-z]+)$", section(page, "VERDICTS"), re.M)
    if kinds != told:
        wrong.append("the page has the verdicts %s, the code has %s" % (told, kinds))
    guide = read("docs/user/doctor.md")
    wrong += ["docs/user/doctor.md does not tell of the verdict %s" % k for k in kinds if "`%s`" % k not in guide]
    code = read("src/observe/report_json.c")
    keys = set(re.findall(r'\\"([a-z_]+)\\":', code)) | set(re.findall(r'add_(?:key_string|seconds)\(s, "([a-z_]+)"', code))
    words = set(re.findall(r"[a-z_]+", section(page, "JSON")))
    wrong += ["the page does not tell of the JSON key %s" % k for k in sorted(keys - words)]
    for line in wrong:
        print("FAIL  " + line)
    print("%d verdicts, %d keys" % (len(kinds), len(keys)))
    print("%d passed, %d failed" % (not wrong, len(wrong)))
    return bool(wrong) or len(kinds) < 10 or len(keys) < 30


sys.exit(main())
