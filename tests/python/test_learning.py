# SPDX-License-Identifier: MIT
"""Models learn as PyTorch's do: the same losses, step by step (learning_cases.py, golden/learning.json)."""

import json
import unittest

import harness
import learning_cases
import tenon


class Learning(unittest.TestCase):
    def test_losses_are_those_of_pytorch_step_by_step(self):
        with open(learning_cases.PATH, encoding="utf-8") as file:
            golden = json.load(file)
        self.assertEqual(set(golden), set(learning_cases.CASES))
        for name, case in learning_cases.CASES.items():
            with self.subTest(name):
                losses = case(tenon)
                self.assertEqual(len(losses), len(golden[name]))
                for step, (ours, theirs) in enumerate(zip(losses, golden[name])):
                    self.assertLess(abs(ours - theirs), 1e-9 * max(1, abs(theirs)), "step %d" % step)
                self.assertLess(min(losses[-5:]), losses[0])


if __name__ == "__main__":
    harness.main()
