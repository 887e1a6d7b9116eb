# SPDX-License-Identifier: MIT
"""The operators of torchvision's compiled libraries, which are made when torchvision loads them. Numbers in the comments'
calls were made by torchvision 0.26 with PyTorch 2.11."""

import os
import tempfile
import unittest

import harness
import tenon


def setUpModule():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "torchvision"))
        for name in ("_C.so", "image.so"):  # no library: torchvision's own would need PyTorch's
            path = os.path.join(folder, "torchvision", name)
            with open(path, "wb"):
                pass
            tenon.ops.load_library(path)
            tenon.ops.load_library(path)


class Regions(unittest.TestCase):
    x = tenon.arange(40.0).reshape(1, 1, 5, 8)
    rois = tenon.tensor([[0, 1.0, 1.0, 5.0, 4.0], [0, -2.0, 0.0, 9.0, 9.0]])

    def test_boxes_that_others_cover_are_left_out(self):
        boxes = tenon.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0],
                              [0.0, 0.0, 5.0, 10.0]])
        scores = tenon.tensor([0.5, 0.9, 0.3, 0.7])
        self.assertEqual(tenon.ops.torchvision.nms(boxes, scores, 0.5).tolist(), [1, 3, 2])
        self.assertEqual(tenon.ops.torchvision.nms(boxes[:0], scores[:0], 0.5).tolist(), [])
        with self.assertRaisesRegex(RuntimeError, "boxes should be a 2d tensor"):
            tenon.ops.torchvision.nms(scores, scores, 0.5)

    def test_means_of_points_and_their_gradient(self):
        align, x = tenon.ops.torchvision.roi_align, self.x.clone().requires_grad_()
        out = align(x, self.rois, 0.75, 2, 2, 2, True)  # roi_align(x, rois, (2, 2), 0.75, 2, True)
        self.assertEqual(out.tolist(), [[[[7.5, 9], [16.5, 18]]], [[[10.046875, 13.6875], [15.1484375, 16.96875]]]])
        out.sum().backward()
        self.assertEqual(x.grad[0, 0, 0].tolist(), [0.2080078125, 0.295166015625, 0.176513671875, 0.255615234375,
                                                    0.025634765625, 0.128173828125, 0.035888671875, 0])
        tenon.testing.assert_close(align(x, self.rois, 1.0, 1, 2, -1, False).detach().reshape(-1),
                                   tenon.tensor([22.0, 24.0, 9.506172180175781, 11.512346267700195]))
        self.assertEqual(tuple(align(x, self.rois[:0], 1.0, 3, 2, 2, True).shape), (0, 1, 3, 2))

    def test_many_regions_are_done_in_parts(self):
        rois = self.rois.repeat(50, 1)
        out = tenon.ops.torchvision.roi_align(self.x, rois, 0.75, 2, 2, 2, True)
        self.assertEqual(out.tolist(), out[:2].repeat(50, 1, 1, 1).tolist())

    def test_largest_values(self):
        out, where = tenon.ops.torchvision.roi_pool(self.x, self.rois, 0.75, 2, 2)
        self.assertEqual(out.reshape(-1).tolist(), [18, 20, 26, 28, 26, 31, 34, 39])
        self.assertEqual((where.reshape(-1).tolist(), where.dtype), ([18, 20, 26, 28, 26, 31, 34, 39], tenon.int32))


class Moved(unittest.TestCase):
    def conv(self, x, weight, offset, mask, bias, stride=1, pad=1, dilation=1, groups=1, offset_groups=1):
        return tenon.ops.torchvision.deform_conv2d(x, weight, offset, mask, bias, stride, stride, pad, pad, dilation,
                                                   dilation, groups, offset_groups, True)

    def test_without_offsets_it_is_a_convolution(self):
        tenon.manual_seed(0)
        for stride, pad, dilation, groups, offset_groups in ((1, 1, 1, 1, 1), (2, 1, 1, 2, 2), (1, 2, 2, 1, 4)):
            x, weight, bias = tenon.randn(2, 4, 7, 8), tenon.randn(6, 4 // groups, 3, 3), tenon.randn(6)
            want = tenon.nn.functional.conv2d(x, weight, bias, stride, pad, dilation, groups)
            oh, ow = want.shape[2:]
            made = self.conv(x, weight, tenon.zeros(2, 18 * offset_groups, oh, ow),
                             tenon.ones(2, 9 * offset_groups, oh, ow), bias, stride, pad, dilation, groups, offset_groups)
            tenon.testing.assert_close(made, want, rtol=1e-4, atol=1e-4)

    def test_a_whole_offset_reads_the_neighbour(self):
        x, weight = tenon.arange(20.0).reshape(1, 1, 4, 5), tenon.ones(1, 1, 1, 1)
        offset = tenon.zeros(1, 2, 4, 5)
        offset[:, 1] = 1.0  # one to the right
        made = self.conv(x, weight, offset, tenon.ones(1, 1, 4, 5), tenon.zeros(1), pad=0)
        self.assertEqual(made[0, 0].tolist(), [[1, 2, 3, 4, 0], [6, 7, 8, 9, 0], [11, 12, 13, 14, 0], [16, 17, 18, 19, 0]])

    def test_gradients(self):
        tenon.manual_seed(0)
        shapes = ((1, 2, 4, 4), (2, 2, 2, 2), (1, 8, 3, 3), (1, 4, 3, 3), (2,))
        x, weight, offset, mask, bias = (tenon.randn(shape, dtype=tenon.float64) for shape in shapes)
        offset = offset.mul(0.2).add(0.3)  # away from whole numbers, where the gradient jumps
        given = [t.requires_grad_() for t in (x, weight, offset, mask, bias)]
        self.assertTrue(tenon.autograd.gradcheck(lambda *a: self.conv(*a, pad=0), given))


class Pictures(unittest.TestCase):
    def test_a_picture_goes_to_a_file_and_comes_back(self):
        try:
            import numpy  # noqa: F401
            import PIL.Image  # noqa: F401
        except ImportError:
            self.skipTest("NumPy or Pillow is not installed")
        op = tenon.ops.image
        picture = tenon.arange(3 * 4 * 5).to(tenon.uint8).reshape(3, 4, 5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.png")
            op.write_file(path, op.encode_png(picture, 6))
            data = op.read_file(path)
        self.assertTrue(tenon.equal(op.decode_image(data, 0), picture))
        self.assertEqual(tuple(op.decode_png(data, 1).shape), (1, 4, 5))
        self.assertEqual(tuple(op.decode_jpeg(op.encode_jpeg(picture, 90), 3).shape), (3, 4, 5))
        with self.assertRaisesRegex(RuntimeError, "Unsupported image file"):
            op.decode_image(tenon.zeros(4, dtype=tenon.uint8), 0)


if __name__ == "__main__":
    harness.main()
