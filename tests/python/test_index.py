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

    def test_such_a_number_is_refused_before_the_index_is_looked_at(self):
        for dtype, number, name in [(tenon.uint8, 300, "uint8_t"), (tenon.float32, 1j, "float"), (tenon.float16, 1j, "double"),
                                    (tenon.complex64, 1e300, "c10::complex<float>")]:
            for index in (99, 1.5, False, slice(0, 0)):
                with self.assertRaisesRegex(RuntimeError, "value cannot be converted to type %s without overflow" % name):
                    tenon.zeros(2, dtype=dtype)[index] = number

    def test_half_a_float_takes_a_number_that_is_too_large_as_infinite(self):
        for index in (0, [0], slice(0, 1)):
            x = tenon.zeros(2, dtype=tenon.float16)
            x[index] = 1e10
            self.assertEqual(x.tolist(), [float("inf"), 0])


class Corners(unittest.TestCase):
    """Texts, strides and names of functions are what PyTorch 2.11 printed for the same lines."""

    def test_a_number_says_what_is_wrong_with_an_index(self):
        x = tenon.tensor(1.0)
        for index, text in [(0, "invalid index of a 0-dim tensor"), (-1, "index -1 is out of bounds for dimension 0 with size 0"),
                            (5, "index 5 is out of bounds for dimension 0 with size 0"), (slice(None), "slice\\(\\) cannot be applied to a 0-dim tensor"),
                            ((0,), "too many indices for tensor of dimension 0$"), ([0], "too many indices for tensor of dimension 0$"),
                            ([], "too many indices for tensor of dimension 0$"), ((slice(None),), "too many indices for tensor of dimension 0$"),
                            (1.5, "too many indices for tensor of dimension 0$"), ("a", "too many indices for tensor of dimension 0$")]:
            with self.subTest(index=index), self.assertRaisesRegex(IndexError, text):
                x[index]

    def test_strides_where_nothing_is_chosen(self):
        x = tenon.zeros(2, 3, 2, 2).transpose(0, -1)[-1]
        self.assertEqual((x[[], ::3].shape, x[[], ::3].stride()), ((0, 1, 2), (1, 0, 0)))
        y = tenon.zeros(3, 1, 2)[tenon.tensor([False] * 3)]
        self.assertEqual((y.shape, y.stride()), ((0, 1, 2), (2, 0, 1)))
        z = tenon.zeros(4)[[], None]
        self.assertEqual((z.shape, z.stride()), ((0, 1), (1, 1)))

    def test_false_chooses_nothing_to_assign_to_and_true_all(self):
        x = tenon.zeros(2, 3)
        x[False] = tenon.ones(7, 9, dtype=tenon.float64)
        x[True] = tenon.ones(2, 3, dtype=tenon.float64)
        self.assertEqual(x.tolist(), [[1, 1, 1], [1, 1, 1]])
        with self.assertRaisesRegex(RuntimeError, r"The expanded size of the tensor \(3\) must match the existing size \(9\) at non-singleton "
                                    r"dimension 2.  Target sizes: \[1, 2, 3\].  Tensor sizes: \[7, 9\]"):
            x[True] = tenon.ones(7, 9)

    def test_sizes_are_checked_before_dtypes(self):
        x = tenon.zeros(3, 4)
        with self.assertRaisesRegex(IndexError, r"could not be broadcast together with shapes \[3\], \[2, 2\]"):
            x[tenon.tensor([0, 1, 2]), tenon.tensor([[0, 1], [2, 3]])] = tenon.tensor(5)
        with self.assertRaisesRegex(RuntimeError, r"shape mismatch: value tensor of shape \[7\]"):
            x[[0, 1]] = tenon.ones(7, dtype=tenon.float64)
        with self.assertRaisesRegex(RuntimeError, "Index put requires the source and destination dtypes match, got Float for the destination"):
            x[[0, 1]] = tenon.ones(4, dtype=tenon.float64)

    def test_a_result_shows_how_it_was_indexed(self):
        x = tenon.ones(3, requires_grad=True)
        self.assertEqual(type(x[:].grad_fn).__name__, "SliceBackward0")
        self.assertEqual(type(x[:,].grad_fn).__name__, "AliasBackward0")
        for index, value, name in [(slice(None), 5.0, "FillBackward3"), (Ellipsis, tenon.tensor(5.0), "FillBackward3"),
                                   (slice(None), tenon.ones(1, 3), "CopyBackwards"), (0, 5.0, "CopySlices")]:
            y = x * 1
            y[index] = value
            self.assertEqual(type(y.grad_fn).__name__, name)
        z = x.sum()
        z[...] = 2.0
        self.assertEqual(type(z.grad_fn).__name__, "CopyBackwards")

    def test_a_tensor_without_dimensions_gets_its_gradient(self):
        w = tenon.tensor(2.0, requires_grad=True)
        y = tenon.ones(3, dtype=tenon.float64) * 1
        y[1:] = w
        (y * tenon.tensor([1.0, 10, 100])).sum().backward()
        self.assertEqual((w.grad.item(), w.grad.dtype), (110, tenon.float32))

    def test_the_gradient_of_a_tensor_without_elements_has_its_strides(self):
        x = tenon.empty_strided((0, 3), (12, 2)).requires_grad_()
        (x * 2).sum().backward()
        self.assertEqual(x.grad.stride(), (12, 2))


if __name__ == "__main__":
    harness.main()
