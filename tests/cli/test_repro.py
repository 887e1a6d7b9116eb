#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tenon repro` promises: a line for each reproducer with its time, a verdict for one that does not end.

TENON_BUILD_DIR says which build to test. The last line of the output is `N passed, N failed`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_cli  # noqa: E402  (the same folder)
from test_cli import BUILD, Command, run  # noqa: E402

PROGRAMS = ["reproduce_meta_mm_hang", "reproduce_meta_mm_hang_detailed", "test_meta_vs_fake_tensor",
            "test_with_dispatch_trace", "test_hang_with_full_trace.sh", "reproduce_linear_meta_hang"]


class Repro(Command):
    def test_each_reproducer_has_a_line_with_its_time(self):
        lines = self.succeeds("repro", "--timeout=300", *PROGRAMS).stdout.splitlines()
        for name, line in zip(PROGRAMS, lines):
            self.assertRegex(line, r"^%s +ok +[\d.]+ (us|ms|s)  \S" % name)
        self.assertEqual(lines[-1], "6 of 6 returned in time with the right shape")
        measured = [line for line in lines if "[2, 4, 16] in " in line]
        self.assertEqual(len(measured), 5)
        for line in measured:
            self.assertLess(float(line.split("[2, 4, 16] in ")[1].split(" us")[0]), 1000)

    def test_one_that_does_not_end_in_time_is_killed_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            command, _ = self.place(folder, "exec sleep 1000")
            for words in ([], ["--json"]):
                result = run("repro", PROGRAMS[0], "--timeout=0.3", *words, program=command)
                self.assertEqual(result.returncode, 1)
                if words:
                    self.assertEqual([(entry["name"], entry["verdict"]) for entry in json.loads(result.stdout)],
                                     [(PROGRAMS[0], "HUNG")])
                else:
                    self.assertRegex(result.stdout, r"(?m)^%s +HUNG " % PROGRAMS[0])

    def place(self, folder, script):
        """(a copy of the command, its first reproducer, which is the script)"""
        command = os.path.join(folder, "tenon")
        shutil.copy(os.path.join(BUILD, "tenon"), command)
        os.mkdir(os.path.join(folder, "repro"))
        program = os.path.join(folder, "repro", PROGRAMS[0])
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n%s\n" % script)
        os.chmod(program, 0o755)
        return command, program

    def test_of_one_that_hangs_the_doctor_tells_where_it_is(self):
        wanted = r"verdict: .*inside the kernel of gallery::spins \[CPU\], kernel spins"
        with tempfile.TemporaryDirectory() as folder:
            # What hangs is a program that the reproducer started.
            never = os.path.join(BUILD, "repro", "gallery", "never_returns")
            command, program = self.place(folder, "echo started\n" + never)
            for words in ([], ["--json"]):
                for seconds in 2, 8, 32:  # on a busy machine it comes there late
                    result = run("repro", PROGRAMS[0], "--timeout=%d" % seconds, *words, program=command)
                    said = json.loads(result.stdout)[0]["doctor"] if words else result.stdout
                    if re.search(wanted, said or ""):
                        break
                self.assertEqual(result.returncode, 1)
                self.assertRegex(said, wanted)
                self.assertRegex(said, r"(?m)^next: +\S")
            for _ in range(600):  # what was killed goes when it gets a processor
                left = subprocess.run(["pgrep", "-f", program], capture_output=True, text=True).stdout
                if not left:
                    break
                time.sleep(0.1)
            self.assertEqual(left, "")

    def test_json_says_what_became_of_each(self):
        data = json.loads(self.succeeds("repro", *PROGRAMS[:2], "--json", "--timeout=300").stdout)
        self.assertEqual([entry["name"] for entry in data], PROGRAMS[:2])
        for entry in data:
            self.assertEqual((entry["verdict"], entry["status"]), ("ok", 0))
            self.assertIn("[2, 4, 16]", entry["said"])

    def test_wrong_usage_is_refused(self):
        self.fails(2, r"no reproducer is called 'nothing'", "repro", "nothing")
        self.fails(2, r"number of seconds above 0, not 'soon'", "repro", "--timeout=soon")
        self.fails(2, r"number of seconds above 0, not '-1'", "repro", "--timeout=-1")

    def test_the_list_names_what_is_there(self):
        names = [line.split()[0] for line in self.succeeds("repro", "--list").stdout.splitlines()]
        self.assertEqual(names[:6], PROGRAMS)

    def test_all_says_what_it_left_out(self):
        output = self.succeeds("repro", "--timeout=300", PYTHONPATH="/nonexistent", PATH="/usr/bin:/bin",
                               PYTHONNOUSERSITE="1").stdout
        if ".py " not in output:
            self.assertRegex(output, r"(?m)^5 scripts in Python were left out: ")

    def test_the_script_reports_a_program_that_hangs(self):
        script = os.path.join(BUILD, "repro", "test_hang_with_full_trace.sh")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "stuck")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho '[DEBUG Dispatcher::call] op=aten::mm' >&2\nexec sleep 1000\n")
            os.chmod(program, 0o755)
            result = subprocess.run([script, program], capture_output=True, text=True, timeout=600,
                                    env={**test_cli.ENVIRONMENT, "TRACE_TIMEOUT": "0.5"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("stuck did not return within 0.5 s", result.stdout)
        self.assertRegex(result.stdout, r"FAIL: it hangs\n$")

    def test_the_script_reports_a_program_that_fails(self):
        script = os.path.join(BUILD, "repro", "test_hang_with_full_trace.sh")
        result = subprocess.run([script, "/bin/false"], capture_output=True, text=True, timeout=600,
                                env=test_cli.ENVIRONMENT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAIL: false ended with status 1", result.stdout)


if __name__ == "__main__":
    sys.exit(test_cli.main())
