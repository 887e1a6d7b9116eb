#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of tools/check_*.py and tools/test.py: each must find the mistake that it is there for."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_headers  # noqa: E402
import check_layers  # noqa: E402
import check_readme  # noqa: E402
import check_symbols  # noqa: E402
import check_text  # noqa: E402
import test as runner  # noqa: E402

LAYERS = "base 0\ncore 1\nobserve 1\ndispatch 3\ngen/redispatch.h dispatch\n"
# Built from pieces, so that check_text.py does not find it here.
MARK = "TO" + "DO"


class Tree(unittest.TestCase):
    """A small source tree that each test breaks in one place."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.write("tools/layers.txt", LAYERS)
        self.write("include/tenon/base.h", "/* SPDX-License-Identifier: MIT */\nint tn_f(void);\n")
        self.write("src/base/a.h", "/* SPDX-License-Identifier: MIT */\n")
        self.write("src/core/a.h", "/* SPDX-License-Identifier: MIT */\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def layers(self):
        return list(check_layers.check(self.root))


class Layers(Tree):
    def test_downward_includes_are_fine(self):
        self.write("src/core/t.c", '#include "core/a.h"\n#include "base/a.h"\n#include <stdio.h>\n'
                                   '#include "tenon/base.h"\n')
        self.assertEqual(self.layers(), [])

    def test_an_upward_include_is_found_with_its_line(self):
        self.write("src/base/t.c", '\n#include "core/a.h"\n')
        self.assertEqual(self.layers(),
                         ["src/base/t.c:2: base (level 0) includes core/a.h (level 1)"])

    def test_neighbours_do_not_know_each_other(self):
        self.write("src/observe/t.c", '#include "core/a.h"\n')
        self.assertEqual(len(self.layers()), 1)

    def test_an_upward_include_in_angle_brackets_is_found(self):
        self.write("src/base/t.c", "#include <core/a.h>\n")
        self.assertEqual(len(self.layers()), 1)

    def test_climbing_is_found(self):
        self.write("src/base/t.c", '#include "../core/a.h"\n')
        self.assertEqual(len(self.layers()), 1)

    def test_generated_headers_have_a_layer(self):
        self.write("src/dispatch/t.c", '#include "gen/redispatch.h"\n')
        self.assertEqual(self.layers(), [])
        self.write("src/core/t.c", '#include "gen/redispatch.h"\n')
        self.assertEqual(len(self.layers()), 1)
        self.write("src/core/t.c", '#include "gen/unknown.h"\n')
        self.assertEqual(len(self.layers()), 1)

    def test_generated_sources_are_checked_as_their_layers(self):
        self.write("src/core/CMakeLists.txt", "tn_layer(core SOURCES a.c\n  GENERATED x.c y.c)\n")
        self.write("gen/y.c", '#include "dispatch/a.h"\n')
        self.assertEqual(len(list(check_layers.check(self.root, os.path.join(self.root, "gen")))), 1)

    def test_a_folder_without_a_level_is_found(self):
        self.write("src/misc/t.c", "")
        self.assertEqual(self.layers(), ["src/misc: not in tools/layers.txt"])

    def test_a_public_header_that_includes_an_internal_one_is_found(self):
        self.write("include/tenon/x.h", '#include "base/a.h"\n')
        self.assertEqual(len(self.layers()), 1)

    def test_users_see_public_headers_only(self):
        self.write("cli/main.c", '#include "tenon/base.h"\n#include "own.h"\n')
        self.write("cli/own.h", "")
        self.assertEqual(self.layers(), [])
        self.write("examples/x.c", '#include "core/a.h"\n')
        self.assertEqual(len(self.layers()), 1)
        self.write("tools/layers.txt", LAYERS + "examples/x.c inside\n")
        self.assertEqual(self.layers(), [])


class Headers(Tree):
    def check(self):
        return list(check_headers.check(self.root, "", "cc", "c++"))

    def test_a_clean_header_passes(self):
        self.assertEqual(self.check(), [])

    def test_a_header_that_needs_another_is_found(self):
        self.write("include/tenon/x.h", "size_t tn_g(void);\n")
        self.assertEqual(len(self.check()), 2)

    def test_a_header_that_is_no_cxx_is_found(self):
        self.write("include/tenon/x.h", "int tn_g(int class);\n")
        self.assertEqual(len(self.check()), 1)

    def test_headers_that_do_not_go_together_are_found(self):
        self.write("include/tenon/x.h", "typedef int tn_g;\n")
        self.write("include/tenon/y.h", "typedef long tn_g;\n")
        self.assertEqual([problem.split(":")[0] for problem in self.check()],
                         ["the headers do not compile together as C11", "the headers do not compile together as C++17"])

    def test_an_internal_name_is_found(self):
        self.write("include/tenon/x.h", "int tni_g(void);\n")
        self.assertEqual(len(self.check()), 1)


class Symbols(Tree):
    def test_declarations_are_read_through_attributes(self):
        self.write("include/tenon/x.h",
                   '#define API __attribute__((visibility("default")))\n'
                   'API __attribute__((warn_unused_result)) int tn_a(int (*f)(void), const char *x);\n'
                   'API const char *tn_b(void);\n'
                   'API int tn_c(const char *f, ...) __attribute__((format(printf, 1, 2)));\n'
                   'static inline int tn_d(void) { return 0; }\n'
                   'API extern const int tn_e[3];\n')
        self.assertEqual(sorted(check_symbols.declared(self.root, "", "cc")),
                         ["tn_a", "tn_b", "tn_c", "tn_e"])


class Text(Tree):
    def check(self):
        return list(check_text.check(self.root))

    def test_clean_files_pass(self):
        self.write("src/base/t.c", "/* SPDX-License-Identifier: MIT */\n/* Note [Counts] */\n"
                                   "/* see Note [Counts] */\n")
        self.assertEqual(self.check(), [])

    def test_each_mistake_is_found(self):
        first = "/* SPDX-License-Identifier: MIT */\n"
        for text in ("int x;\n", first + "int x;", first + "int x; \n", first + "\tint x;\n",
                     first + "/* %s */\n" % MARK, first + "/* see Note [Nowhere] */\n",
                     first + "#ifdef TN_STRESS\n"):
            self.write("src/base/t.c", text)
            self.assertEqual(len(self.check()), 1, text)


    def test_what_is_named_or_linked_to_must_be_there(self):
        first = "/* SPDX-License-Identifier: MIT */\n"
        self.write("docs/user/a.md", "[b](b.md#part) [out](https://x.y/z) [up](../../include/tenon) x[1](2,3) `[no](where)`\n"
                                     "```c\na[i](j);\n```\n")
        self.write("docs/user/b.md", "tenon/base.h, `tenon/ops.h`\n")
        self.write("src/base/t.c", first + "/* docs/user/a.md and tenon/base.h */\n")
        self.assertEqual(self.check(), [])
        self.write("docs/user/b.md", "\nsee [c](c.md)\n")
        self.write("docs/man/t.1", "tenon/gone.h\n")
        self.write("src/base/t.c", first + "/* docs/user/gone.md */\n")
        self.assertEqual(self.check(), ["docs/man/t.1:1: tenon/gone.h does not exist",
                                        "docs/user/b.md:2: the link to c.md leads nowhere",
                                        "src/base/t.c:2: docs/user/gone.md does not exist"])


class Readme(Tree):
    def setUp(self):
        super().setUp()
        self.write("README.md", "<!-- file: examples/hello.c -->\n```c\nint main(void);\n```\n")
        self.write("examples/hello.c", "int main(void);\n")
        for layer in ("base", "core"):
            self.write("src/%s/README.md" % layer, "| `a.[ch]` | job |\n")

    def run_check(self, *arguments):
        old = sys.argv
        sys.argv = ["check_readme.py", "--root", self.root] + list(arguments)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return check_readme.main()
        finally:
            sys.argv = old

    def test_a_block_that_differs_is_found_and_can_be_fixed(self):
        self.write("examples/hello.c", "/* SPDX-License-Identifier: MIT */\nint main(void);\n")
        self.write("README.md", "x\n<!-- file: examples/hello.c -->\n```c\nold\n```\nend\n")
        self.assertEqual(self.run_check(), 1)
        self.assertEqual(self.run_check("--fix"), 0)
        self.assertEqual(self.run_check(), 0)
        with open(os.path.join(self.root, "README.md"), encoding="utf-8") as file:
            self.assertIn("```c\nint main(void);\n```\nend\n", file.read())

    def test_a_file_must_be_named_by_the_page_of_its_layer(self):
        self.write("src/base/kern/b64.h", "")
        self.assertEqual(self.run_check(), 1)
        for name in ("kern/b64.h", "kern/b*", "{a,kern/b64}.h", "kern/b64"):
            self.write("src/base/README.md", "| file | job |\n|---|---|\n| `a.h`, `%s` | job |\n" % name)
            self.assertEqual(self.run_check(), 0, name)
        self.write("src/base/README.md", "`kern/b64.h` in a sentence is no job.\n\n| `a.h` | `kern/b64.h` |\n")
        self.assertEqual(self.run_check(), 1)

    def test_a_layer_needs_a_page(self):
        self.assertEqual(self.run_check(), 0)
        os.remove(os.path.join(self.root, "src/core/README.md"))
        self.assertEqual(self.run_check(), 1)

    def test_a_page_must_not_name_a_file_that_is_gone(self):
        self.write("src/base/README.md", "| `a.h`, `gone.[ch]` | job |\n")
        self.assertEqual(self.run_check(), 1)


class Totals(unittest.TestCase):
    def section(self, number, name, output, ok):
        return "%d/3 Testing: %s\nOutput:\n%s\n<end of output>\nTest %s.\n" % (
            number, name, output, "Passed" if ok else "Failed")

    def count(self, *sections):
        passed, failed, skipped, bad = runner.count("Start testing\n" + "".join(sections))
        return passed, failed, len(skipped), [name for name, _ in bad]

    def test_lines_of_programs_are_added(self):
        self.assertEqual(self.count(self.section(1, "a", "x\n3 passed, 0 failed", True),
                                    self.section(2, "b", "4 passed, 2 failed", False)),
                         (7, 2, 0, ["b"]))

    def test_skipped_tests_are_counted_apart(self):
        self.assertEqual(self.count(self.section(1, "a", "3 passed, 0 failed, 2 skipped", True)),
                         (3, 0, 2, []))

    def test_each_skipped_test_has_its_reason(self):
        log = (self.section(1, "a", "skip one: no locale\nskipped: x.Two: no browser\n3 passed, 0 failed, 2 skipped", True)
               + self.section(2, "b", "skip all: no package\n0 passed, 0 failed, 2 skipped", True)
               + self.section(3, "c", "1 passed, 0 failed, 1 skipped", True))
        self.assertEqual(runner.count("Start testing\n" + log)[2],
                         [("a", "one", "no locale"), ("a", "x.Two", "no browser"), ("b", "all", "no package"),
                          ("b", "all", "no package"), ("c", "a test", "it gave no reason")])

    def test_a_program_without_a_line_counts_one(self):
        self.assertEqual(self.count(self.section(1, "a", "fine", True),
                                    self.section(2, "b", "boom", False)), (1, 1, 0, ["b"]))

    def test_a_program_that_fails_after_its_line_counts_as_failed(self):
        self.assertEqual(self.count(self.section(1, "a", "3 passed, 0 failed\nleak", False)),
                         (3, 1, 0, ["a"]))

    def test_what_a_program_that_fails_said_is_kept(self):
        said = "ok   one\ntest.c:3: two: wrong\n" + "".join("line %d\n" % i for i in range(500)) + "1 passed, 1 failed"
        log = self.section(1, "a", said, False) + self.section(2, "b", "x" * 5000, False)
        (_, first), (_, second) = runner.count("Start testing\n" + log)[3]
        self.assertIn("test.c:3: two: wrong\n", first)
        self.assertTrue(first.endswith("1 passed, 1 failed"))
        self.assertNotIn("ok   one", first)
        self.assertLess(len(first.split("\n")), 100)
        self.assertLess(len(second), 600)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed))
    sys.exit(1 if failed else 0)
