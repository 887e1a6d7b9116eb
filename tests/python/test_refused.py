# SPDX-License-Identifier: MIT
"""Bad input that is found in values rather than in shapes: the class and the text of the error are PyTorch 2.11's, and what an
operator was to write is as it was. Beside them, input that looks bad and is not: indices that wrap, norms of nothing."""

import unittest

import harness
import tenon
import tenon.nn.functional as F

INF = float("inf")


def numbers(*sizes):
    return tenon.arange(1, 1 + tenon.Size(sizes).numel()).reshape(sizes).to(tenon.float32)


def pivots(*values):
    return tenon.tensor(values, dtype=tenon.int32)


class Refused(unittest.TestCase):
    def refuses(self, kind, text, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertEqual(str(caught.exception).split("\n")[0], text)

    def test_a_padding_index_is_one_of_the_bags_rows(self):
        for at in (3, -4, 2**40):
            for mode in ("sum", "mean", "max"):
                self.refuses(
                    RuntimeError, "padding_idx must be within the number of embeddings, -3 through 2, but got %d" % at,
                    F.embedding_bag, tenon.tensor([0, 1]), numbers(3, 3), tenon.tensor([0]), mode=mode, padding_idx=at)
        made = F.embedding_bag(tenon.tensor([0, 1]), numbers(3, 3), tenon.tensor([0]), padding_idx=-3)
        self.assertEqual(made.tolist(), [[4.0, 5.0, 6.0]])

    def test_a_loss_names_a_reduction_that_is_none(self):
        ops, x, classes, sign = tenon.ops.aten, numbers(4, 3), tenon.tensor([0, 1, 2, 0]), tenon.ones(4)
        image, labels, whole = numbers(2, 3, 2, 2), tenon.zeros(2, 2, 2, dtype=tenon.int64), tenon.zeros(4, 3, dtype=tenon.int64)
        one, lengths = tenon.ones(()), (tenon.tensor([[1, 2]]), tenon.tensor([5]), tenon.tensor([2]))
        for bad in (-1, 3):
            for call in (
                    lambda r: ops.nll_loss(x, classes, None, r), lambda r: ops.nll_loss2d(image, labels, None, r),
                    lambda r: ops.nll_loss_backward(one, x, classes, None, r, -100, one),
                    lambda r: ops.nll_loss2d_backward(one, image, labels, None, r, -100, one),
                    lambda r: ops.cross_entropy_loss(x, classes, None, r), lambda r: ops.cross_entropy_loss(x, x, None, r),
                    lambda r: ops.cross_entropy_loss(x, classes, None, r, -100, 0.1),
                    lambda r: ops.cosine_embedding_loss(x, x, sign, 0.0, r), lambda r: ops.ctc_loss(numbers(5, 1, 3), *lengths, 0, r),
                    lambda r: ops.multi_margin_loss(x, classes, 1, 1, None, r),
                    lambda r: ops.multi_margin_loss_backward(one, x, classes, 1, 1, None, r),
                    lambda r: ops.multilabel_margin_loss(x, whole, r),
                    lambda r: ops.multilabel_margin_loss_backward(one, x, whole, r, x),
                    lambda r: ops.mse_loss(x, x, r)):
                self.refuses(RuntimeError, "reduction is %d, expected 0 (none), 1 (mean) or 2 (sum)" % bad, call, bad)

    def test_a_bag_names_the_row_that_is_not_there(self):
        for at in (3, -1, 2**40):
            index = tenon.tensor([0, at])
            self.refuses(
                RuntimeError,
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %d" % at,
                F.embedding_bag, index, numbers(3, 3), tenon.tensor([0]), mode="max")
            self.refuses(
                RuntimeError,
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %d" % at,
                F.embedding_bag, index, numbers(3, 3).double(), tenon.tensor([0]), mode="sum")
            self.refuses(
                RuntimeError, "Index 1 of input takes value %d which is not in the valid range [0, 3)" % at,
                F.embedding_bag, index, numbers(3, 3), tenon.tensor([0]), mode="sum")

    def test_noise_has_the_sizes_of_what_it_is_for(self):
        for training in (True, False):
            self.refuses(
                RuntimeError, "noise tensor shape must match self tensor shape. Got self.shape = [2, 3] noise.shape = [3]",
                tenon._C._nn.rrelu_with_noise, numbers(2, 3), numbers(3), 0.1, 0.3, training)

    def test_what_is_filled_in_is_no_complex_number(self):
        x, index = numbers(3), tenon.tensor([1])
        text = "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        self.refuses(RuntimeError, text, x.index_fill, 0, index, tenon.tensor(1 + 2j))
        self.refuses(RuntimeError, text, x.index_fill_, 0, index, tenon.tensor(1 + 2j))

    def test_running_statistics_come_in_pairs(self):
        for pair in ((None, numbers(3)), (numbers(3), None)):
            for training in (True, False):
                self.refuses(
                    ValueError, "running_mean and running_var must either both be None or neither be None",
                    tenon.native_batch_norm, numbers(4, 3), None, None, *pair, training, 0.1, 1e-5)

    def test_a_step_is_a_real_number(self):
        for name in ("trapezoid", "cumulative_trapezoid"):
            self.refuses(RuntimeError, name + ": Currently, we only support dx as a real number.", getattr(tenon, name), numbers(3), dx=True)

    def test_pivots_are_numbers_of_rows(self):
        text = ("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?")
        for bad in (0, 4, -4, 2**31 - 1, -2**31):
            self.refuses(RuntimeError, text, tenon.lu_unpack, numbers(3, 3), pivots(1, 2, bad))
            out = tuple(tenon.full((3, 3), 7.0) for _ in range(3))
            self.refuses(RuntimeError, text, tenon.lu_unpack, numbers(3, 3), pivots(1, 2, bad), out=out)
            for each in out:
                self.assertEqual(each.tolist(), [[7.0] * 3] * 3)
        self.refuses(RuntimeError, text, tenon.lu_unpack, numbers(2, 3), pivots(1, 3))

    def test_pivots_of_a_solution_are_those_of_a_factor(self):
        right = numbers(3, 1)
        for given, kind, text in (
                (tenon.tensor([1, 2, 3]), RuntimeError, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"),
                (pivots(1, 2), RuntimeError,
                 "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"),
                (pivots(1, 2, 3).expand(2, 3), RuntimeError, "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the "
                 "same, but got pivots with shape [2, 3] instead"),
                (tenon.tensor(1, dtype=tenon.int32), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
                (pivots(1, 0, 3), RuntimeError, "Pivots given to lu_solve must all be greater or equal to 1. "
                 "Did you properly pass the result of lu_factor?"),
                (pivots(1, 4, 3), RuntimeError, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). "
                 "Did you properly pass the result of lu_factor?")):
            out = tenon.full((3, 1), 7.0)
            self.refuses(kind, text, tenon.linalg.lu_solve, numbers(3, 3), given, right)
            self.refuses(kind, text, tenon.linalg.lu_solve, numbers(3, 3), given, right, out=out)
            self.assertEqual(out.tolist(), [[7.0]] * 3)

    def test_deviations_are_not_negative(self):
        mean, text = tenon.zeros(2, 3), "normal expects all elements of std >= 0.0"
        for std in (tenon.tensor([1.0, -1.0, 1.0]), tenon.tensor([1.0, float("nan"), 1.0])):
            out = tenon.full((2, 3), 7.0)
            self.refuses(RuntimeError, text, tenon.normal, mean, std)
            self.refuses(RuntimeError, text, tenon.normal, 1.0, std)
            self.refuses(RuntimeError, text, tenon.normal, mean, std, out=out)
            self.refuses(RuntimeError, text, tenon.normal, 1.0, std, out=out)
            self.assertEqual(out.tolist(), [[7.0] * 3] * 2)
        sized = tenon.zeros(0), tenon.zeros(0)
        tenon.normal(mean, tenon.ones(3), out=sized[0])
        tenon.normal(1.0, mean, out=sized[1])
        self.assertEqual([(x.shape, x._version) for x in sized], [((2, 3), 1)] * 2)
        self.refuses(RuntimeError, "The size of tensor a (3) must match the size of tensor b (0) at non-singleton dimension 1",
                     tenon.normal, mean, 1.0, out=tenon.zeros(0))  # means go to the sizes that out has
        self.refuses(RuntimeError, "normal expects std >= 0.0, but found std nan", tenon.normal, 0.0, float("nan"), (2,))
        self.refuses(NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'", tenon.normal, 0.0, 1.0, (2,),
                     out=tenon.zeros(2, dtype=tenon.int64))
        self.refuses(RuntimeError, "dtype Double does not match dtype of out parameter (Float)", tenon.normal, 0.0, 1.0, (2,),
                     dtype=tenon.float64, out=tenon.zeros(2))

    def test_a_window_that_does_not_fit_is_named_by_its_own_operator(self):
        lines = "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
        self.refuses(RuntimeError, lines + "[5]", F.max_pool1d, numbers(5), 0)
        self.refuses(RuntimeError, lines + "[1, 0, 5]", F.max_pool1d, tenon.zeros(1, 0, 5), 2, -1)
        for device in ("cpu", "meta"):
            x = numbers(2, 5).to(device)
            self.refuses(RuntimeError, "max_pool1d() Invalid computed output size: 0", F.max_pool1d, x, 9)
            self.refuses(RuntimeError, "max_pool1d() Invalid computed output size: -3", F.max_pool1d, x, 9, 1)
            self.refuses(RuntimeError, "max_pool1d() Invalid computed output size: 0", F.max_pool1d, x.clone().requires_grad_(), 9)
            self.assertEqual(F.max_pool1d(x, 4, 3, 2, 1, True).shape, (2, 3))

    def test_a_kernel_without_elements_is_refused(self):
        size = "kernel size should be greater than zero, but got kernel_height: %d kernel_width: %d"
        volume = ("non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor expected for "
                  "weight, but got: [2, 2, 0, 2, 2]")
        for turned in ("conv", "conv_transpose"):
            one, two, three = (getattr(F, "%s%dd" % (turned, n)) for n in (1, 2, 3))
            self.refuses(RuntimeError, size % (1, 0), one, numbers(1, 2, 4), tenon.zeros(2, 2, 0))
            self.refuses(RuntimeError, size % (0, 2), two, numbers(1, 2, 4, 4), tenon.zeros(2, 2, 0, 2))
            text = volume if turned != "conv" else "kernel size should be greater than zero, but got: 0 x 2 x 2 (TxHxW)"
            self.refuses(RuntimeError, text, three, numbers(1, 2, 4, 4, 4), tenon.zeros(2, 2, 0, 2, 2))

    def test_a_kernel_is_compared_with_its_input_before_it_is_looked_at(self):
        self.refuses(
            RuntimeError, "Calculated padded input size per channel: (2 x 4). Kernel size: (3 x 0). Kernel size can't be greater than actual "
            "input size", F.conv2d, numbers(1, 2, 2, 4), tenon.zeros(2, 2, 3, 0))
        self.refuses(RuntimeError, "negative padding is not supported", F.conv2d, numbers(1, 2, 4, 4), tenon.zeros(2, 2, 3, 0), padding="same")
        self.refuses(
            RuntimeError, "Only zero batch or zero channel inputs are supported, but got input shape: [2, 7, 0, 7, 0]",
            F.conv_transpose3d, tenon.zeros(2, 7, 0, 7, 0), tenon.zeros(7, 2, 2, 1, 0))

    def test_a_convolution_of_four_dimensions_is_refused_last(self):
        x, w = tenon.zeros(2, 4, 2, 4, 5, 5), tenon.zeros(2, 4, 2, 2, 2, 2)
        ends = [1], [0], [1], False, [0], 1
        self.refuses(
            RuntimeError, "expected stride to be a single integer value or a list of 4 values to match the convolution dimensions, but got "
            "stride=[1, 1]", tenon.convolution, x, w, None, [1, 1], *ends[1:])
        self.refuses(
            RuntimeError, "Given groups=1, weight of size [2, 4, 2, 2, 2, 2], expected input[2, 3, 2, 4, 5, 5] to have 4 channels, but got 3 "
            "channels instead", tenon.convolution, x[:, :3], w, None, *ends)
        self.refuses(
            RuntimeError, "Given weight of size [2, 4, 2, 2, 2, 2], expected bias to be 1-dimensional with 2 elements, but got bias of size "
            "[3] instead", tenon.convolution, x, w, tenon.zeros(3), *ends)
        self.refuses(
            RuntimeError, "a convolution has at most three spatial dimensions, but weight has size [2, 4, 2, 2, 2, 2]",
            tenon.convolution, x, w, None, *ends)
        self.refuses(
            RuntimeError, "stride cannot broadcast to 4 dimensions", tenon.ops.aten._convolution_mode, x, w, None, [1, 1], "same", [1], 1)

    def test_windows_have_the_sizes_of_their_tensor(self):
        back = tenon.ops.aten.unfold_backward
        self.assertEqual(back(numbers(1), [], 0, 1, 1).item(), 1)
        for sizes, whole, size, step in (((4,), [], 1, 1), ((1, 4, 1), [7, 4], 3, 2), ((2, 4, 3), [7, 4], 3, 2)):
            with self.assertRaisesRegex(RuntimeError, "expected grad_in of size"):
                back(tenon.zeros(sizes), whole, 0, size, step)

    def test_lengths_of_a_weight_go_with_its_directions(self):
        v = numbers(2, 3)
        for call in tenon._weight_norm, tenon.ops.aten._weight_norm_interface:
            for sizes, dim in (((2, 2), 0), ((2, 3), 0), ((2,), 0), ((1, 1), 1), ((), 0)):
                with self.assertRaisesRegex(RuntimeError, "weight_norm: expected g to have"):
                    call(v, tenon.ones(sizes), dim)
        self.assertEqual(tenon._weight_norm(tenon.tensor([[3.0, 4.0]]), tenon.tensor([[10.0]])).tolist(), [[6.0, 8.0]])

    def test_running_statistics_of_an_instance_have_one_dimension(self):
        many = tenon.zeros(1, 0)
        self.refuses(
            RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
            tenon.instance_norm, tenon.zeros(1, 2, 0, 4), many, many, many, many, True, 0.1, 1e-5, True)

    def test_infinities_of_complex_numbers_have_no_sign(self):
        nothing = tenon.zeros(2, 0, dtype=tenon.complex64)
        self.refuses(RuntimeError, "isneginf does not support complex inputs.", tenon._safe_softmax, nothing, 0)

    def test_a_signal_of_three_dimensions_is_padded_before_it_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, r"stft\(torch.FloatTensor\[2, 1, 28\], n_fft=8, .*expected a 1D or 2D tensor"):
            tenon.stft(tenon.zeros(2, 1, 20), 8, return_complex=True)
        self.refuses(
            RuntimeError, "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (4, 4) at "
            "dimension 2 of input [2, 1, 2]", tenon.stft, tenon.zeros(2, 1, 2), 8, return_complex=True)

    def test_of_a_dtype_and_sizes_what_is_wrong_is_said_in_order(self):
        whole, ops = tenon.int64, tenon.ops.aten
        nobody = '"%s" not implemented for \'%s\''
        for log_probs in tenon.zeros(0, 1, 3, dtype=whole), tenon.zeros(4, 2, 3, dtype=whole):
            self.refuses(
                NotImplementedError, nobody % ("ctc_loss_cpu", "Long"), F.ctc_loss, log_probs, tenon.ones(1, 1, dtype=whole), [4], [1])
        x, small = tenon.zeros(2, 3, 4, 4, dtype=tenon.int8), tenon.zeros(2, 3, 1, 2, dtype=tenon.int8)
        with self.assertRaisesRegex(RuntimeError, r"Expected a tensor of dimension 4 and tensor.size\[2\] == 2"):
            ops.avg_pool2d_backward(small, x, [2, 2], [], [0], False, True, None)
        right = tenon.zeros(2, 3, 2, 2, dtype=tenon.int8)
        self.refuses(
            NotImplementedError, nobody % ("avg_pool2d_backward", "Char"), ops.avg_pool2d_backward, right, x, [2, 2], [], [0], False, True, None)
        self.refuses(
            RuntimeError, "inconsistent target size, expected 1 but got [7]",
            F.multi_margin_loss, tenon.zeros(2, dtype=whole), tenon.zeros(7, dtype=whole))
        self.refuses(
            NotImplementedError, nobody % ("multi_margin_loss_cpu_kernel", "Long"),
            F.multi_margin_loss, tenon.zeros(2, dtype=whole), tenon.zeros(1, dtype=whole))
        self.refuses(
            RuntimeError, "adaptive_avg_pool3d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            "[1, 0, 3, 4, 2, 2] with dimension 1 being empty", F.adaptive_avg_pool3d, tenon.zeros(1, 0, 3, 4, 2, 2), 2)
        self.refuses(
            RuntimeError, "bilinear(): input1 size does not match weight size: got 4 but expected 1",
            F.bilinear, tenon.zeros(2, 4), tenon.zeros(2, 4), tenon.zeros(2, 1, 4, 0))

    def test_some_results_have_their_very_dtype(self):
        x = numbers(3, 4)
        for dtype, name in ((tenon.float64, "Double"), (tenon.int64, "Long"), (tenon.complex64, "ComplexFloat")):
            square = tenon.full((3, 3), 7, dtype=dtype)
            text = "tensordot: Expected the output tensor to have dtype Float, but got an output tensor with dtype " + name
            self.refuses(RuntimeError, text, tenon.tensordot, x, x.t(), 1, out=square)
            self.refuses(RuntimeError, text, tenon.inner, x, x, out=square)
            self.assertTrue(bool((square == 7).all()))
            self.refuses(RuntimeError, "Expected self.dtype() == output.dtype() to be true, but got false.", tenon.narrow_copy,
                         x, 0, 0, 3, out=tenon.zeros(3, 4, dtype=dtype))

    def test_pivots_may_go_back(self):
        for given, wanted in (((1, 1, 1), [[0, 1, 0], [0, 0, 1], [1, 0, 0]]), ((3, 1, 2), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])):
            self.assertEqual(tenon.lu_unpack(numbers(3, 3), pivots(*given))[0].tolist(), wanted)

    def test_a_segment_has_no_negative_length(self):
        for lengths in ([4, -1], [4, -2]):
            self.refuses(RuntimeError, "lengths contains negative value!", tenon.segment_reduce, numbers(3), "sum",
                         lengths=tenon.tensor(lengths))

    def test_a_histogram_has_finite_edges(self):
        nan = float("nan")
        for x, given, said in ((tenon.tensor([1.0, nan]), None, "nan, nan"), (tenon.tensor([INF, INF]), None, "inf, inf"),
                               (numbers(2), (-INF, 1.25), "-inf, 1.25"), (numbers(0), (1.0, INF), "1, inf"),
                               (numbers(2), (0.0, nan), "0, nan")):
            text = "torch.histogramdd: dimension 0's range [%s] is not finite" % said
            self.refuses(RuntimeError, text, tenon.histogram, x, 2, **({"range": given} if given else {}))
            out = (tenon.full((2,), 7.0), tenon.full((3,), 7.0))
            self.refuses(RuntimeError, text, tenon.histogram, x, 2, **({"range": given} if given else {}), out=out)
            self.assertEqual([each.tolist() for each in out], [[7.0] * 2, [7.0] * 3])
        self.refuses(RuntimeError, "torch.histogramdd: dimension 1's range [nan, nan] is not finite", tenon.histogramdd,
                     tenon.tensor([[1.0, nan], [2.0, 3.0]]), [2, 2])
        self.refuses(RuntimeError, "torch.histogramdd: min should not exceed max, but got min 2.5 max 1.25 for dimension 0",
                     tenon.histogram, numbers(2), 2, range=(2.5, 1.25))

    def test_a_condition_by_norms_is_of_square_matrices(self):
        for order, said, sizes in (("fro", "fro", (2, 3)), ("nuc", "nuc", (0, 2)), ("fro", "fro", (2, 0)), (1, "1", (2, 3))):
            self.refuses(
                RuntimeError,
                "linalg.cond(ord=%s): A must be batches of square matrices, but they are %d by %d matrices" % (said, *sizes),
                tenon.linalg.cond, tenon.zeros(sizes), order)
        self.assertEqual(tenon.linalg.cond(tenon.zeros(0, 3), 1).item(), 0)
        self.assertEqual(tenon.linalg.cond(tenon.zeros(3, 0, 0), "nuc").tolist(), [0.0, 0.0, 0.0])

    def test_a_mask_of_gradients_has_as_many_as_there_are(self):
        x, one = numbers(2, 3), tenon.ones(2, 1)
        for mask in ([True], [], [True] * 4):
            text = "Tried to convert a List with %d elements to a fixed-size array of size " % len(mask)
            self.refuses(RuntimeError, text + "3", tenon.ops.aten.native_layer_norm_backward, x, x, [3], one, one, None, None, mask)
            self.refuses(RuntimeError, text + "2", tenon.ops.aten._fused_rms_norm_backward, x, x, [3], one, None, mask)

    def test_a_result_that_is_refused_keeps_the_size_of_its_storage(self):
        ones = tenon.tensor([1, 1])
        for call in (lambda out: tenon.floor_divide(ones, 0, out=out), lambda out: tenon.gather(ones, 0, tenon.tensor([7]), out=out),
                     lambda out: tenon.index_select(ones, 0, tenon.tensor([2]), out=out)):
            out = tenon.empty(0, dtype=tenon.int64)
            with self.assertRaises((RuntimeError, IndexError)):
                call(out)
            self.assertEqual((out.shape, out.untyped_storage().nbytes()), ((0,), 0))

    def test_a_list_is_asked_for_whole_wherever_it_is(self):
        far = tenon.ones(2, device="meta"), tenon.ones(3, device="meta")
        named = tenon.ones(2, names=("N",)), tenon.ones(3, names=("N",))
        plain = tenon.ones(2), tenon.ones(2)
        for lists, other in ((far, (far[0], tenon.ones(4, device="meta"))), (named, (tenon.ones(2), tenon.ones(3, names=("C",)))),
                             (plain, None)):
            with self.assertRaises(RuntimeError):
                if other is None:
                    tenon._foreach_clamp_min_(lists, [2.0, 1e300])
                else:
                    tenon._foreach_mul_(lists, other)
            self.assertEqual([x._version for x in lists], [0, 0])

    def test_a_write_that_is_refused_leaves_no_tangent(self):
        fw = tenon.autograd.forward_ad
        with fw.dual_level():
            base, dual = tenon.ones(3), fw.make_dual(numbers(3), tenon.ones(3))
            for x in (base.expand(2, 3), base[:2]):
                for call in (lambda x: x.clamp_(dual), lambda x: x.add_(dual), lambda x: x.masked_fill_(tenon.ones(3, dtype=tenon.bool), dual[0]),
                             lambda x: x.copy_(dual)):
                    with self.assertRaises(RuntimeError):
                        call(x)
                    self.assertIsNone(fw.unpack_dual(x).tangent)
                    self.assertIsNone(fw.unpack_dual(base).tangent)
            self.assertEqual(base.tolist(), [1.0] * 3)

    def test_no_tangent_goes_into_what_is_given(self):
        fw = tenon.autograd.forward_ad
        with fw.dual_level():
            dual = fw.make_dual(numbers(2, 3, 3), tenon.ones(2, 3, 3))
            for name, call in (("split_copy", lambda x, out: tenon.split_copy(x, 1, out=out)),
                               ("split_with_sizes_copy", lambda x, out: tenon.split_with_sizes_copy(x, [1, 1], out=out)),
                               ("unbind_copy", lambda x, out: tenon.unbind_copy(x, out=out)),
                               ("mm", lambda x, out: tenon.matmul(x, numbers(3, 3), out=out[0])),
                               ("bmm", lambda x, out: tenon.matmul(x, x, out=out[0]))):
                out = [tenon.empty(0), tenon.empty(0)]
                text = "Trying to use forward AD with %s_out that does not support it because it is an out= function" % name
                self.refuses(NotImplementedError, text, call, dual, out)
                self.assertEqual([x.shape for x in out], [(0,), (0,)])


class Taken(unittest.TestCase):
    def test_a_weight_without_dimensions_is_of_any_dtype(self):
        a, b = tenon.ones(2), tenon.tensor([3.0, 5.0])
        for weight in (tenon.tensor(0.25, dtype=tenon.float64), tenon.tensor(0.25, dtype=tenon.float16)):
            made = tenon.lerp(a, b, weight)
            self.assertEqual((made.tolist(), made.dtype), ([1.5, 2.0], tenon.float32))
        self.assertEqual(a.clone().lerp_(b, tenon.tensor(1)).tolist(), [3, 5])
        w = tenon.tensor(0.25, dtype=tenon.float64, requires_grad=True)
        tenon.lerp(a, b, w).sum().backward()
        self.assertEqual((w.grad.item(), w.grad.dtype), (6.0, tenon.float64))

    def test_indices_along_a_dimension_wrap(self):
        x = numbers(3, 3).requires_grad_()
        made = tenon.take_along_dim(x, tenon.tensor([[-1, -3, 2, -4, 3]]), 1)
        self.assertEqual(made.tolist(), [[3, 1, 3, 3, 1], [6, 4, 6, 6, 4], [9, 7, 9, 9, 7]])
        made.sum().backward()
        self.assertEqual(x.grad.tolist(), [[2, 0, 3]] * 3)
        with tenon.no_grad():
            self.assertEqual(tenon.take_along_dim(x, tenon.tensor([[-1, -3, 2]]), 0).tolist(), [[7, 2, 9]])
            self.assertEqual(tenon.take_along_dim(x, tenon.tensor([[2**40]]), 1).tolist(), [[2], [5], [8]])
        self.assertEqual(tenon.take_along_dim(numbers(2, 0), tenon.zeros(2, 0, dtype=tenon.int64), 1).shape, (2, 0))
        for call, text in (((numbers(2, 0), tenon.zeros(2, 1, dtype=tenon.int64), 1), "ZeroDivisionError"),
                           ((numbers(3, 3), tenon.tensor([-1, 0])), "index -1 is out of bounds for dimension 0 with size 9")):
            with self.assertRaises(RuntimeError) as caught:
                tenon.take_along_dim(*call)
            self.assertEqual(str(caught.exception), text)

    def test_the_norm_of_a_matrix_without_elements_is_zero(self):
        for order in (1, 2, INF):
            self.assertEqual(tenon.linalg.matrix_norm(tenon.zeros(2, 0, 3), order).tolist(), [0.0, 0.0])
            self.assertEqual(tenon.linalg.matrix_norm(tenon.zeros(2, 3, 0), order, keepdim=True).tolist(), [[[0.0]], [[0.0]]])
            self.assertEqual(tenon.linalg.norm(tenon.zeros(0, 0), order).item(), 0)
            self.assertEqual(tenon.linalg.matrix_norm(tenon.zeros(0, 2, 2), order).shape, (0,))
            self.assertEqual(tenon.linalg.matrix_norm(tenon.zeros(2, 0, 3, device="meta"), order).shape, (2,))

    def test_one_image_without_channels_has_no_maxima(self):
        for pool, sizes in ((F.adaptive_max_pool1d, (0, 6)), (F.adaptive_max_pool2d, (0, 5, 6)), (F.adaptive_max_pool3d, (0, 4, 5, 6))):
            x = tenon.zeros(sizes, requires_grad=True)
            made = pool(x, 2)
            self.assertEqual(made.shape, (0,) + (2,) * (len(sizes) - 1))
            self.assertEqual(tenon.autograd.grad(made.sum(), x)[0].shape, sizes)

    def test_empty_bags_of_no_rows_have_a_gradient(self):
        for mode in ("sum", "mean", "max"):
            w = tenon.zeros(0, 4, requires_grad=True)
            made = F.embedding_bag(tenon.zeros(0, dtype=tenon.int64), w, tenon.zeros(3, dtype=tenon.int64), mode=mode)
            self.assertEqual(made.tolist(), [[0.0] * 4] * 3)
            self.assertEqual(tenon.autograd.grad(made.sum(), w)[0].shape, (0, 4))

    def test_means_of_planes_in_no_channels_have_a_gradient(self):
        for pool, sizes in ((F.adaptive_avg_pool2d, (2, 0, 5, 6)), (F.adaptive_avg_pool3d, (2, 0, 4, 5, 6))):
            x = tenon.zeros(sizes, requires_grad=True)
            made = pool(x, 1)
            self.assertEqual(made.shape, (2, 0) + (1,) * (len(sizes) - 2))
            self.assertEqual(tenon.autograd.grad(made.sum(), x)[0].shape, sizes)


if __name__ == "__main__":
    harness.main()
