# SPDX-License-Identifier: MIT
"""Names where dimensions are wanted: no dimension has one. The errors are PyTorch 2.11's."""
import unittest

import harness
import tenon

A = tenon.ones(2, 3)
INDEX = tenon.zeros(2, 3, dtype=tenon.long)
ONE = tenon.tensor([0])

LOOKED_UP = {name: ("x",) for name in (
    "sum", "mean", "prod", "std", "var", "median", "nanmedian", "mode", "min", "max", "logsumexp", "softmax",
    "log_softmax", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "unbind", "squeeze")}
LOOKED_UP.update(kthvalue=(1, "x"), select=("x", 0), index_fill=("x", ONE, 0.0))
REFUSED = {"sort": ("x",), "argsort": ("x",), "all": ("x",), "any": ("x",), "index_select": ("x", ONE),
           "gather": ("x", INDEX), "scatter": ("x", INDEX, 1.0), "scatter_add": ("x", INDEX, A),
           "index_add": ("x", ONE, A[:1]), "index_copy": ("x", ONE, A[:1])}
NUMBERS_ONLY = {"argmax": ("x",), "nansum": ("x",), "amax": ("x",), "flip": ("x",), "unsqueeze": ("x",), "chunk": (1, "x")}


class DimensionNames(unittest.TestCase):
    def both(self, name, args):
        yield lambda: getattr(A, name)(*args)
        yield lambda: getattr(tenon, name)(A, *args)

    def assert_error(self, call, kind, text):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_names_that_are_looked_up(self):
        for name, args in LOOKED_UP.items():
            for call in self.both(name, args):
                with self.subTest(name):
                    self.assert_error(call, RuntimeError, "Name 'x' not found in Tensor[None, None].")
        for call in (lambda: tenon.cat([A, A], "x"), lambda: tenon.cat([A, A], dim="x"), lambda: A.sum(["x"]),
                     lambda: A.sum(("x", "y")), lambda: tenon.sum(A, dim="x"), lambda: A.size("x"), lambda: A.stride("x")):
            self.assert_error(call, RuntimeError, "Name 'x' not found in Tensor[None, None].")
        self.assert_error(lambda: A.transpose("x", "y"), RuntimeError, "Name 'y' not found in Tensor[None, None].")
        self.assert_error(lambda: tenon.ones(()).sum("x"), RuntimeError, "Name 'x' not found in Tensor[].")

    def test_names_that_are_not_yet_supported(self):
        for name, args in REFUSED.items():
            for call in self.both(name, args):
                with self.subTest(name):
                    self.assert_error(call, RuntimeError, "%s: You passed a dimname (string) to this op in place of a "
                                      "dimension index but it does not yet support this behavior. Please pass a "
                                      "dimension index to work around this." % name)

    def test_operators_that_take_numbers_only(self):
        for name, args in NUMBERS_ONLY.items():
            for call in self.both(name, args):
                with self.subTest(name), self.assertRaisesRegex(TypeError, "not str"):
                    call()

    def test_no_names(self):
        for make in (tenon.ones, tenon.zeros, tenon.empty, tenon.rand, tenon.randn):
            self.assertEqual(make(2, 3, names=None).shape, (2, 3))
            self.assertEqual(make((2,), names=None, dtype=tenon.float64).dtype, tenon.float64)
        self.assertEqual(tenon.full((2,), 1, names=None).tolist(), [1, 1])
        with self.assertRaises(TypeError):
            tenon.arange(2, names=None)

    def test_names_can_be_taken_away_and_not_given(self):
        for made in (A.rename(None), A.rename(None, None)):
            self.assertEqual((made.tolist(), made.names, made.data_ptr()), (A.tolist(), (None, None), A.data_ptr()))
        self.assertIs(A.rename_(None), A)
        self.assert_error(lambda: A.rename(None, None, None), RuntimeError,
                          "Number of names (3) and number of dimensions in tensor (2) do not match. Attempted to create a "
                          "tensor with names [None, None, None]")
        self.assert_error(lambda: A.rename(x="y"), RuntimeError, "rename: Tried to rename dim 'x' to dim y in "
                          "Tensor[(None, None)] but dim 'x' does not exist")
        for give in (A.rename, A.rename_, A.refine_names, A.align_to):
            with self.assertRaisesRegex(RuntimeError, "no named tensors"):
                give("x", "y")

    def test_axis(self):
        self.assertEqual((A.stride(axis=0), A.stride(axis=None), A.size(axis=1), A.size(axis=None)), (3, (3, 1), 3, (2, 3)))
        self.assert_error(lambda: A.size(axis=5), IndexError,
                          "Dimension out of range (expected to be in range of [-2, 1], but got 5)")
        with self.assertRaises(TypeError):
            A.stride(dim=0, axis=1)

    def test_a_value_stands_for_its_dtype(self):
        self.assertEqual([A.to(value).dtype for value in (False, True, 2.5)], [tenon.bool, tenon.bool, tenon.float64])
        for args, words in (((False, tenon.float64), {}), ((), {"dtype": False}), ((), {"device": False})):
            with self.assertRaises(TypeError):
                A.to(*args, **words)


if __name__ == "__main__":
    harness.main()
