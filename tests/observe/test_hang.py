#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python programs that hang: in a kernel written in Python, in a hook, and where Tenon has no part in it.

What the watchdog says about them, what follows, and the doctor's verdict. TENON_BUILD_DIR says which build to test. The
last line is "N passed, N failed".
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.environ.get("TENON_BUILD_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
TENON = os.path.join(BUILD, "tenon")

KERNEL = """
import sys, time, tenon
lib = tenon.library.Library("hang", "DEF")
lib.define("slow(Tensor x) -> Tensor")
def slow(x):
    end = time.monotonic() + 0.9
    while time.monotonic() < end:
        time.sleep(0.01)
    return x * 2
lib.impl("slow", slow, "CPU")
x = tenon.ones(3)
try:
    y = tenon.ops.hang.slow(x)
    print("went on", float(y.sum()))
except Exception as error:
    print("failed:", type(error).__name__, str(error).splitlines()[0])
"""

HOOK = """
import time, tenon
x = tenon.ones(3, requires_grad=True)
y = (x * 2).exp()
y.register_hook(lambda grad: time.sleep(0.9))
try:
    y.sum().backward()
    print("went on", float(x.grad.sum()) > 0)
except Exception as error:
    print("failed:", type(error).__name__, str(error).splitlines()[0])
"""

LOCK = """
import os, threading, tenon
(tenon.ones(3) + 1).sum()
lock = threading.Lock()
lock.acquire()
print("ready", os.getpid(), flush=True)
lock.acquire(timeout=60)
"""

LOADER = """
import os, tenon
(tenon.ones(3) + 1).sum()
read, write = os.pipe()
lib = tenon.library.Library("hang", "DEF")
lib.define("stuck(Tensor x) -> Tensor")
def stuck(x):
    print("ready", os.getppid(), flush=True)
    import time
    time.sleep(60)
    return x
lib.impl("stuck", stuck, "CPU")
child = os.fork()
if child == 0:
    import ctypes, signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    tenon.ops.hang.stuck(tenon.ones(3))
os.read(read, 1)
"""


class Hang(unittest.TestCase):
    def environment(self, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
        environment.update(PYTHONPATH=os.path.join(BUILD, "python"), **more)
        return environment

    def watched(self, program, action, **more):
        return subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=60,
                              env=self.environment(TENON_HANG_TIMEOUT="0.3", TENON_HANG_ACTION=action, **more))

    def verdict(self, program):
        process = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True,
                                   env=self.environment())
        try:
            pid = process.stdout.readline().split()[1]
            time.sleep(0.2)
            answer = subprocess.run([TENON, "doctor", pid, "--json"], capture_output=True, text=True, timeout=20)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            verdict = json.loads(answer.stdout)["verdict"]
            child = re.search(r"tenon doctor (\d+)", verdict["next"])
            if child:
                answer = subprocess.run([TENON, "doctor", child.group(1), "--json"], capture_output=True, text=True,
                                        timeout=20)
                verdict["child"] = json.loads(answer.stdout)["verdict"]
            return verdict
        finally:
            process.kill()
            process.stdout.close()
            process.wait()

    def test_a_kernel_in_python_is_reported_and_goes_on(self):
        result = self.watched(KERNEL, "report")
        self.assertIn("went on 6.0", result.stdout)
        self.assertRegex(result.stderr, r"verdict: .*inside the kernel of hang::slow \[CPU\]")

    def test_a_kernel_in_python_fails_at_its_next_call(self):
        result = self.watched(KERNEL, "raise")
        self.assertRegex(result.stdout, r"failed: \w+ .*interrupted by the watchdog")

    def test_a_kernel_in_python_ends_the_process_with_a_record(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hang.rec")
            result = self.watched(KERNEL, "end", TENON_HANG_RECORD=path)
            self.assertEqual(result.returncode, 124, result.stderr)
            self.assertIn("native stacks", result.stderr)
            answer = subprocess.run([TENON, "doctor", path, "--verdict"], capture_output=True, text=True, timeout=20)
            self.assertRegex(answer.stdout, r"hang::slow \[CPU\].*the watchdog ended the program there")

    def test_a_hook_is_reported_and_the_pass_fails(self):
        self.assertIn("went on True", self.watched(HOOK, "report").stdout)
        result = self.watched(HOOK, "raise")
        self.assertIn("in a tensor hook of a backward pass", result.stderr)
        self.assertRegex(result.stdout, r"failed: \w+ .*interrupted by the watchdog")

    def test_a_lock_of_pythons_is_outside_of_tenon(self):
        verdict = self.verdict(LOCK)
        self.assertEqual(verdict["kind"], "idle")
        self.assertRegex(verdict["text"], r"no thread is in an operator; the main thread sleeps in \w+; the last call")
        self.assertIn("py-spy dump", verdict["next"])

    def test_a_child_that_is_stuck_is_named(self):
        verdict = self.verdict(LOADER)
        self.assertEqual(verdict["kind"], "idle")
        self.assertIn("uses Tenon, too", verdict["next"])
        self.assertEqual(verdict["child"]["kind"], "blocked")
        self.assertRegex(verdict["child"]["text"], r"inside the kernel of hang::stuck \[CPU\]")


def main():
    cache = os.path.join(BUILD, "CMakeCache.txt")
    sanitized = os.path.exists(cache) and re.search(r"^TN_SAN:\w+=.", open(cache).read(), re.M)
    if sanitized or not os.path.exists(os.path.join(BUILD, "python", "tenon")):
        print("skip  this build has no Python package that runs without a sanitizer's help")
        print("0 passed, 0 failed, %d skipped" % unittest.defaultTestLoader.loadTestsFromTestCase(Hang).countTestCases())
        return 0
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Hang)
    result = unittest.TextTestRunner().run(suite)
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    return bad != 0


sys.exit(main())
