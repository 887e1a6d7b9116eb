# SPDX-License-Identifier: MIT
"""Calls with generated arguments once differed from PyTorch in these places (generated_scenarios.py); what PyTorch does there is in
golden/generated.json."""

import json
import os
import re
import unittest

import generated_scenarios
import harness

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "generated.json")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?|-?inf|nan")


class Generated(unittest.TestCase):
    maxDiff = None

    def same(self, found, wanted):
        """Texts are equal; numbers in them to four digits, and to what sums of such numbers leave of a zero."""
        self.assertEqual([NUMBER.sub("#", line) for line in found], [NUMBER.sub("#", line) for line in wanted])
        for line, other in zip(found, wanted):
            for a, b in zip(NUMBER.findall(line), NUMBER.findall(other)):
                if a != b:
                    self.assertLessEqual(abs(float(a) - float(b)), 2e-4 * abs(float(b)) + 2e-6, (line, other))


def add_tests():
    with open(GOLDEN) as f:
        wanted = json.load(f)["scenarios"]
    assert sorted(wanted) == sorted(generated_scenarios.SCENARIOS), "run golden/make_generated.py again"
    for name in generated_scenarios.SCENARIOS:

        def test(self, name=name):
            self.same(generated_scenarios.run(tenon, name), wanted[name])

        setattr(Generated, "test_" + name, test)


add_tests()
if __name__ == "__main__":
    harness.main()
