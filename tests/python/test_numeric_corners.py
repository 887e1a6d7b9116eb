# SPDX-License-Identifier: MIT
"""Each numeric corner is as golden/make_corners.py saw it in PyTorch. The lists of corners and their tests are at the top of
corners_softmax_cases.py, corners_number_cases.py and corners_index_cases.py; this file holds the list to the tests."""

import json
import os
import unittest

import corner_scenarios
import harness

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "corners.json")


class Corners(unittest.TestCase):
    maxDiff = None

    def test_every_corner_that_is_listed_has_its_test(self):
        self.assertEqual(sorted(corner_scenarios.listed()), sorted(corner_scenarios.CORNERS))


def add_tests():
    with open(GOLDEN) as f:
        wanted = json.load(f)["corners"]
    assert sorted(wanted) == sorted(corner_scenarios.CORNERS), "run golden/make_corners.py again"
    for name in corner_scenarios.CORNERS:

        def test(self, name=name):
            self.assertEqual(corner_scenarios.run(tenon, name), wanted[name])

        setattr(Corners, "test_" + name, test)


add_tests()
if __name__ == "__main__":
    harness.main()
