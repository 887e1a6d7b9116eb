# SPDX-License-Identifier: MIT
"""Layers and functions of `nn`: values, gradients, states, texts and errors are those that golden/make_nn.py took from PyTorch."""

import json
import math
import os
import unittest

import harness
import nn_cases
import numpy as np

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def load():
    with open(os.path.join(GOLDEN, "nn.json")) as f:
        told = json.load(f)
    flat = np.load(os.path.join(GOLDEN, "nn.npz"))["values"]
    arrays, at = {}, 0
    for key, shape in told["arrays"].items():
        n = math.prod(shape)
        arrays.setdefault(int(key.split("/")[0]), {})[key.split("/", 1)[1]] = flat[at : at + n].reshape(shape)
        at += n
    return told["cases"], arrays


class Layers(unittest.TestCase):
    maxDiff = None

    def check(self, case, text, arrays):
        got = nn_cases.run(tenon, tenon.nn, *case)
        self.assertEqual(got.get("error"), text.get("error"))
        for key in ("repr", "state"):
            self.assertEqual(got.get(key), text.get(key), key)
        self.assertEqual({k for k, v in got.items() if isinstance(v, np.ndarray)}, set(arrays))
        for key, wanted in arrays.items():
            np.testing.assert_allclose(got[key], wanted, rtol=2e-4, atol=2e-5, err_msg=key)


def add_tests():
    texts, arrays = load()
    assert [t["case"] for t in texts] == [c[0] for c in nn_cases.CASES], "run golden/make_nn.py again"
    for i, (case, text) in enumerate(zip(nn_cases.CASES, texts)):

        def test(self, case=case, text=text, arrays=arrays.get(i, {})):
            self.check(case, text, arrays)

        name = "".join(c if c.isalnum() else "_" for c in case[0])[:60]
        setattr(Layers, f"test_{i:04d}_{name}", test)


add_tests()
if __name__ == "__main__":
    harness.main()
