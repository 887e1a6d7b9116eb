# SPDX-License-Identifier: MIT
"""x[...] and x[...] = v: results, views, errors and gradients as PyTorch 2.11 has them."""

import unittest
import warnings

import golden_check
import harness
import tenon

# Where Tenon differs on purpose.
KNOWN = {
    "m[range(2), True, 9]": "the message counts dimensions of the tensor, not of the index",
}


class Index(unittest.TestCase):
    def test_expressions_give_what_pytorch_gives(self):
        golden_check.run(self, "index", KNOWN)

    def test_integers_and_slices_are_views_and_lists_are_copies(self):
        x = tenon.zeros(3, 4)
        x[1][2] = 5.0
        x[0, 1:3][:] = 7.0
        self.assertEqual(x.tolist(), [[0, 7, 7, 0], [0, 0, 5, 0], [0, 0, 0, 0]])
        x[[0, 1]][:] = 9.0
        x[x > 6][:] = 9.0
        self.assertEqual(x.tolist(), [[0, 7, 7, 0], [0, 0, 5, 0], [0, 0, 0, 0]])
        self.assertIsNot(x[...], x)
        self.assertEqual(x[...].data_ptr(), x.data_ptr())

    def test_assignment_takes_what_numpy_takes(self):
        x = tenon.zeros(2, 3)
        x[0] = [1, 2, 3]
        x[:, 0] = (7.5, 8.5)
        self.assertEqual(x.tolist(), [[7.5, 2, 3], [8.5, 0, 0]])
        with self.assertRaises(ValueError):
            x[0] = [[1, 2], [3]]
        with self.assertRaises(TypeError):
            x[0] = "abc"

    def test_a_write_into_a_leaf_that_requires_grad_is_refused(self):
        x = tenon.zeros(3, requires_grad=True)
        with self.assertRaises(RuntimeError):
            x[0] = 1.0
        with tenon.no_grad():
            x[0] = 1.0
        self.assertEqual(x.tolist(), [1, 0, 0])

    def test_writes_are_counted(self):
        x = tenon.zeros(3)
        before = x._version
        x[1] = 2.0
        x[x > 1] = 3.0
        self.assertEqual(x._version, before + 2)

    def test_an_index_that_raises_leaves_the_tensor_alone(self):
        class Bad:
            def __index__(self):
                raise KeyError("no")

        x = tenon.arange(6.).reshape(2, 3)
        for index in (Bad(), (0, Bad()), slice(Bad(), None)):
            with self.assertRaises(KeyError):
                x[index]
            with self.assertRaises(KeyError):
                x[index] = 1.0
        self.assertEqual(x.tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_a_list_that_changes_while_it_is_read_does_no_harm(self):
        grown = []

        class Sly:
            def __index__(self):
                grown.clear()
                return 0

        grown.extend([Sly(), 1, 2])
        x = tenon.arange(4.)
        with self.assertRaises(Exception):
            x[grown]

    def test_meta_tensors_are_indexed_too(self):
        x = tenon.empty(3, 4, 5, device="meta")
        self.assertEqual(tuple(x[0, ..., None].shape), (4, 5, 1))
        self.assertEqual(tuple(x[[0, 1], :, [0, 1]].shape), (2, 4))
        x[0] = 1.0
        x[[0, 1]] = 2.0

    def test_many_dimensions(self):
        x = tenon.zeros((1,) * 64)
        self.assertEqual(x[(0,) * 64].dim(), 0)
        with self.assertRaises(Exception):
            x[None]
        with self.assertRaises(IndexError):
            x[(0,) * 65]

    def test_iterating_gives_views(self):
        x = tenon.zeros(2, 3)
        for i, row in enumerate(x):
            row.fill_(i)
        self.assertEqual(x.tolist(), [[0, 0, 0], [1, 1, 1]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            a, b = x
        self.assertEqual(b.tolist(), [1, 1, 1])


class NumbersThatDoNotFit(unittest.TestCase):
    def test_assigning_a_number_that_the_dtype_cannot_hold_is_an_error(self):
        for dtype, number in [(tenon.uint8, 300), (tenon.uint8, -1.5), (tenon.int32, 2**40), (tenon.float32, 1e300), (tenon.int64, 1j)]:
            for index in ([0], tenon.tensor([True, False]), tenon.tensor([1, 1])):
                x = tenon.zeros(2, dtype=dtype)
                with self.assertRaisesRegex(RuntimeError, "without overflow"):
                    x[index] = number
                self.assertEqual(x.tolist(), [0, 0])

    def test_assigning_a_number_that_fits_works(self):
        for dtype, number, stored in [(tenon.uint8, -1, 255), (tenon.int8, -128, -128), (tenon.bool, 300, True),
                                      (tenon.float32, float("inf"), float("inf")), (tenon.int64, 2**62, 2**62), (tenon.float64, -1e300, -1e300)]:
            x = tenon.zeros(2, dtype=dtype)
            x[[1]] = number
            self.assertEqual(x.tolist(), [0, stored])


if __name__ == "__main__":
    harness.main()
