#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everything that can be said about the tree without running it: formatting, shell scripts, layers,
headers, symbols, texts; file sizes as a report. A tool that is not installed is named and skipped.

  tools/lint.py [--build build]   check
  tools/lint.py --format          let clang-format rewrite the C sources
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_text  # noqa: E402  (the same folder)

ROOT = check_text.ROOT
# Other versions of clang-format format differently.
CLANG_FORMAT_MAJOR = "14"
PLACE = re.compile(r"^(\S+?):\d+:\d+: error: code should be")


def clang_format():
    for name in ("clang-format-" + CLANG_FORMAT_MAJOR, "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if "version %s." % CLANG_FORMAT_MAJOR in version:
                return path
    return None


def c_files():
    return [name for name in check_text.tracked(ROOT)
            if name.endswith((".c", ".h", ".inc")) and not name.startswith(("third_party/", "tests/golden/"))]


def shell_files():
    files = []
    for name in check_text.tracked(ROOT):
        if name.endswith(".sh") or name.startswith(".ci/"):
            files.append(name)
    return files


def python(script, *arguments):
    return [sys.executable, "-B", os.path.join("tools", script)] + list(arguments)


def steps(build):
    """(name, command, or why it is skipped)"""
    formatter = clang_format()
    files = c_files()
    yield ("formatting", [formatter, "--dry-run", "--Werror"] + files if formatter else
           "clang-format %s is not installed (tools/deps.sh lint)" % CLANG_FORMAT_MAJOR)
    yield ("shell", ["shellcheck", "--severity=warning"] + shell_files() if shutil.which("shellcheck") else
           "shellcheck is not installed (tools/deps.sh lint)")
    yield "text", python("check_text.py")
    yield "readme", python("check_readme.py")
    gen = os.path.join(build, "gen")
    yield "layers", python("check_layers.py", "--gen", gen)
    yield "headers", python("check_headers.py", "--gen", gen)
    library = os.path.join(build, "libtenon.so")
    yield ("symbols", python("check_symbols.py", "--library", library, "--gen", gen)
           if os.path.exists(library) else "%s is not built yet (make)" % library)
    yield "sizes", python("check_sizes.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--format", action="store_true")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    os.chdir(ROOT)
    if args.format:
        formatter = clang_format()
        if not formatter:
            print("clang-format %s is not installed: tools/deps.sh lint" % CLANG_FORMAT_MAJOR)
            return 1
        return subprocess.run([formatter, "-i"] + c_files()).returncode
    wrong = []
    for name, command in steps(build):
        if isinstance(command, str):
            print("%-10s skipped: %s" % (name, command))
            continue
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = result.stdout.rstrip().split("\n")
        if name == "formatting" and result.returncode:
            places = collections.Counter(match.group(1) for match in map(PLACE.match, lines) if match)
            lines = ["%s: %d places" % place for place in sorted(places.items())] or lines
        summary = lines[-1] if name not in ("formatting", "shell") else ""
        print("%-10s %s  %s" % (name, "WRONG" if result.returncode else "ok", summary))
        if result.returncode or name == "sizes":
            for line in lines[:200]:
                print("    " + line)
        if result.returncode:
            wrong.append(name)
        sys.stdout.flush()
    print("lint: %s" % ("wrong: " + ", ".join(wrong) if wrong else "all well"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
