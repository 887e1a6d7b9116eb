# SPDX-License-Identifier: MIT
"""What people read and what programs look for: texts of errors and warnings, tables, names of results. They are PyTorch 2.11's."""

import pickle
import subprocess
import sys
import unittest

import harness
import tenon


def first_warning(program):
    """The first warning of a program of its own: those that come once a process."""
    code = ("import warnings\nimport tenon\nfrom tenon import nn\nwith warnings.catch_warnings(record=True) as told:\n"
            "    warnings.simplefilter('always')\n    %s\n"
            "print([(w.category.__name__, str(w.message)) for w in told])" % program)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return eval(out)


class Errors(unittest.TestCase):
    def refuses(self, kind, text, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertEqual(str(caught.exception), text)

    def test_memory_that_is_not_there_in_the_words_that_programs_look_for(self):
        # those that try again with a smaller batch look for "DefaultCPUAllocator: can't allocate memory"
        self.refuses(RuntimeError, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611686018427387904 bytes. "
                     "Error code 12 (Cannot allocate memory)", tenon.empty, 1 << 60)

    def test_what_is_no_tensor(self):
        self.refuses(TypeError, "numel(): argument 'input' (position 1) must be Tensor, not int", tenon.numel, 3)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
            call = getattr(tenon, name)
            wrong = "      didn't match because some of the arguments have invalid types: (!int!)\n"
            self.refuses(TypeError, "%s() received an invalid combination of arguments - got (int), but expected one of:\n"
                         " * (Tensor input)\n%s * (tuple of Tensors tensors)\n%s" % (name, wrong, wrong), call, 3)
            self.refuses(TypeError, "expected Tensor as element 1 in argument 0, but got int", call, tenon.ones(1), 3)
            self.assertEqual(call(), ())

    def test_what_a_new_tensor_is_told_must_be_of_the_right_kind(self):
        for name, make in (("tensor", tenon.tensor), ("as_tensor", tenon.as_tensor)):
            for option, wanted, value in (("dtype", "torch.dtype", "float32"), ("device", "torch.device", 1.5)):
                self.refuses(TypeError, "%s(): argument '%s' must be %s, not %s" % (name, option, wanted, type(value).__name__),
                             make, [1.0], **{option: value})
        for value in (1, "yes", None):
            self.refuses(TypeError, "tensor(): argument 'requires_grad' must be bool, not %s" % type(value).__name__,
                         tenon.tensor, [1.0], requires_grad=value)
        self.refuses(ValueError, "buffer length (3 bytes) after offset (1 bytes) must be a multiple of element size (4)",
                     tenon.frombuffer, bytearray(4), dtype=tenon.int32, offset=1)
        x = tenon.ones(2)
        self.refuses(ValueError, "can't alias tensor with dtype 'Float' into dtype 'Long'.",
                     tenon.asarray, x, dtype=tenon.int64, copy=False)
        self.refuses(ValueError, "can't alias tensor from device 'cpu' to 'meta'.", tenon.asarray, x, device="meta", copy=False)

    def test_a_driver_that_is_none_is_refused(self):
        self.refuses(RuntimeError, "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
                     tenon.linalg.lstsq, tenon.eye(2), tenon.eye(2), driver="gelsx")

    def test_what_is_wrong_with_calls_that_few_make(self):
        x, nan = tenon.ones(2, 2), float("nan")
        self.refuses(TypeError, "resize_as_(): argument 'the_template' (position 1) must be Tensor, not int", x.resize_as_, 3)
        self.refuses(RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got 0 1 2", tenon.ones(2, 3, 4).norm, "fro", (0, 1, 2))
        self.refuses(RuntimeError, "linalg.cond got an invalid norm type: x", tenon.linalg.cond, x, "x")
        for call in (tenon.linalg.svd, tenon.linalg.svdvals):
            self.refuses(RuntimeError, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.",
                         call, x, driver="gesvd")
        for call in (tenon.nn.functional.alpha_dropout, tenon.nn.functional.feature_alpha_dropout, tenon.nn.functional.dropout1d):
            self.refuses(RuntimeError, "dropout probability has to be between 0 and 1, but got nan", call, tenon.ones(2, 3, 4), nan)
        self.refuses(RuntimeError, "Incompatible matrix sizes for triangular_solve: each A matrix is 3 by 3 but each b matrix is 2 by 1",
                     tenon.triangular_solve, tenon.ones(2, 1), tenon.ones(3, 3))
        self.refuses(RuntimeError, "A must be batches of square matrices, but they are 2 by 3 matrices",
                     tenon.triangular_solve, tenon.ones(2, 3), tenon.ones(2, 3))
        self.refuses(RuntimeError, "unflatten got an unexpected error:\nonly one dimension can be inferred", x.unflatten, 0, (-1, -1))
        rows, taps = tenon.ones(2, 3, 4), tenon.ones(5, 4, 2)
        self.refuses(RuntimeError, "Input dim 2 (input channels) is not == dim 1 in the weight tensor",
                     tenon.conv_tbc, rows, tenon.ones(5, 3, 2), tenon.ones(2))
        self.refuses(RuntimeError, "Bias size must equal dim 2 in the weight tensor (output channels).", tenon.conv_tbc, rows, taps, tenon.ones(3))
        self.refuses(NotImplementedError, "Padding size 4 is not supported for 2D input tensor.\nSupported combinations for non-constant "
                     "padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 "
                     "dimensions)\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                     tenon.nn.functional.pad, x, (1, 1, 1, 1), "reflect")

    def test_of_several_faults_sizes_and_memory_come_before_a_dtype_without_a_kernel(self):
        apart = "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 0"
        shared = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() "
                  "the tensor before performing the operation.")
        four, three, row, imaginary = tenon.ones(4), tenon.ones(3), tenon.ones(1, 4).expand(3, 4), (tenon.ones(1, 4) * 1j).expand(3, 4)
        for call, a, b in ((tenon.bitwise_and, four, three), (tenon.igamma, four.long(), three.long()), (tenon.atan2, four * 1j, three * 1j),
                           (tenon.clamp, four.bool(), three.bool()), (tenon.lt, four * 1j, three * 1j), (tenon.gcd, four, three)):
            self.refuses(RuntimeError, apart, call, a, b)
        whole, flag = tenon.ones(1, 4).long().expand(3, 4), tenon.ones(1, 4).bool().expand(3, 4)
        for call, *given in ((row.__iand__, four), (imaginary.erf_,), (imaginary.log_normal_,), (flag.geometric_, 0.5), (whole.exponential_,),
                             (imaginary.random_, -5, 5), (imaginary.bernoulli_,), (row.copy_, three)):
            self.refuses(RuntimeError, shared, call, *given)
        self.refuses(RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=-1", whole.exponential_, -1)
        self.refuses(RuntimeError, shared, tenon.erf, imaginary, out=imaginary)
        self.refuses(NotImplementedError, "\"erf_vml_cpu\" not implemented for 'ComplexFloat'", tenon.erf, imaginary)
        self.refuses(RuntimeError, "output with shape [2, 1, 4] doesn't match the broadcast shape [2, 2, 4]",
                     tenon.ones(2, 1, 4).__iand__, tenon.ones(2, 4))

    def test_what_is_said_first_of_several_faults(self):
        real, whole, half = tenon.ones(2, 3), tenon.ones(2, 3).long(), tenon.ones(2, 2, 0).half()
        for dtype, name in ((tenon.bool, "bool"), (tenon.complex64, "complex")):
            for dim in (None, 1, 5):
                self.refuses(RuntimeError, "argmax(): does not support %s input" % name, tenon.argmax, tenon.ones(2, 0).to(dtype), dim)
        self.refuses(RuntimeError, "linalg.matrix_norm: Order 3 not supported.", tenon.linalg.norm, whole, 3)
        self.refuses(RuntimeError, "linalg.matrix_norm: Order 3 not supported.", tenon.linalg.matrix_norm, tenon.ones(3), 3)
        self.refuses(TypeError, "torch.cat(): input types can't be cast to the desired output type Bool", tenon.cat,
                     [real.bool(), tenon.ones(2, 4).double()], out=tenon.zeros(0).bool())
        self.refuses(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 7)", tenon.cat,
                     [real.bool(), tenon.ones(2, 4).double()], 7, out=tenon.zeros(0).bool())
        self.refuses(NotImplementedError, "\"trace\" not implemented for 'Half'", tenon.trace, half)
        self.refuses(RuntimeError, "Unsupported dtype Half", tenon.fft.fft, half)
        self.refuses(RuntimeError, "Invalid number of data points (0) specified", tenon.fft.irfft2, tenon.ones(2, 1).half())
        for name, call in (("rfft expects a real", tenon.fft.rfft), ("ihfft expects a real", tenon.fft.ihfft), ("rfftn expects a real-valued", tenon.fft.rfft2)):
            self.refuses(RuntimeError, name + " input tensor, but got ComplexFloat", call, tenon.ones(2, 2, 0).to(tenon.complex64))
        self.refuses(RuntimeError, "Tensor must have a last dimension of size 2", tenon.view_as_complex, tenon.ones(3).half())
        self.refuses(RuntimeError, "expand(torch.FloatTensor{[2, 2, 3, 5]}, size=[2, 2, 4]): the number of sizes provided (3) must be greater or equal "
                     "to the number of dimensions in the tensor (4)", tenon.baddbmm, tenon.ones(2, 2, 3, 5), tenon.ones(2, 2, 3, 4), tenon.ones(2, 2, 4, 5))
        pairs = tenon.ones(2, 17, dtype=tenon.int16)
        for view, what in ((pairs[:, :14:2], "size(-1) must be divisible by 2 to view Short as Int (different element sizes), but got 7"),
                           (pairs[:, 1::2], "storage_offset() must be divisible by 2 to view Short as Int (different element sizes), but got 1"),
                           (pairs[:, :16:2], "stride(-1) must be 1 to view Short as Int (different element sizes), but got 2")):
            self.refuses(RuntimeError, "self." + what, view.view, tenon.int32)
        for sizes, what in (((0, 0, 3), "Number of zero sized dimensions is more than one, so unique cannot be applied "),
                            ((3, 0, 2), "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")):
            self.refuses(RuntimeError, what, tenon.unique, tenon.ones(sizes), dim=0)
        self.refuses(RuntimeError, "ldexp can't be cast to the desired output type Long", whole.ldexp_, tenon.ones(5).long())

    def test_an_index_that_selects_nothing_is_refused_as_its_dimension_is_walked(self):
        x, index = tenon.ones(3, 4), tenon.tensor([1, -5])
        for call, *given in ((tenon.index_select, x, 1, index), (tenon.index_select, x[None], 1, index)):
            self.refuses(RuntimeError, "INDICES element is out of DATA bounds, id=-5 axis_dim=%d" % given[0].shape[1], call, *given)
        for call, *given in ((tenon.index_select, x, 0, index), (tenon.index_select, x[0], 0, index), (tenon.index_select, x[None], 2, index)):
            self.refuses(IndexError, "index out of range in self", call, *given)

    def test_an_index_that_adds_to_nothing_is_refused_as_its_dimension_is_walked(self):
        x, index = tenon.ones(2, 4, 3), tenon.tensor([5])
        for dtype in (tenon.float32, tenon.int64, tenon.float16, tenon.bool):
            for d, alpha, sizes in ((0, 1, (1, 4, 3)), (1, 1, (2, 1, 3)), (2, 1, (2, 4, 1)), (0, dtype == tenon.bool or 2, (1, 4, 3))):
                call = lambda: x.to(dtype).index_add(d, index, tenon.ones(sizes).to(dtype), alpha=alpha)  # noqa: B023
                if d != 1 and (alpha, type(alpha)) == (1, int):
                    self.refuses(RuntimeError, "index 5 is out of bounds for dimension %d with size %d" % (d, x.shape[d]), call)
                else:
                    self.refuses(IndexError, "index out of range in self", call)
        self.refuses(IndexError, "index out of range in self", tenon.ones(4).index_add, 0, index, tenon.ones(1))

    def test_what_differences_slopes_and_histograms_say(self):
        x, flags = tenon.ones(1, 4), tenon.ones(1, 5).bool()
        for n, before, after, d, own, theirs in ((1, tenon.ones(1, 1), None, 1, 4, 1), (0, None, tenon.ones(1, 3), 1, 4, 3)):
            self.refuses(RuntimeError, "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                         "dimension; input.size(%d) = %d, but got tensor.size(%d) = %d" % (d, own, d, theirs), tenon.diff, x, n, 0, before, after)
        self.refuses(RuntimeError, "torch.gradient expected each dimension size to be at least edge_order+1", tenon.gradient, flags, spacing=2, dim=[1, 0])
        self.refuses(RuntimeError, "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = 2', since dim "
                     "argument was not given, but got a list of length 3", tenon.gradient, flags, spacing=[0.5, 2, 3])
        self.refuses(RuntimeError, "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
                     "instead.", tenon.gradient, flags, dim=1)
        whole, real = tenon.ones(7).long(), tenon.ones(7)
        for values in (whole, real):
            for sizes, what in (((2, 3), "torch.histogramdd: bins tensor should have one dimension, but got 2 dimensions in the bins tensor for dimension 0"),
                                ((0,), "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                                       "dimension 0"),
                                ((1,), "torch.histogram(): bins must be > 0, but got 0 for dimension 0")):
                self.refuses(RuntimeError, what, tenon.histogram, values, tenon.ones(sizes, dtype=values.dtype))
        for bins in (2, tenon.ones(2)):
            self.refuses(RuntimeError, "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
                         "innermost dimension, but got input with shape [7, 1] and weight with shape [3]", tenon.histogram, real, bins, weight=tenon.ones(3))
            self.refuses(RuntimeError, "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
                         "got input(float), and weight(double)", tenon.histogram, real, bins, weight=real.double())

    def test_classes_that_refuse_a_call_are_named_one_by_one(self):
        class One:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        class Two(One):
            pass

        self.refuses(TypeError, "Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned "
                     "NotImplemented:\n\n  - tensor subclass %s\n  - tensor subclass %s\n\nFor more information, try "
                     "re-running with TORCH_LOGS=not_implemented" % (Two, One), tenon.add, One(), Two())

    def test_reasons_are_given_where_the_arguments_count_as_many_as_the_signature_s_words(self):
        # between the commas, "*" among them
        wrong = "      didn't match because some of the %s\n"
        self.refuses(TypeError, "max() received an invalid combination of arguments - got (Tensor, float), but expected one of:\n"
                     " * (Tensor input, *, Tensor out = None)\n * (Tensor input, Tensor other, *, Tensor out = None)\n"
                     " * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n",
                     tenon.max, tenon.ones(2), 3.0)
        self.refuses(TypeError, "min() received an invalid combination of arguments - got (Tensor, float, float), but expected one "
                     "of:\n * (Tensor input, *, Tensor out = None)\n" + wrong %
                     "arguments have invalid types: (Tensor, !float!, !float!)" +
                     " * (Tensor input, Tensor other, *, Tensor out = None)\n"
                     " * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n",
                     tenon.min, tenon.ones(2), 2.0, 3.0)
        self.refuses(TypeError, "sum() received an invalid combination of arguments - got (keep_dim=bool, ), but expected one of:\n"
                     " * (*, %s.dtype dtype = None)\n * (tuple of ints dim, bool keepdim = False, *, %s.dtype dtype = None)\n" %
                     (tenon.__name__, tenon.__name__), tenon.ones(2).sum, keep_dim=True)

    def test_a_missing_argument_is_one_of_the_class_that_was_called(self):
        nn = tenon.nn
        for cls, name in ((nn.Conv2d, "Conv2d"), (nn.ConvTranspose1d, "ConvTranspose1d"), (nn.AvgPool2d, "AvgPool2d"),
                          (nn.BatchNorm2d, "_BatchNorm"), (nn.ZeroPad2d, "ZeroPad2d"), (nn.ReflectionPad1d, "ReflectionPad1d"),
                          (nn.ConstantPad3d, "ConstantPad3d"), (nn.MaxUnpool2d, "MaxUnpool2d"), (nn.LazyConv2d, "LazyConv2d"),
                          (nn.FractionalMaxPool3d, "FractionalMaxPool3d"), (nn.MaxPool2d, "_MaxPoolNd"), (nn.Linear, "Linear")):
            with self.assertRaisesRegex(TypeError, r"^%s\.__init__\(\) missing" % name):
                cls()
        self.refuses(TypeError, "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'", nn.Conv2d, 3, 8)
        self.assertEqual(repr(nn.Conv2d(3, 8, 3, padding="same")), "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=same)")

    def test_what_is_missing_is_found_where_it_is_given(self):
        p = tenon.ones(2, requires_grad=True)
        for optimizer in (tenon.optim.Adam, tenon.optim.AdamW, tenon.optim.NAdam, tenon.optim.RAdam, tenon.optim.Adamax):
            self.refuses(IndexError, "tuple index out of range", optimizer, [p], betas=(0.9,))
        before = tenon.is_anomaly_enabled()
        self.refuses(TypeError, "set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not str",
                     tenon.autograd.set_detect_anomaly, "yes")
        self.assertEqual(tenon.is_anomaly_enabled(), before)


class Warnings(unittest.TestCase):
    def test_old_ways_are_told_of_once(self):
        self.assertEqual(first_warning("tenon.ones(2).T; tenon.ones(2, 3, 4).T; tenon.ones(2, 3).T"), [
            ("UserWarning", "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
             "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
             "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.")])
        told = first_warning("import copy; copy.deepcopy(tenon.ones(2)); tenon.ones(2).storage(); tenon.ones(2).storage(); tenon.FloatStorage(3)")
        self.assertEqual([text[:27] for _, text in told], ["TypedStorage is deprecated."])
        self.assertEqual(first_warning("tenon.ones(()).T; tenon.ones(2, 3).T"), [])

    def test_a_number_of_a_graph_is_told_of_where_one_is_recorded(self):
        made = "y = tenon.ones((), requires_grad=True) * 2; "
        self.assertEqual(first_warning(made + "float(y)"), [
            ("UserWarning", "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
             "Consider using tensor.detach() first.")])
        self.assertEqual(first_warning(made + "tenon.no_grad()(lambda: (float(y), int(y), complex(y)))()"), [])

    def test_the_older_choice_of_attention(self):
        self.assertEqual(first_warning("tenon.backends.cuda.sdp_kernel(enable_math=False).__enter__()"), [
            ("FutureWarning", "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be "
             "removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.")])

    def test_default_tensor_types(self):
        self.assertEqual(first_warning("tenon.set_default_tensor_type('torch.FloatTensor')"), [
            ("UserWarning", "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
             "torch.set_default_dtype() and torch.set_default_device() as alternatives.")])

    def test_memory_that_is_read_only_is_told_of_for_arrays_and_for_buffers(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("NumPy is not installed")
        told = first_warning("import numpy; a = numpy.ones(2); a.flags.writeable = False; tenon.from_numpy(a); "
                             "tenon.from_numpy(a); tenon.frombuffer(b'abcd', dtype=tenon.int32)")
        self.assertEqual([text.split(",")[0] for _, text in told],
                         ["The given NumPy array is not writable", "The given buffer is not writable"])

    def test_why_an_encoder_is_not_nested_and_which_dtypes_autocast_has(self):
        told = first_warning("nn.TransformerEncoder(nn.TransformerEncoderLayer(3, 3, batch_first=True), 1)")
        self.assertEqual(told[0][1], "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                         "encoder_layer.self_attn.num_heads is odd")
        told = first_warning("tenon.autocast('cpu', tenon.float32)")
        self.assertEqual(told[0][1], "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast "
                         "only supports dtypes of torch.bfloat16, torch.float16 currently.")


class Names(unittest.TestCase):
    def test_methods_of_modules_are_named_by_the_class_that_users_know(self):
        module = tenon.nn.ReLU()
        for call, name in ((module.to_empty, "to_empty"), (module.load_state_dict, "load_state_dict"),
                           (module.register_forward_hook, "register_forward_hook")):
            with self.assertRaisesRegex(TypeError, r"^Module\.%s\(\) missing 1 required" % name):
                call()
        self.assertIs(pickle.loads(pickle.dumps(tenon.nn.Module.to_empty)), tenon.nn.Module.to_empty)


class Shown(unittest.TestCase):
    def test_a_named_result_of_several_lists(self):
        made = tenon.histogramdd(tenon.tensor([[0.0, 0.0], [1.0, 1.0]]), [1, 1])
        self.assertEqual(repr(made), "torch.return_types.histogramdd(\nhist=tensor([[2.]]),\n"
                         "bin_edges=(tensor([0., 1.]), tensor([0., 1.])))")

    def test_tables_of_times(self):
        from tenon.utils.benchmark import Compare, Measurement
        made = Compare([Measurement(1, [seconds], label=label, sub_label=sub, description=column, num_threads=threads, stmt="x")
                        for label, sub, column, threads, seconds in (
                            ("L", "s1", "a", 1, 1.5e-6), ("L", "s1", "b", 1, 2e-5), ("L", "s22", "a", 1, 3.25e-6),
                            ("L", "s1", "a", 2, 1e-6), ("M", None, "q", 1, 2e-3))])
        self.assertEqual(str(made).split("\n"), [
            "[---------- L -----------]", "           |   a   |   b  ", "1 threads: ---------------", "      s1   |  1.5  |  20.0",
            "      s22  |  3.2  |      ", "2 threads: ---------------", "      s1   |  1.0  |      ", "",
            "Times are in microseconds (us).", "",
            "[----- M -----]", "         |   q ", "1 threads: ----", "      x  |  2.0", "", "Times are in milliseconds (ms).", ""])


if __name__ == "__main__":
    harness.main()
