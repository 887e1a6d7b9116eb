#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/user shows in C compiles, runs, and says what the page says that it says; what it shows in Python runs.

usage: test_pages.py BUILD COMPILER

Blocks that are a file of examples/ are left out: those are programs of their own, and compared by tools/check_readme.py. A
fragment stands in a function, between what around.h declares; lines before a line of "…" that begin with "static" stand in
front of it.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD, COMPILER = os.path.abspath(sys.argv[1]), sys.argv[2]
BLOCK = re.compile(r"(<!-- file: \S+ -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What fragments leave as the last error, and print: all others leave none.
ERRORS = {("fake.md", 0): r"device", ("c-api.md", 0): r"cannot be multiplied \(2x3 and 4x5\)"}
PRINTED = {("c-api.md", 0): r"aten::mm: mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)\n", ("profiler.md", 0): r"aten::mm failed at \d+ ns"}


def blocks(language):
    """(page, number, text) of each block, those of files left out."""
    for page in sorted(glob.glob(os.path.join(ROOT, "docs", "user", "*.md"))):
        with open(page, encoding="utf-8") as file:
            found = [match for match in BLOCK.finditer(file.read()) if match.group(2) == language and not match.group(1)]
        for number, match in enumerate(found):
            yield os.path.basename(page), number, match.group(3)


def program(page, number, text):
    includes = re.findall(r"^#include .*\n", text, re.MULTILINE)
    text = re.sub(r"^#include .*\n", "", text, flags=re.MULTILINE)
    before, inside = "", text
    if text.lstrip().startswith("static") and "\n…\n" in text:
        before, inside = text.split("\n…\n", 1)
    return "%s#include \"around.h\"\n%s\nstatic tn_status fragment(void)\n{\n%s\nreturn TN_OK;\n}\n" \
           "int main(void)\n{\nbegin(\"%s\", %d);\ntn_status status = fragment();\nfflush(stdout);\n" \
           "if (tn_last_status() != TN_OK) puts(tn_last_error());\nreturn status != TN_OK;\n}\n" % (
               "".join(includes), before, inside.replace("\n…\n", "\n"), page, number)


class Pages(unittest.TestCase):
    def run_fragment(self, folder, page, number, text):
        source, binary = os.path.join(folder, "fragment.c"), os.path.join(folder, "fragment")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program(page, number, text))
        # Statuses are not looked at in fragments, and not all of what is around is used.
        done = subprocess.run([COMPILER, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-result",
                               "-I", HERE, "-I", os.path.join(ROOT, "include"), "-I", os.path.join(BUILD, "gen", "include"),
                               source, "-o", binary, "-L", BUILD, "-ltenon", "-lm", "-lpthread", "-Wl,-rpath," + BUILD],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = subprocess.run([binary], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr + done.stdout, PRINTED.get((page, number), r"\A"))
        last = done.stdout.splitlines()[-1] if (page, number) in ERRORS else ""
        if (page, number) in ERRORS:
            self.assertRegex(last, ERRORS[page, number])
        elif (page, number) not in PRINTED:
            self.assertEqual(done.stderr + done.stdout, "")

    def test_fragments_of_c_compile_and_run(self):
        found = list(blocks("c"))
        self.assertGreater(len(found), 8)
        with tempfile.TemporaryDirectory() as folder:
            for page, number, text in found:
                with self.subTest(page=page, fragment=number):
                    self.run_fragment(folder, page, number, text)

    @unittest.skipUnless(glob.glob(os.path.join(BUILD, "python", "tenon", "_C*.so")), "the Python package was not built")
    def test_blocks_of_python_run(self):
        pages = {}
        for page, _, text in blocks("python"):
            pages.setdefault(page, []).append(text)
        self.assertGreater(len(pages), 2)
        for page, texts in pages.items():
            with self.subTest(page=page):
                done = subprocess.run([sys.executable, "-B", "-c", "\n".join(texts)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, timeout=120, env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python")))
                if "No module named 'numpy'" in done.stderr:
                    self.skipTest("%s: there is no numpy" % page)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
