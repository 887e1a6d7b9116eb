#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that libtenon.so exports exactly what the public headers declare with TN_API.

A function that is declared and not exported cannot be linked; one that is exported and not declared is
API by accident. `--list` prints the symbols, for a look at what a change added. Also reported, never
failed: the library's writable data, which should stay small (style: no mutable globals but few).

  tools/check_symbols.py --library build/libtenon.so [--gen build/gen] [--cc cc] [--list]
"""

import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_headers  # noqa: E402  (the same folder)

# What TN_API becomes with TN_SHARED, up to the end of the declaration.
DECLARATION = re.compile(r'__attribute__\(\(visibility\("default"\)\)\)([^;{]*)[;{]')
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")


def declared(root, gen, cc):
    """{name: header that declares it}"""
    folders = check_headers.header_folders(root, gen)
    names = {}
    for folder, header in check_headers.headers_of(folders):
        command = [cc, "-x", "c", "-std=c11", "-DTN_SHARED", "-E"]
        command += [flag for path in folders for flag in ("-I", path)] + ["-"]
        text = subprocess.run(command, input='#include "%s"\n' % header, capture_output=True, text=True,
                              check=True).stdout
        # Line markers say which file each piece comes from: keep the header's own.
        pieces = re.split(r'^# \d+ "([^"]*)".*$', text, flags=re.MULTILINE)
        own = "".join(piece for file, piece in zip(pieces[1::2], pieces[2::2])
                      if os.path.normpath(file) == os.path.normpath(os.path.join(folder, header)))
        for match in DECLARATION.finditer(own):
            body = ATTRIBUTE.sub(" ", match.group(1))
            name = re.search(r"\b(\w+)\s*(?:\(|\[|=|$)", body.strip())
            if name:
                names[name.group(1)] = header
    return names


def exported(library):
    output = subprocess.run(["nm", "-D", "--defined-only", "--without-symbol-versions", library],
                            capture_output=True, text=True, check=True).stdout
    # Type A is the version node itself.
    return {words[-1] for words in map(str.split, output.splitlines()) if words[-2] != "A"}


def writable(library):
    output = subprocess.run(["nm", "-S", "--defined-only", library], capture_output=True, text=True,
                            check=True).stdout
    rows = [words for words in map(str.split, output.splitlines())
            if len(words) == 4 and words[2] in "bBdD" and not words[3].startswith("__")]
    return sorted(((int(size, 16), name) for _, size, _, name in rows), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=check_headers.ROOT)
    parser.add_argument("--library", required=True)
    parser.add_argument("--gen", default="")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    want = declared(args.root, args.gen, args.cc)
    have = exported(args.library)
    problems = ["%s: exported, but no public header declares it" % name for name in sorted(have - set(want))]
    problems += ["%s: declared in %s, but not exported" % (name, want[name])
                 for name in sorted(set(want) - have)]
    if args.list:
        print("\n".join(sorted(have)))
    for problem in problems:
        print(problem)
    data = writable(args.library)
    print("writable data: %d bytes in %d objects; largest: %s" % (
        sum(size for size, _ in data), len(data),
        ", ".join("%s %d" % (name, size) for size, name in data[:5]) or "none"))
    print("symbols: %d exported, %d wrong" % (len(have), len(problems)))
    return 1 if problems or not have else 0


if __name__ == "__main__":
    sys.exit(main())
