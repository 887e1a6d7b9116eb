# SPDX-License-Identifier: MIT
"""Every part of the extension survives every allocation failing: an exception, nothing half done, and the same call works
afterwards. The pieces are in memory_cases.py; what fails is chosen by failing_malloc.c, which is loaded before all else."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import unittest

import harness

LIBRARY = os.environ.get("TENON_FAILING_MALLOC") or os.path.join(
    os.environ.get("TENON_BUILD_DIR", "build"), "tests", "python", "failing_malloc.so")
MOST, ROUNDS = 3000, 6


class Failing:
    def __init__(self, extension):
        library = ctypes.CDLL(LIBRARY)
        self.arm, self.disarm, self.live = library.failing_arm, library.failing_disarm, library.failing_live
        self.arm.restype, self.arm.argtypes = None, [ctypes.c_long]
        self.disarm.restype = self.live.restype = ctypes.c_long
        wrong = library.failing_prepare(os.path.basename(extension).encode())
        assert wrong == 0, wrong

    def run(self, piece, k):
        """(result, exception, allocations tried) with the k-th allocation failing. On a thread of its own: the library
        keeps blocks for the next tensor of a thread, and a new one has none."""
        box = []

        def body():
            self.arm(k)
            try:
                result, error = piece(), None
            except BaseException as e:
                result, error = None, e.with_traceback(None)
            box.append((result, error, self.disarm()))
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return box[0]


def is_ours(error):
    """Whether an exception is none that memory explains: CPython says so of functions that break its rules."""
    return isinstance(error, SystemError) and "tenon._C" in str(error)


def leaks(failing, piece, k):
    """Whether every call leaves a block. CPython's own tables grow now and then too, but not with every call of hundreds:
    a few calls clear most of what is innocent."""
    for rounds in (ROUNDS, 100, 200, 400):
        gc.collect()
        before = failing.live()
        for _ in range(rounds):
            failing.run(piece, k)
        gc.collect()
        if failing.live() - before < rounds:
            return False
    return True


def try_case(failing, tenon, name, cases):
    piece, check = cases.CASES[name](tenon)
    for _ in range(3):
        expected, error, _ = failing.run(piece, MOST)
        if error is not None or not check(False):
            return ["%s: without failures: %r" % (name, error)], 0
    wrong = []
    for k in range(MOST):
        print("at", name, k, flush=True)
        result, error, tried = failing.run(piece, k)
        if tried <= k:
            return wrong, k
        if is_ours(error):
            wrong.append("%s, allocation %d: %r" % (name, k, error))
        if error is None and result != expected:
            wrong.append("%s, allocation %d: %r instead of %r" % (name, k, result, expected))
        if not check(error is not None):
            wrong.append("%s, allocation %d: something was changed by a call that failed with %r" % (name, k, error))
        del result, error
        again, error, _ = failing.run(piece, MOST)
        if error is not None or again != expected or not check(False):
            wrong.append("%s, after allocation %d: %r, %r" % (name, k, error, again))
        if name in cases.EXACT and leaks(failing, piece, k):
            wrong.append("%s, allocation %d: a leak" % (name, k))
        check(True)
    return wrong + ["%s: more than %d allocations" % (name, MOST)], MOST


def child():
    import warnings

    import memory_cases
    import tenon
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda *_: None
    failing = Failing(tenon._C.__file__)
    for name in memory_cases.CASES:
        wrong, n = try_case(failing, tenon, name, memory_cases)
        for line in wrong:
            print("wrong:", line)
        print("done", name, n, flush=True)


class Memory(unittest.TestCase):
    def test_every_allocation_of_every_part_may_fail(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("%s was not built" % LIBRARY)
        before = os.environ.get("LD_PRELOAD", "")
        environment = dict(os.environ, LD_PRELOAD=LIBRARY + (":" + before if before else ""), PYTHONMALLOC="malloc",
                           TENON_NUM_THREADS="1")
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "child"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = done.stdout.splitlines()
        last = lines[-1] if lines else "nothing"
        self.assertEqual(done.returncode, 0, "it ended after '%s'\n%s" % (last, done.stderr[-3000:]))
        self.assertEqual([line for line in lines if line.startswith("wrong:")], [])
        counts = dict(line.split()[1:] for line in lines if line.startswith("done "))
        self.assertGreater(min(map(int, counts.values())), 1, counts)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        child()
    else:
        harness.main()
