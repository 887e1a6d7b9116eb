# SPDX-License-Identifier: MIT
"""Corners of operators in which a library easily differs from PyTorch: dtypes that few use, layouts of results and gradients, numbers
that are assigned. Values and texts are PyTorch 2.11's."""

import unittest

import harness
import tenon
import tenon.nn.functional as F


class Dtypes(unittest.TestCase):
    def test_bytes_are_resized_by_whole_weights(self):
        image = tenon.tensor([[[[0, 255, 7], [100, 3, 200]]]], dtype=tenon.uint8)
        for mode, corners, wanted in (
                ("bilinear", False, [[0, 102, 255, 106, 7], [50, 82, 129, 114, 104], [100, 61, 3, 121, 200]]),
                ("bilinear", True, [[0, 128, 255, 131, 7], [50, 90, 129, 117, 104], [100, 52, 3, 102, 200]]),
                ("bicubic", False, [[0, 123, 255, 122, 0], [55, 83, 129, 120, 110], [118, 42, 0, 117, 238]]),
                ("bicubic", True, [[0, 151, 255, 155, 7], [50, 92, 129, 124, 104], [100, 33, 3, 92, 200]])):
            made = F.interpolate(image, size=(3, 5), mode=mode, align_corners=corners)
            self.assertEqual((made.dtype, made.tolist()), (tenon.uint8, [[wanted]]))
        last = image.expand(2, 3, 2, 3).contiguous(memory_format=tenon.channels_last)
        made = F.interpolate(last, size=(3, 5), mode="bilinear")
        self.assertTrue(made.is_contiguous(memory_format=tenon.channels_last))
        self.assertEqual(made[1, 2].tolist(), [[0, 102, 255, 106, 7], [50, 82, 129, 114, 104], [100, 61, 3, 121, 200]])

    def test_bytes_are_resized_by_whole_weights_without_aliasing(self):
        for mode, corners, sizes, wanted in (
                ("bilinear", False, (3, 4), [[47, 110, 151, 106], [142, 95, 186, 191]]),
                ("bilinear", True, (5, 5), [[145, 141, 154, 149], [148, 178, 154, 150]]),
                ("bicubic", True, (4, 3), [[71, 84, 121, 180], [47, 121, 209, 220]])):
            n = tenon.arange(sizes[0] * sizes[1])
            image = (n * n * 37 + n * 11).remainder(256).reshape(1, 1, *sizes).to(tenon.uint8)
            made = F.interpolate(image, size=(2, 4), mode=mode, align_corners=corners, antialias=True)
            self.assertEqual((made.dtype, made.tolist()), (tenon.uint8, [[wanted]]))

    def test_ctc_loss_takes_targets_of_any_dtype(self):
        log_probs = tenon.zeros(5, 1, 4).log_softmax(-1).requires_grad_()
        wanted = F.ctc_loss(log_probs, tenon.tensor([[1, 2]]), (5,), (2,))
        self.assertAlmostEqual(wanted.item(), 1.6881, places=4)
        for dtype in (tenon.float32, tenon.float64, tenon.float16, tenon.int16, tenon.uint8):
            for lengths in (((5,), (2,)), (tenon.tensor([5]), tenon.tensor([2]))):
                made = F.ctc_loss(log_probs, tenon.tensor([[1, 2]]).to(dtype), *lengths)
                self.assertEqual(made.item(), wanted.item())
        made.backward()
        self.assertTrue(log_probs.grad.isfinite().all())

    def test_silu_takes_complex_numbers(self):
        made = F.silu(tenon.tensor([1 + 2j, -0.5j]))
        wanted = tenon.tensor([0.21453796327114105 + 2.4462695121765137j, -0.06383547931909561 - 0.25j])
        tenon.testing.assert_close(made, wanted)
        z = tenon.tensor([1 + 2j, -0.5j, 0.3 - 0.1j], dtype=tenon.complex128, requires_grad=True)
        self.assertTrue(tenon.autograd.gradcheck(F.silu, z, check_forward_ad=True))
        self.assertTrue(tenon.autograd.gradgradcheck(F.silu, z))

    def test_one_number_is_searched_in_any_dtype(self):
        self.assertEqual(tenon.searchsorted(tenon.tensor([False, True, True]), 1).item(), 1)
        self.assertEqual(tenon.bucketize(2, tenon.tensor([False, True])).item(), 2)

    def test_bernoulli_writes_whole_numbers(self):
        out = tenon.empty(0, dtype=tenon.int64)
        self.assertEqual(tenon.bernoulli(tenon.ones(3), out=out).tolist(), [1, 1, 1])
        self.assertEqual(out.dtype, tenon.int64)

    def test_parts_of_a_complex_number_have_one_dtype(self):
        with self.assertRaisesRegex(RuntimeError, "Expected object of scalar type Half but got scalar type Float for second argument"):
            tenon.complex(tenon.zeros(2, dtype=tenon.float16), tenon.zeros(2))


class Results(unittest.TestCase):
    def test_a_slice_is_scattered_into_a_given_result(self):
        out = tenon.empty(0)
        made = tenon.slice_scatter(tenon.zeros(3, 2), tenon.ones(1, 2), 0, 1, 2, out=out)
        self.assertIs(made, out)
        self.assertEqual(out.tolist(), [[0, 0], [1, 1], [0, 0]])
        with self.assertRaisesRegex(RuntimeError, "Expected out tensor to have dtype float, but got c10::Half instead"):
            tenon.slice_scatter(tenon.zeros(3, 2), tenon.ones(1, 2), 0, 1, 2, out=tenon.empty(0, dtype=tenon.float16))

    def test_layouts(self):
        turned = tenon.arange(12.).reshape(1, 4, 3).transpose(1, 2)
        self.assertEqual(F.max_pool1d(turned, 2).stride(), (6, 2, 1))
        self.assertEqual(tenon.isin(tenon.arange(6).reshape(2, 3).t(), 2).stride(), (2, 1))

        turned = tenon.ones(2, 3, 4).permute(2, 0, 1)
        for make in (tenon.complex, tenon.polar):
            for a, b in ((turned, turned), (turned, tenon.ones(3)), (tenon.ones(3), turned)):
                made = make(a, b)
                self.assertEqual((made.shape, made.stride(), made._base), ((4, 2, 3), (1, 12, 4), None))
        parts = tenon.arange(6.).reshape(2, 3).t()
        self.assertEqual(tenon.complex(parts, parts + 1).tolist(), [[0 + 1j, 3 + 4j], [1 + 2j, 4 + 5j], [2 + 3j, 5 + 6j]])
        volumes = tenon.arange(120.).reshape(2, 3, 4, 5).contiguous(memory_format=tenon.channels_last)
        for mode in ("reflect", "replicate"):
            for device in ("cpu", "meta"):
                self.assertEqual(F.pad(volumes.to(device), (1, 1, 1, 1, 1, 1), mode=mode).stride(), (210, 1, 35, 5))
            self.assertEqual(F.pad(volumes, (1, 1, 1, 1, 1, 1), mode=mode).tolist(),
                             F.pad(volumes.contiguous(), (1, 1, 1, 1, 1, 1), mode=mode).tolist())

    def test_layouts_of_gradients(self):
        matrix = tenon.tensor([[2., 1.], [0., 3.]], requires_grad=True)
        gradient, = tenon.autograd.grad(tenon.linalg.det(matrix), matrix)
        self.assertEqual((gradient.tolist(), gradient.stride()), ([[3, 0], [-1, 2]], (1, 2)))
        x = tenon.ones(3, requires_grad=True)
        gradient, = tenon.autograd.grad((x * 1j).imag.sum(), x)  # a view of complex numbers
        self.assertEqual((gradient.tolist(), gradient.stride()), ([1, 1, 1], (2,)))
        (x * 1j).imag.sum().backward()
        self.assertEqual(x.grad.stride(), (1,))

    def test_padding_is_at_most_half_of_a_window(self):
        image = tenon.zeros(1, 1, 6, 6)
        with self.assertRaisesRegex(RuntimeError, "pad should be smaller than or equal to half of kernel size, but got padW = 2, "
                                                  "padH = 2, kW = 3, kH = 3"):
            F.max_pool2d(image, 3, padding=2, dilation=2)
        with self.assertRaisesRegex(RuntimeError, "but got kT: 3 kW: 3 kH: 3 padT: 2 padW: 2 padH: 2"):
            F.max_pool3d(tenon.zeros(1, 1, 6, 6, 6), 3, padding=2, dilation=2)


class Assignment(unittest.TestCase):
    def test_one_number_of_another_dtype_goes_where_a_mask_is(self):
        x = tenon.tensor([1., 2., 3., 4.])
        x[x > 2] = tenon.tensor(7)
        self.assertEqual(x.tolist(), [1, 2, 7, 7])
        x = tenon.tensor([1, 2, 3, 4])
        x[x > 2] = tenon.tensor([7.5])
        self.assertEqual((x.dtype, x.tolist()), (tenon.int64, [1, 2, 7, 7]))
        text = "Index put requires the source and destination dtypes match, got Long for the destination and Float for the source."
        for index, value in ((x > 2, [7.5, 1.]), ([0], 7.5)):
            with self.assertRaisesRegex(RuntimeError, text):
                x[index] = tenon.tensor(value)

    def test_an_index_that_is_out_of_bounds_is_counted_as_it_stands(self):
        x = tenon.zeros(2, 3, 4)
        mask = tenon.ones(2, 3, dtype=tenon.bool)
        for index, place in ((Ellipsis,), 1), ((None, Ellipsis), 2), ((0, Ellipsis), 2), ((mask,), 1), ((0, 0), 2), ((True,), 1):
            with self.assertRaisesRegex(IndexError, "index 9 is out of bounds for dimension %d with size" % place):
                x[(*index, 9)]


if __name__ == "__main__":
    harness.main()
