# SPDX-License-Identifier: MIT
"""Windows of tenon.signal. NumPy's and SciPy's formulas are the oracle of the symmetric ones; figures of the others, errors
and gradients are those of PyTorch 2.11."""

import unittest

import numpy as np

import harness
import tenon
from tenon.signal import windows

NAMES = ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_hamming", "hamming", "hann", "kaiser", "nuttall")
FIVE = {  # of PyTorch 2.11: five points, sym=False
    "bartlett": (0.0, 0.4, 0.8, 0.8, 0.4), "blackman": (0.0, 0.20077, 0.84923, 0.84923, 0.20077),
    "cosine": (0.258819, 0.707107, 0.965926, 0.965926, 0.707107),
    "exponential": (0.082085, 0.22313, 0.606531, 0.606531, 0.22313),
    "gaussian": (0.043937, 0.324652, 0.882497, 0.882497, 0.324652),
    "general_hamming": (0.08, 0.397852, 0.912148, 0.912148, 0.397852),
    "hamming": (0.08, 0.397852, 0.912148, 0.912148, 0.397852), "hann": (0.0, 0.345492, 0.904508, 0.904508, 0.345491),
    "kaiser": (5.3e-05, 0.10172, 0.79294, 0.792939, 0.10172), "nuttall": (0.000363, 0.110515, 0.798258, 0.798258, 0.110515)}


class Windows(unittest.TestCase):
    def near(self, found, wanted, places=1e-6):
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=0, atol=places)

    def test_symmetric_windows_are_numpys(self):
        for M in (1, 2, 7, 64):
            for name, wanted in (("bartlett", np.bartlett(M)), ("blackman", np.blackman(M)), ("hamming", np.hamming(M)),
                                 ("hann", np.hanning(M)), ("kaiser", np.kaiser(M, 12.0))):
                with self.subTest(name, M=M):
                    self.near(getattr(windows, name)(M, dtype=tenon.float64), wanted, 1e-12)
                    self.near(getattr(windows, name)(M), wanted)

    def test_windows_by_their_formulas(self):
        n, x = np.arange(9), 2 * np.pi * np.arange(9) / 8
        options = {"dtype": tenon.float64}
        self.near(windows.cosine(9, **options), np.sin(np.pi * (n + 0.5) / 9), 1e-12)
        self.near(windows.gaussian(9, std=2.0, **options), np.exp(-((n - 4) / 2.0) ** 2 / 2), 1e-12)
        self.near(windows.exponential(9, tau=3.0, **options), np.exp(-abs(n - 4) / 3.0), 1e-12)
        self.near(windows.exponential(9, tau=3.0, center=2.0, sym=False, **options), np.exp(-abs(n - 2) / 3.0), 1e-12)
        self.near(windows.general_cosine(9, a=[0.5, 0.3, 0.2], **options), 0.5 - 0.3 * np.cos(x) + 0.2 * np.cos(2 * x), 1e-12)
        self.near(windows.general_hamming(9, alpha=0.7, **options), 0.7 - 0.3 * np.cos(x), 1e-12)
        self.near(windows.nuttall(9, **options),
                  0.3635819 - 0.4891775 * np.cos(x) + 0.1365995 * np.cos(2 * x) - 0.0106411 * np.cos(3 * x), 1e-12)

    def test_without_symmetry_the_last_point_is_left_out(self):
        for name in NAMES:
            f = getattr(windows, name)
            with self.subTest(name):
                self.near(f(5, sym=False), FIVE[name], 2e-6)
                self.near(f(8, sym=False, dtype=tenon.float64), f(9, dtype=tenon.float64)[:8].numpy(), 1e-12)
                self.assertEqual(f(0).shape, (0,))
                self.assertEqual(f(1).tolist(), [1.0])
                self.assertEqual(f(1, sym=False).tolist(), [1.0])

    def test_gradients_are_kept(self):
        made = windows.hann(4, requires_grad=True)
        self.assertTrue(made.requires_grad and made.grad_fn is not None)
        self.assertFalse(windows.hann(4).requires_grad)

    def test_errors_are_pytorchs(self):
        for wanted, call in (
                ("bartlett requires non-negative window length, got M=-1", lambda: windows.bartlett(-1)),
                ("general_cosine requires non-negative window length, got M=-2", lambda: windows.hann(-2)),
                ("kaiser expects float32 or float64 dtypes, got: %s" % tenon.float16,
                 lambda: windows.kaiser(5, dtype=tenon.float16)),
                ("blackman is implemented for strided tensors only, got: %s" % tenon.sparse_coo,
                 lambda: windows.blackman(5, layout=tenon.sparse_coo)),
                ("Tau must be positive, got: 0 instead.", lambda: windows.exponential(5, tau=0)),
                ("Center must be None for symmetric windows", lambda: windows.exponential(5, center=1.0)),
                ("Standard deviation must be positive, got: 0 instead.", lambda: windows.gaussian(5, std=0)),
                ("beta must be non-negative, got: -1 instead.", lambda: windows.kaiser(5, beta=-1)),
                ("Coefficients cannot be empty", lambda: windows.general_cosine(5, a=[]))):
            with self.subTest(wanted), self.assertRaises(ValueError) as caught:
                call()
            self.assertEqual(str(caught.exception), wanted)
        with self.assertRaisesRegex(TypeError, "Coefficients must be a list/tuple"):
            windows.general_cosine(5, a=3)


if __name__ == "__main__":
    harness.main()
