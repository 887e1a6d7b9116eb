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

# Until the watchdog has spoken. It acts after that, and not at all when it spoke of an earlier place that the program has left
# by itself: then there is an end to waiting, and the program is tried again.
WAIT = """
import os, time, tenon
raises = os.environ.get("TENON_HANG_ACTION") == "raise"
def wait_for_watchdog(more):
    while os.fstat(2).st_size == 0:
        time.sleep(0.01)
    return time.monotonic() + (more * float(os.environ["TENON_HANG_TIMEOUT"]) if raises else 0)
"""

KERNEL = WAIT + """
lib = tenon.library.Library("hang", "DEF")
lib.define("slow(Tensor x) -> Tensor")
def slow(x):
    end = wait_for_watchdog(20)
    while True:
        y = x * 2
        if time.monotonic() >= end:
            return y
        time.sleep(0.01)
lib.impl("slow", slow, "CPU")
x = tenon.ones(3)
try:
    y = tenon.ops.hang.slow(x)
    print("went on", float(y.sum()))
except Exception as error:
    print("failed:", type(error).__name__, str(error).splitlines()[0])
"""

HOOK = WAIT + """
def hook(grad):
    time.sleep(max(0, wait_for_watchdog(4) - time.monotonic()))
x = tenon.ones(3, requires_grad=True)
y = (x * 2).exp()
y.register_hook(hook)
try:
    y.sum().backward()
    print("went on", float(x.grad.sum()) > 0)
except Exception as error:
    print("failed:", type(error).__name__, str(error).splitlines()[0])
"""

FORWARD = """
import os, time, tenon
class Wait(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("ready", os.getpid(), flush=True)
        time.sleep(1800)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
Wait.apply(tenon.ones(3, requires_grad=True))
"""

CHECKPOINT = """
import os, time, tenon
from tenon.utils.checkpoint import checkpoint
runs = []
def users(x):
    runs.append(1)
    if len(runs) == 2:
        print("ready", os.getpid(), flush=True)
        time.sleep(1800)
    return x * x
checkpoint(users, tenon.ones(3, requires_grad=True), use_reentrant=False).sum().backward()
"""

MODULE_HOOK = """
import os, time, tenon
def a_hook_of_the_users_with_a_long_name(module, grad_input, grad_output):
    print("ready", os.getpid(), flush=True)
    time.sleep(1800)
layer = tenon.nn.Linear(3, 3)
layer.register_full_backward_hook(a_hook_of_the_users_with_a_long_name)
layer(tenon.ones(2, 3, requires_grad=True)).sum().backward()
"""

STEP_HOOK = """
import os, time, tenon
def users(optimizer, args, kwargs):
    print("ready", os.getpid(), flush=True)
    time.sleep(1800)
parameter = tenon.nn.Parameter(tenon.ones(3))
optimizer = tenon.optim.SGD([parameter], lr=0.1)
optimizer.register_step_post_hook(users)
optimizer.step()
"""

OVERRIDE = """
import os, time, tenon
class Users(tenon.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("ready", os.getpid(), flush=True)
        time.sleep(1800)
Users([1.0]) + 1
"""

FORWARD_HOOK = """
import functools, os, time, tenon
def users(label, module, args, result):
    print("ready", os.getpid(), flush=True)
    time.sleep(1800)
layer = tenon.nn.Linear(3, 3)
layer.register_forward_hook(functools.partial(users, "first"))
layer(tenon.ones(2, 3))
"""

ASLEEP = """
import os, time, tenon
lib = tenon.library.Library("waits", "DEF")
lib.define("k(Tensor x) -> Tensor")
def kernel(x):
    print("ready", os.getpid(), flush=True)
    time.sleep(1800)
lib.impl("k", kernel, "CPU")
tenon.ops.waits.k(tenon.ones(3))
"""

BACKWARD = """
import os, time, tenon
class Wait(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        print("ready", os.getpid(), flush=True)
        time.sleep(1800)
        return grad * 2
Wait.apply(tenon.ones(3, requires_grad=True)).sum().backward()
"""

KERNEL_LOCK = """
import os, threading, tenon
lib = tenon.library.Library("waits", "DEF")
lib.define("k(Tensor x) -> Tensor")
def kernel(x):
    print("ready", os.getpid(), flush=True)
    lock.acquire()
lib.impl("k", kernel, "CPU")
lock = threading.Lock()
with lock:
    tenon.ops.waits.k(tenon.ones(3))
"""

THREADS = """
import os, threading, tenon
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def hook(mine, other):
    with mine:
        both.wait()
        print("ready", os.getpid(), flush=True)
        with other:
            pass
def work(mine, other):
    x = tenon.ones(3, requires_grad=True)
    x.register_hook(lambda grad: hook(mine, other))
    (x * 2).sum().backward()
threads = [threading.Thread(target=work, args=pair) for pair in ((first, second), (second, first))]
for thread in threads:
    thread.start()
threads[0].join()
"""

QUEUE = """
import os, queue, threading, time, tenon
threading.Thread(target=time.sleep, args=(1800,), daemon=True).start()
lib = tenon.library.Library("waits", "DEF")
lib.define("k(Tensor x) -> Tensor")
def kernel(x):
    print("ready", os.getpid(), flush=True)
    queue.Queue().get()
lib.impl("k", kernel, "CPU")
tenon.ops.waits.k(tenon.ones(3))
"""

# A thread keeps the interpreter's lock in a call of the system, outside of operators; another one calls operators.
KEEPS = """
import ctypes, os, threading, tenon
at_work = threading.Event()
def work():
    while True:
        tenon.ones(3) + 1
        at_work.set()
threading.Thread(target=work, daemon=True).start()
at_work.wait()
print("ready", os.getpid(), flush=True)
ctypes.PyDLL(None).poll(None, 0, 1800000)
"""

# Whether the system lets one program of a user look at another.
LOOK = """
import ctypes, sys
text = (ctypes.c_char * 1)()
class Piece(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("n", ctypes.c_size_t)]
open("/proc/%s/syscall" % sys.argv[1]).read()
at = int(open("/proc/%s/maps" % sys.argv[1]).readline().split("-")[0], 16)
here, there = Piece(ctypes.addressof(text), 1), Piece(at, 1)
if ctypes.CDLL(None).process_vm_readv(int(sys.argv[1]), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != 1:
    sys.exit(1)
"""

PARENT = """
import os, threading, time, tenon
lib = tenon.library.Library("hang", "DEF")
lib.define("stuck(Tensor x) -> Tensor")
def stuck(x):
    print("ready", os.getppid(), flush=True)
    time.sleep(1800)
    return x
lib.impl("stuck", stuck, "CPU")
x = tenon.ones(3)
child = os.fork()
if child == 0:
    import ctypes, signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    tenon.ops.hang.stuck(x)
def compute():
    while True:
        tenon.ones(3) + 1
threading.Thread(target=compute, daemon=True).start()
os.wait()
"""

LOCK = """
import os, threading, tenon
(tenon.ones(3) + 1).sum()
lock = threading.Lock()
lock.acquire()
print("ready", os.getpid(), flush=True)
lock.acquire(timeout=1800)
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
    time.sleep(1800)
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

    def watched(self, program, action, good, **more):
        """What the program came to: tried again with a more patient watchdog until it is `good`, because on a busy
        machine a program may stand still where it should not."""
        for seconds in 0.3, 1.2, 4.8:
            with tempfile.TemporaryFile("w+") as said:
                result = subprocess.run([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, stderr=said, text=True,
                                        timeout=600, env=self.environment(TENON_HANG_TIMEOUT=str(seconds),
                                                                          TENON_HANG_ACTION=action, **more))
                said.seek(0)
                result.stderr = said.read()
            if good(result):
                break
        return result

    def verdict(self, program, good, looks=False):
        process = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True,
                                   env=self.environment())
        try:
            pid = process.stdout.readline().split()[1]
            if looks and subprocess.run([sys.executable, "-c", LOOK, pid], stderr=subprocess.DEVNULL, timeout=600).returncode:
                print("note: the system does not let a program look at another one of the same user")
                return None
            end = time.monotonic() + 300  # the word comes a moment before the program is where it stays
            while True:
                answer = subprocess.run([TENON, "doctor", pid, "--json"], capture_output=True, text=True, timeout=600)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                verdict = json.loads(answer.stdout)["verdict"]
                child = re.search(r"tenon doctor (\d+)", verdict["next"])
                if child:
                    answer = subprocess.run([TENON, "doctor", child.group(1), "--json"], capture_output=True, text=True,
                                            timeout=600)
                    verdict["child"] = json.loads(answer.stdout)["verdict"]
                if good(verdict) or time.monotonic() > end:
                    return verdict
                time.sleep(0.1)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()

    def test_a_kernel_in_python_is_reported_and_goes_on(self):
        wanted = r"verdict: .*inside the kernel of hang::slow \[CPU\]"
        result = self.watched(KERNEL, "report", lambda result: re.search(wanted, result.stderr))
        self.assertIn("went on 6.0", result.stdout)
        self.assertRegex(result.stderr, wanted)

    def test_a_kernel_in_python_fails_at_its_next_call(self):
        result = self.watched(KERNEL, "raise", lambda result: "failed" in result.stdout)
        self.assertRegex(result.stdout, r"failed: \w+ .*interrupted by the watchdog")

    def test_a_kernel_in_python_ends_the_process_with_a_record(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hang.rec")
            result = self.watched(KERNEL, "end", lambda result: "hang::slow" in result.stderr, TENON_HANG_RECORD=path)
            self.assertEqual(result.returncode, 124, result.stderr)
            self.assertIn("native stacks", result.stderr)
            answer = subprocess.run([TENON, "doctor", path, "--verdict"], capture_output=True, text=True, timeout=600)
            self.assertRegex(answer.stdout, r"hang::slow \[CPU\].*the watchdog ended the program there")

    def test_a_hook_is_reported_and_the_pass_fails(self):
        self.assertIn("went on True", self.watched(HOOK, "report", lambda result: True).stdout)
        result = self.watched(HOOK, "raise", lambda result: "in a tensor hook" in result.stderr and "failed" in result.stdout)
        self.assertIn("in a tensor hook of a backward pass", result.stderr)
        self.assertRegex(result.stdout, r"failed: \w+ .*interrupted by the watchdog")

    def test_a_function_of_the_users_is_named_with_its_place(self):
        verdict = self.verdict(FORWARD, lambda verdict: verdict["kind"] == "callout")
        self.assertEqual(verdict["kind"], "callout")
        self.assertIn("in Wait.forward (<string>:4)", verdict["text"])
        verdict = self.verdict(BACKWARD, lambda verdict: verdict["kind"] == "pass")
        self.assertEqual(verdict["kind"], "pass")
        self.assertIn("in node WaitBackward of a backward pass, in Wait.backward (<string>:7)", verdict["text"])

    def test_a_function_that_ours_calls_is_named_with_its_place(self):
        verdict = self.verdict(CHECKPOINT, lambda verdict: "in users (" in verdict["text"] and "py-spy" in verdict["next"])
        self.assertIn("in users (<string>:5)", verdict["text"])
        self.assertIn("py-spy dump", verdict["next"])
        verdict = self.verdict(MODULE_HOOK, lambda verdict: "in a_hook" in verdict["text"] and "py-spy" in verdict["next"])
        self.assertRegex(verdict["text"], r"in a_hook_of_the_users\w*\.\. \(<string>:3\)")
        self.assertIn("py-spy dump", verdict["next"])

    def test_a_forward_hook_is_named_with_its_place(self):
        verdict = self.verdict(FORWARD_HOOK, lambda verdict: "in users (" in verdict["text"])
        self.assertIn("outside of operators, in users (<string>:3)", verdict["text"])

    def test_a_step_hook_and_an_override_are_named_with_their_places(self):
        verdict = self.verdict(STEP_HOOK, lambda verdict: "in users (" in verdict["text"])
        self.assertIn("outside of operators, in users (<string>:3)", verdict["text"])
        verdict = self.verdict(OVERRIDE, lambda verdict: "in Users." in verdict["text"])
        self.assertRegex(verdict["text"], r"outside of operators, in Users\.__torch_f\w*(\.\.)? \(<string>:4\)")

    def test_the_advice_for_a_kernel_of_pythons_is_about_python(self):
        verdict = self.verdict(ASLEEP, lambda verdict: verdict["kind"] == "blocked")
        self.assertIn("py-spy dump, python -X faulthandler, or --native", verdict["next"])
        self.assertNotIn("tn_wait_begin", verdict["next"])

    def test_a_hook_is_named_with_its_place(self):
        result = self.watched(HOOK, "report", lambda result: "in hook (<string>:" in result.stderr)
        self.assertIn("in a tensor hook of a backward pass, in hook (<string>:", result.stderr)

    def test_a_lock_that_a_kernel_waits_for_alone_is_a_deadlock(self):
        verdict = self.verdict(KERNEL_LOCK, lambda verdict: verdict["kind"] == "deadlock", looks=True)
        if verdict:
            self.assertEqual(verdict["kind"], "deadlock")
            self.assertRegex(verdict["text"], r"deadlock with itself: .*, inside the kernel of waits::k \[CPU\], kernel kernel "
                             r"\(<string>:5\), sleeps at a semaphore, as Python's locks, .*; no thread is left that could wake it")
            self.assertIn("py-spy dump", verdict["next"])

    def test_threads_that_hold_each_others_locks_are_a_deadlock(self):
        verdict = self.verdict(THREADS, lambda verdict: "; so sleeps thread" in verdict["text"], looks=True)
        if verdict:
            self.assertEqual(verdict["kind"], "deadlock")
            self.assertRegex(verdict["text"], r"in <lambda> \(<string>:12\).*; so sleeps thread \d+ .*in <lambda> \(<string>:12\)")

    def test_a_queue_that_another_thread_may_fill_is_no_deadlock(self):
        verdict = self.verdict(QUEUE, lambda verdict: "; nobody can wake it but" in verdict["text"], looks=True)
        if not verdict:
            return
        self.assertEqual(verdict["kind"], "blocked")
        self.assertRegex(verdict["text"], r" at a semaphore, as Python's .*; nobody can wake it but thread \d+ .*, which sleeps in \w+")
        self.assertIn("py-spy dump", verdict["next"])

    def test_who_keeps_the_interpreters_lock_is_named(self):
        verdict = self.verdict(KEEPS, lambda verdict: re.search(r"which sleeps in \w*poll", verdict["text"]), looks=True)
        if verdict:
            self.assertEqual(verdict["kind"], "interpreter")
            self.assertRegex(verdict["text"], r"waits for the interpreter lock, .*: thread \d+ \(.*\), without Tenon, which "
                             r"sleeps in \w*poll")
            self.assertRegex(verdict["next"], r"thread \d+ must give the interpreter lock back")

    def test_a_child_is_named_also_when_another_thread_computes(self):
        verdict = self.verdict(PARENT, lambda verdict: verdict.get("child", {}).get("kind") == "blocked")
        self.assertRegex(verdict["text"], r"thread \d+ waits for the end of its child \d+")
        self.assertEqual(verdict["child"]["kind"], "blocked")

    def test_a_lock_of_pythons_is_outside_of_tenon(self):
        verdict = self.verdict(LOCK, lambda verdict: "the main thread sleeps" in verdict["text"])
        self.assertEqual(verdict["kind"], "idle")
        self.assertRegex(verdict["text"], r"no thread is in an operator; the main thread sleeps in \w+; the last call")
        self.assertIn("py-spy dump", verdict["next"])

    def test_a_child_that_is_stuck_is_named(self):
        verdict = self.verdict(LOADER, lambda verdict: verdict.get("child", {}).get("kind") == "blocked")
        self.assertEqual(verdict["kind"], "idle")
        self.assertIn("uses Tenon, too", verdict["next"])
        self.assertEqual(verdict["child"]["kind"], "blocked")
        self.assertRegex(verdict["child"]["text"], r"inside the kernel of hang::stuck \[CPU\]")


def main():
    cache = os.path.join(BUILD, "CMakeCache.txt")
    sanitized = os.path.exists(cache) and re.search(r"^TN_SAN:\w+=.", open(cache).read(), re.M)
    if sanitized or not os.path.exists(os.path.join(BUILD, "python", "tenon")):
        print("skip all: this build has no Python package that runs without a sanitizer's help")
        print("0 passed, 0 failed, %d skipped" % unittest.defaultTestLoader.loadTestsFromTestCase(Hang).countTestCases())
        return 0
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Hang)
    result = unittest.TextTestRunner().run(suite)
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    return bad != 0


sys.exit(main())
