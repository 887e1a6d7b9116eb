# SPDX-License-Identifier: MIT
"""Backward passes inside hooks of backward passes: deeper than the recursion limit, failures from the bottom, threads."""

import subprocess
import sys
import threading
import unittest

import harness
import tenon


# From 3.12 on the interpreter allows some 10,000 calls of C functions inside each other (three a level) whatever the
# limit of Python calls is; before, our own limit comes first.
COUNTS_C_CALLS = sys.version_info >= (3, 12)
DEEP = 2000 if COUNTS_C_CALLS else 6000


def nest(depth, at_end):
    """Passes inside each other, and at_end() in the innermost hook."""
    left = [depth]

    def hook(grad):
        left[0] -= 1
        if left[0] == 0:
            return at_end()
        with tenon.enable_grad():
            x = tenon.ones(1, requires_grad=True)
            y = x * 2
            y.register_hook(hook)
            tenon.autograd.backward(y)
        assert x.grad.item() == 2

    hook(None)
    return left[0]


class Deep(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with tenon.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, grad):
        if ctx.x >= 0:
            with tenon.enable_grad():
                Deep.apply(ctx.x).sum().backward()
        return grad


class Refused(Exception):
    pass


class NestedPasses(unittest.TestCase):
    def setUp(self):
        self.limit = sys.getrecursionlimit()
        self.assertLess(self.limit, 5000)

    def tearDown(self):
        self.assertEqual(sys.getrecursionlimit(), self.limit)

    def test_hooks_nest_deeper_than_the_recursion_limit(self):
        self.assertEqual(nest(DEEP, lambda: None), 0)

    def test_functions_nest_deeper_than_the_recursion_limit(self):
        for depth in DEEP - 1000.0, 200.0:
            v = tenon.tensor(depth, requires_grad=True)
            Deep.apply(v).sum().backward()
            self.assertEqual(v.grad.item(), 1)

    def test_grad_nests_as_backward_does(self):
        def inner(n):
            with tenon.enable_grad():
                x = tenon.ones(1, requires_grad=True)
                y = x * 3
                if n:
                    y.register_hook(lambda g: inner(n - 1) / 3)
                return tenon.autograd.grad(y, x)[0]

        self.assertEqual(inner(DEEP // 2).item(), 3)

    def test_an_exception_comes_up_from_the_bottom(self):
        def refuse():
            raise Refused("here")
        with self.assertRaisesRegex(Refused, "here"):
            nest(DEEP - 500, refuse)

    def test_runaway_recursion_in_a_deep_hook_still_ends(self):
        def runaway():
            return runaway()

        class Names:
            def __getattr__(self, name):
                return getattr(self, name + "a")

        for end in runaway, lambda: Names().x, lambda: list(map(runaway, [1])):
            with self.assertRaises((RecursionError, TypeError)):
                nest(2000, end)

    def test_a_limit_that_the_program_sets_inside_stays(self):
        try:
            nest(50, lambda: sys.setrecursionlimit(4321))
            self.assertEqual(sys.getrecursionlimit(), 4321)
        finally:
            sys.setrecursionlimit(self.limit)

    @unittest.skipIf(sys.version_info >= (3, 14), "from 3.14 on the interpreter allows a thread no stack but its own")
    def test_threads_with_small_stacks_nest_too(self):
        results = []
        before = threading.stack_size(256 * 1024)
        try:
            threads = [threading.Thread(target=lambda: results.append(nest(1500, lambda: None))) for _ in range(4)]
            for t in threads:
                t.start()
        finally:
            threading.stack_size(before)
        for t in threads:
            t.join()
        self.assertEqual(results, [0] * 4)


class Endless(unittest.TestCase):
    def test_passes_without_end_raise_in_time(self):
        """In a process of its own: it takes all the memory that is allowed."""
        code = ("import sys; sys.path[:0] = %r\nimport test_nested_passes as t\n"
                "try:\n    t.nest(-1, None)\nexcept RecursionError as e:\n    print('ended:', e)" % sys.path)
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=600)
        why = "ended: (a backward pass inside%s)" % ("|maximum recursion depth exceeded" if COUNTS_C_CALLS else "")
        self.assertRegex(done.stdout, why, done.stderr[-2000:])


if __name__ == "__main__":
    harness.main()
