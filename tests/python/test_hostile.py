# SPDX-License-Identifier: MIT
"""Arguments that mean harm: objects that change, lie or raise while they are read. Nothing of it may end the process."""

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


if __name__ == "__main__":
    harness.main()
