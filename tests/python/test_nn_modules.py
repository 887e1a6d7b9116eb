# SPDX-License-Identifier: MIT
"""What modules do besides computing is what golden/make_nn.py saw PyTorch do, line by line."""

import json
import os
import unittest

import harness
import nn_scenarios

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "nn.json")


class Modules(unittest.TestCase):
    maxDiff = None


def add_tests():
    with open(GOLDEN) as f:
        wanted = json.load(f)["scenarios"]
    assert sorted(wanted) == nn_scenarios.NAMES, "run golden/make_nn.py again"
    for name in nn_scenarios.NAMES:

        def test(self, name=name):
            self.assertEqual(list(nn_scenarios.run(tenon, tenon.nn, name)), wanted[name])

        setattr(Modules, "test_" + name, test)


add_tests()
if __name__ == "__main__":
    harness.main()
