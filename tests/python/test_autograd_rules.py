# SPDX-License-Identifier: MIT
"""What programs see of autograd's rules is what golden/make_autograd.py saw PyTorch do, line by line."""

import json
import os
import unittest

import autograd_scenarios
import harness

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "autograd.json")


class Rules(unittest.TestCase):
    maxDiff = None


def add_tests():
    with open(GOLDEN) as f:
        wanted = json.load(f)["scenarios"]
    assert sorted(wanted) == sorted(autograd_scenarios.SCENARIOS), "run golden/make_autograd.py again"
    for name in autograd_scenarios.SCENARIOS:

        def test(self, name=name):
            self.assertEqual(autograd_scenarios.run(tenon, name), wanted[name])

        setattr(Rules, "test_" + name, test)


add_tests()
if __name__ == "__main__":
    harness.main()
