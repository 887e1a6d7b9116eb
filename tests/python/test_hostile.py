# SPDX-License-Identifier: MIT
"""Arguments that mean harm: objects that change, lie or raise while they are read. Nothing of it may end the process."""

import math
import signal
import threading
import time
import unittest

import harness
import tenon


class Shrinks:
    """An integer that empties a list when it is asked for its value."""

    def __init__(self, victim):
        self.victim = victim

    def __index__(self):
        self.victim.clear()
        return 1


class ShrinksToZero(Shrinks):
    def __index__(self):
        self.victim.clear()
        return 0


class ChangingLists(unittest.TestCase):
    def test_a_list_of_numbers_that_becomes_shorter_is_an_error(self):
        calls = [tenon.zeros, tenon.ones(1).view, tenon.ones(4, 2).permute, tenon.ones(2, 3).sum, tenon.ones(4).split,
                 lambda sizes: tenon.native_layer_norm(tenon.ones(3, 2), sizes, None, None, 1e-5)]
        for call in calls:
            sizes = []
            sizes.extend([Shrinks(sizes), 1, 1])
            with self.assertRaises(IndexError):
                call(sizes)

    def test_the_tensors_of_a_list_live_as_long_as_the_call(self):
        for _ in range(20):
            tensors = [tenon.full((64,), float(i)) for i in range(10)]
            result = tenon.cat(tensors, ShrinksToZero(tensors))
            self.assertEqual(result.view(10, 64)[:, 0].tolist(), [float(i) for i in range(10)])
            self.assertEqual(tensors, [])


class Threads(unittest.TestCase):
    def test_a_gradient_may_be_replaced_while_it_is_added_to(self):
        """Most telling under the address sanitizer."""
        x = tenon.ones(10000, requires_grad=True)
        end = time.monotonic() + 1

        def passes():
            while time.monotonic() < end:
                (x * 2).sum().backward()

        def replaces():
            while time.monotonic() < end:
                x.grad = None
                x.grad = tenon.zeros(10000)

        threads = [threading.Thread(target=f) for f in (passes, passes, replaces, replaces)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(x.grad[0].item() % 2, 0)


class HugeNumbers(unittest.TestCase):
    """What a number would make too large is refused at once: nothing loops for hours."""

    def setUp(self):
        signal.alarm(60)

    def tearDown(self):
        signal.alarm(0)

    def test_a_triangle_has_no_time_for_rows_without_elements(self):
        many = 2**33
        self.assertEqual(tenon.tril_indices(many, 0).shape, (2, 0))
        self.assertEqual(tenon.triu_indices(many, 3, 5).shape, (2, 0))
        self.assertEqual(tenon.tril_indices(many, 3, 2 - many).tolist(), [[many - 2, many - 1, many - 1], [0, 0, 1]])
        self.assertEqual(tenon.triu_indices(many, 3, 1).tolist(), [[0, 0, 1], [1, 2, 2]])
        for row, col in [(2**62, 2**63 - 1), (2**63 - 1, 2**63 - 1), (2**63 - 1, 2)]:
            with self.assertRaises(RuntimeError):
                tenon.tril_indices(row, col)

    def test_mvlgamma_of_more_terms_than_memory_holds(self):
        with self.assertRaises(RuntimeError):
            tenon.mvlgamma(tenon.ones(3), 2**62)
        x = tenon.tensor([2.5, 3.0], dtype=tenon.float64)
        expected = math.lgamma(2.5) + math.lgamma(2.0) + math.lgamma(1.5) + 1.5 * math.log(math.pi)
        self.assertAlmostEqual(tenon.mvlgamma(x, 3)[0].item(), expected, places=12)


class Nothing(unittest.TestCase):
    def test_questions_about_no_elements(self):
        """Memory of nothing is no pointer to hand on, which the undefined-behaviour sanitizer says."""
        for dtype in (tenon.int64, tenon.bool, tenon.float32, tenon.complex64):
            x = tenon.zeros(0, 3, dtype=dtype)
            self.assertEqual([f(x).shape for f in (tenon.isnan, tenon.isinf, tenon.isfinite)], [(0, 3)] * 3)


if __name__ == "__main__":
    harness.main()
