# SPDX-License-Identifier: MIT
"""Pooling of tensors whose channels are last in memory gives what planes give, to the bit, and planes of float32 what those of
float64 give; the values of planes are compared with PyTorch's elsewhere."""
import itertools
import unittest

import harness
import tenon

F = tenon.nn.functional


def bits(t):
    return t.contiguous().view(tenon.int32).tolist() if t.dtype is tenon.float32 else t.tolist()


class Rows(unittest.TestCase):
    def same(self, call, x):
        last = x.contiguous(memory_format=tenon.channels_last if x.dim() == 4 else tenon.channels_last_3d)
        got, wanted = call(last), call(x)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, wanted))):
            self.assertEqual(bits(a), bits(b))

    def test_two_dimensions(self):
        tenon.manual_seed(0)
        for channels, (kernel, stride, padding, dilation), ceil in itertools.product(
                (2, 63, 64, 130), ((2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), ((1, 3), (2, 1), (0, 1), 1)), (False, True)):
            x = tenon.randn(2, channels, 7, 6)
            x[0, 1, 2, 3] = x[0, 1, 3, 3] = float("nan")
            x[1, :, :2] = float("-inf")
            x[1, 0] = 0.5
            self.same(lambda t: F.max_pool2d(t, kernel, stride, padding, dilation, ceil, return_indices=True), x)
            for counted in (False, True):
                self.same(lambda t: F.avg_pool2d(t, kernel, stride, padding, ceil, counted), x)
            self.same(lambda t: F.avg_pool2d(t, kernel, stride, padding, ceil, True, divisor_override=3), x)
            for size in (1, (3, 2), (7, 6)):
                self.same(lambda t: F.adaptive_max_pool2d(t, size, return_indices=True), x)

    def test_three_dimensions(self):
        x = tenon.randn(2, 5, 4, 5, 6)
        self.same(lambda t: F.max_pool3d(t, (2, 3, 2), (1, 2, 2), (1, 1, 0), return_indices=True), x)
        self.same(lambda t: F.avg_pool3d(t, 2, 2, 1), x)

    def test_one_image_of_three_dimensions_has_no_rows(self):
        """Its sizes are those of images whose channels may be last in memory. Values are PyTorch's."""
        x = tenon.arange(360.).reshape(3, 4, 5, 6).contiguous(memory_format=tenon.channels_last).requires_grad_()
        for call in (lambda t: F.adaptive_avg_pool3d(t, (1, 1, 2)), lambda t: F.avg_pool3d(t, (4, 5, 3))):
            self.assertEqual(call(x).flatten().tolist(), [58., 61., 178., 181., 298., 301.])
            gradient, = tenon.autograd.grad((call(x) * tenon.arange(6.).reshape(3, 1, 1, 2)).sum(), x)
            self.assertTrue(tenon.allclose(gradient.sum((1, 2)), tenon.arange(6.).div(3).repeat_interleave(3).reshape(3, 6)))
        for call in (lambda t: F.max_pool3d(t, (4, 5, 3)), lambda t: F.adaptive_max_pool3d(t, (1, 1, 2))):
            self.assertEqual(call(x).flatten().tolist(), [116., 119., 236., 239., 356., 359.])
            gradient, = tenon.autograd.grad(call(x).sum(), x)
            self.assertEqual(gradient.nonzero().tolist(), [[c, 3, 4, w] for c in range(3) for w in (2, 5)])

    def test_a_window_of_padding_has_the_least_number(self):
        for dtype, least in ((tenon.uint8, 0), (tenon.int8, -128), (tenon.int16, -32768), (tenon.int32, -2**31), (tenon.int64, -2**63)):
            self.assertEqual(F.max_pool2d(tenon.ones(1, 2, 1, dtype=dtype), 2, 1, 1, 2, True).flatten().tolist(), [least, least])

    def test_planes_of_two_dtypes(self):
        tenon.manual_seed(1)
        for width, kernel, stride, dilation, ceil in itertools.product((1, 7, 64, 130, 300), (1, 2, 5), (1, 2, 3), (1, 2), (False, True)):
            x = tenon.randint(-4, 4, (2, 2, 5, width)).float()
            x[0, 1, 2, width // 2:width // 2 + 2] = float("nan")
            x[1, 0, 1:3] = float("-inf")
            if dilation * (kernel - 1) >= width:
                continue
            options = {"kernel_size": (2, kernel), "stride": (1, stride), "padding": (1, kernel // 2), "dilation": (1, dilation), "ceil_mode": ceil}
            got, places = F.max_pool2d(x, return_indices=True, **options)
            wanted, same = F.max_pool2d(x.double(), return_indices=True, **options)
            self.assertEqual(places.tolist(), same.tolist())
            self.assertEqual(bits(got), bits(wanted.float()))

    def test_averages_of_planes_of_two_dtypes(self):
        """Of small whole numbers sums are exact, and a quotient is rounded once to float32, or in float64 and then to float32."""
        tenon.manual_seed(2)
        for width, kernel, stride, ceil, counted in itertools.product((1, 7, 64, 130), (1, 2, 5), (1, 2, 3), (False, True), (False, True)):
            x = tenon.randint(-4, 4, (2, 2, 5, width)).float()
            if kernel > width + 2 * (kernel // 2):
                continue
            for divisor in (None, 8, -4):
                options = {"kernel_size": (2, kernel), "stride": (1, stride), "padding": (1, kernel // 2), "ceil_mode": ceil,
                           "count_include_pad": counted, "divisor_override": divisor}
                self.assertEqual(bits(F.avg_pool2d(x, **options)), bits(F.avg_pool2d(x.double(), **options).float()))

    def test_gradients(self):
        for call in (lambda t: F.max_pool2d(t, 3, 2, 1), lambda t: F.avg_pool2d(t, 3, 2, 1), lambda t: F.adaptive_avg_pool2d(t, 2)):
            x = tenon.randn(2, 70, 5, 6)
            a, b = x.clone().requires_grad_(), x.contiguous(memory_format=tenon.channels_last).requires_grad_()
            for t in (a, b):
                (call(t) ** 2).sum().backward()
            self.assertTrue(tenon.allclose(a.grad, b.grad))

    def test_any_number_of_threads(self):
        x = tenon.randn(4, 33, 40, 40).contiguous(memory_format=tenon.channels_last)
        n = tenon.get_num_threads()
        try:
            tenon.set_num_threads(1)
            one = bits(F.max_pool2d(x, 3, 2, 1)), bits(F.avg_pool2d(x, 3, 2, 1))
            tenon.set_num_threads(3)
            self.assertEqual(one, (bits(F.max_pool2d(x, 3, 2, 1)), bits(F.avg_pool2d(x, 3, 2, 1))))
        finally:
            tenon.set_num_threads(n)


if __name__ == "__main__":
    harness.main()
