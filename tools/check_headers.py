#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that each public header compiles alone, and all together, as C11 with -Wpedantic and as C++17, without
warnings, and that no internal name (tni_, TNI_) appears in one.

  tools/check_headers.py [--gen build/gen] [--cc cc] [--cxx c++]
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INTERNAL = re.compile(r"\btni_|\bTNI_")
LANGUAGES = {"c": "C11", "c++": "C++17"}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Wshadow", "-Wconversion", "-Werror"]


def header_folders(root, gen):
    folders = [os.path.join(root, "include")]
    if gen and os.path.isdir(os.path.join(gen, "include", "tenon")):
        folders.append(os.path.join(gen, "include"))
    return folders


def headers_of(folders):
    """(folder, "tenon/x.h") of every public header."""
    for folder in folders:
        for name in sorted(os.listdir(os.path.join(folder, "tenon"))):
            if name.endswith(".h"):
                yield folder, "tenon/" + name


def compile_headers(compiler, language, headers, folders):
    """Errors of compiling a file that includes HEADERS, in that order, and nothing else; "" when there are none."""
    text = "".join('#include "%s"\n' % header for header in headers) + "int tn_check_headers_dummy;\n"
    command = [compiler, "-x", language, "-fsyntax-only"] + WARNINGS
    command += ["-std=c11", "-Wstrict-prototypes"] if language == "c" else ["-std=c++17"]
    command += [flag for folder in folders for flag in ("-I", folder)] + ["-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.stderr if result.returncode else ""


def check(root, gen, cc, cxx):
    folders = header_folders(root, gen)
    alone = True
    for folder, header in headers_of(folders):
        path = os.path.join(folder, header)
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if INTERNAL.search(line):
                    yield "%s:%d: internal name in a public header: %s" % (
                        os.path.relpath(path, root), number, line.strip())
        for compiler, language in ((cc, "c"), (cxx, "c++")):
            errors = compile_headers(compiler, language, [header, header], folders)
            if errors:
                alone = False
                yield "%s does not compile alone as %s:\n%s" % (header, LANGUAGES[language], errors.rstrip())
    headers = [header for folder, header in headers_of(folders)]
    for compiler, language in ((cc, "c"), (cxx, "c++")):
        errors = alone and compile_headers(compiler, language, headers, folders)
        if errors:
            yield "the headers do not compile together as %s:\n%s" % (LANGUAGES[language], errors.rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--gen", default="")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"))
    args = parser.parse_args()
    problems = list(check(args.root, args.gen, args.cc, args.cxx))
    for problem in problems:
        print(problem)
    n = len(list(headers_of(header_folders(args.root, args.gen))))
    print("headers: %d checked, %d wrong" % (n, len(problems)))
    return 1 if problems or n == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
