# SPDX-License-Identifier: MIT
"""Arguments of unusual kinds: what is taken, and what is refused with which words. Values and texts are PyTorch 2.11's."""

import re
import subprocess
import sys
import unittest
import warnings

import harness
import tenon
from tenon.utils._python_dispatch import TorchDispatchMode

try:
    import numpy
except ImportError:
    numpy = None


class Booleans(unittest.TestCase):
    x = tenon.arange(4.).reshape(2, 2)

    def test_a_tensor_is_no_bool(self):
        yes = tenon.tensor(True)
        with self.assertRaisesRegex(TypeError, r"argmax\(\): argument 'keepdim' \(position 2\) must be bool, not Tensor"):
            self.x.argmax(0, yes)
        with self.assertRaisesRegex(TypeError, r"dropout\(\): argument 'train' \(position 3\) must be bool, not Tensor"):
            tenon.dropout(self.x, .5, yes)
        with self.assertRaises(TypeError):
            tenon.sort(self.x, 0, yes)

    def test_operators_by_schema_cast(self):
        self.assertEqual(tenon.ops.aten.sum.dim_IntList(self.x, [0], tenon.tensor(True)).shape, (1, 2))

    @unittest.skipIf(numpy is None, "needs NumPy")
    def test_a_bool_of_numpy_is_neither_bool_nor_int(self):
        yes = numpy.bool_(True)
        for call in (lambda: self.x.argmax(0, yes), lambda: self.x.unsqueeze(yes), lambda: self.x.view(yes, 4),
                     lambda: tenon.ones(yes), lambda: self.x.sum(yes)):
            with self.assertRaises(TypeError):
                call()

    @unittest.skipIf(numpy is None, "needs NumPy")
    def test_as_an_index_it_is_a_mask(self):
        """As in NumPy; PyTorch refuses it."""
        self.assertEqual(self.x[numpy.bool_(True)].shape, (1, 2, 2))
        self.assertEqual(self.x[numpy.bool_(False), 0].shape, (0, 2))
        y = self.x.clone()
        y[numpy.bool_(False)] = 7
        self.assertTrue(tenon.equal(y, self.x))


class Keywords(unittest.TestCase):
    def test_out_none_belongs_to_functions_that_have_out(self):
        x = tenon.ones(2)
        self.assertTrue(tenon.equal(tenon.exp(x, out=None), x.exp()))
        for call in (lambda: x.exp(out=None), lambda: x.exp_(out=None), lambda: x.max(x, out=None),
                     lambda: tenon.erf_(x, out=None), lambda: tenon.unsqueeze(x, 0, out=None)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaisesRegex(TypeError, r"unsqueeze\(\) got an unexpected keyword argument 'out'"):
            tenon.unsqueeze(x, 0, out=None)

    def test_wrong_arguments_of_functions_that_python_writes_are_refused(self):
        x = tenon.ones(2, 3)
        for call, error, text in (
                (lambda: x.numpy(3), TypeError, "numpy() takes 0 positional arguments but 1 was given"),
                (lambda: tenon.nonzero(x, as_tuple=3), TypeError, "nonzero(): argument 'as_tuple' must be bool, not int"),
                (lambda: tenon.nonzero(x, as_tuple=None), TypeError, "nonzero(): argument 'as_tuple' must be bool, not NoneType"),
                (lambda: x.norm("x"), RuntimeError, "linalg.matrix_norm: Order x not supported."),
                (lambda: tenon.norm(x, "nuc", 0), RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got 0")):
            with self.assertRaises(error) as caught:
                call()
            self.assertEqual(str(caught.exception), text)

    def test_conversions_take_a_memory_format_alone(self):
        x = tenon.ones(2)
        for call, text in (
                (lambda: x.bfloat16(1), "bfloat16() takes 0 positional arguments but 1 was given"),
                (lambda: x.float(1, 2), "float() takes 0 positional arguments but 2 were given"),
                (lambda: x.long(names=None), "long() got an unexpected keyword argument 'names'"),
                (lambda: x.cpu(other=1), "cpu() got an unexpected keyword argument 'other'"),
                (lambda: tenon.abs(tenon.Generator()), "abs(): argument 'input' (position 1) must be Tensor, not torch._C.Generator"),
                (lambda: x.type(1j), "dtype must be a type, str, or dtype object"),
                (lambda: x.as_subclass(int), "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
                                             "possible. Make sure your class inherits from Tensor.")):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertEqual(str(caught.exception), text)


class Tensors(unittest.TestCase):
    @unittest.skipIf(numpy is None, "needs NumPy")
    def test_numbers_of_numpy_may_be_looked_for(self):
        self.assertIn(numpy.int64(3), tenon.arange(4))
        self.assertNotIn(numpy.float32(3.5), tenon.arange(4))

    def test_meta_has_no_number(self):
        self.assertEqual(tenon.empty(2, device="meta").get_device(), -1)

    def test_the_order_of_dimensions(self):
        for x, order in ((tenon.ones(1, 2).T, (0, 1)), (tenon.ones(3)[None].expand(10, 3), (0, 1)),
                         (tenon.zeros(2, 3).t(), (1, 0)), (tenon.zeros(2, 3, 4).permute(2, 0, 1), (1, 2, 0)),
                         (tenon.zeros(2, 3, 4, 5).to(memory_format=tenon.channels_last), (0, 2, 3, 1)), (tenon.zeros(()), ())):
            self.assertEqual(x.dim_order(), order)
        x = tenon.empty((1, 2, 3, 4))
        self.assertEqual(x.dim_order(ambiguity_check=[tenon.contiguous_format, tenon.channels_last]), (0, 1, 2, 3))
        with self.assertRaisesRegex(RuntimeError, "does not have unique dim order, or cannot map"):
            x.dim_order(ambiguity_check=True)
        with self.assertRaisesRegex(TypeError, "must be a bool or a list of memory formats"):
            x.dim_order(ambiguity_check="ILLEGAL")

    def test_a_copy_of_a_tensor_by_new_tensor_warns(self):
        x = tenon.ones(2)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x.new_tensor(x)
        self.assertTrue(str(seen[0].message).endswith("rather than tensor.new_tensor(sourceTensor)."))

    @unittest.skipIf(numpy is None, "needs NumPy")
    def test_a_number_of_numpy_is_no_array(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that it cannot be written is of no concern
            self.assertEqual(tenon.as_tensor(numpy.float32(2)).dtype, tenon.float32)
            self.assertEqual(tenon.utils.data.default_convert({"a": numpy.float16(2)})["a"].dtype, tenon.float16)
        with self.assertRaisesRegex(TypeError, r"expected np.ndarray \(got numpy.float32\)"):
            tenon.from_numpy(numpy.float32(2))

    def test_what_leaves_the_graph_as_a_number_warns_once(self):
        done = subprocess.run([sys.executable, "-c",
                               "import tenon\nx = tenon.ones(1, requires_grad=True)\n"
                               "int(x), x.item(), bool(x), float(tenon.ones(1))\nprint(1)\nfloat(x)\ncomplex(x), float(x)\n"],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.stdout, "1\n")
        self.assertEqual(done.stderr.count("UserWarning: Converting a tensor with requires_grad=True to a scalar may lead to "
                                           "unexpected behavior.\nConsider using tensor.detach() first."), 1)
        self.assertIn("<string>:5:", done.stderr)

    def test_texts(self):
        class Sub(tenon.Tensor):
            pass

        self.assertEqual(repr(tenon.nn.Parameter(tenon.ones(2).as_subclass(Sub))),
                         "Parameter(Sub([1., 1.], requires_grad=True))")
        with tenon._tensor_str.printoptions(edgeitems=0, threshold=1):
            self.assertEqual(repr(tenon.tensor(1)), "tensor(1, size=())")
        ragged = tenon.nested.nested_tensor([tenon.ones(1), tenon.ones(2)])
        self.assertEqual("{}".format(ragged), "nested_tensor([\n  tensor([1.]),\n  tensor([1., 1.])\n])")
        self.assertEqual((ragged.element_size(), ragged.nbytes, ragged.get_device()), (4, 12, -1))

    def test_sparse_attributes(self):
        x = tenon.eye(3).to_sparse()
        with self.assertRaisesRegex(TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"):
            x.grad = 1
        with self.assertRaisesRegex(RuntimeError, "requires_grad must be a bool"):
            x.requires_grad = 1
        del x.grad
        self.assertIsNone(x.grad)
        with self.assertRaisesRegex(RuntimeError, "nbytes is not defined for sparse tensors"):
            x.nbytes
        with self.assertRaisesRegex(AttributeError, "Can't get dim order on sparse type: torch.sparse.FloatTensor"):
            x.dim_order()


class Numbers(unittest.TestCase):
    def test_a_mode_is_shown_numbers_as_numbers(self):
        seen = []

        class Show(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append((str(func), [a for a in args if not isinstance(a, tenon.Tensor)]))
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2, requires_grad=True)
        with Show():
            ((x + 1) * 2.5 - 3).sum().backward()
            tenon.ones(2).mul_(1j.real)
            tenon.tensor(3) + x.detach()
        self.assertEqual([s for s in seen if s[1] and s[0].split(".")[1] in ("add", "mul", "sub", "mul_", "rsub")],
                         [("aten.add.Tensor", [1]), ("aten.mul.Tensor", [2.5]), ("aten.sub.Tensor", [3]),
                          ("aten.mul.Tensor", [2.5]), ("aten.mul_.Tensor", [0.0])])
        self.assertTrue(tenon.equal(x.grad, tenon.full((2,), 2.5)))

    def test_a_kernel_gets_them_too_and_results_have_the_same_dtype(self):
        class Wrap(tenon.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return tenon.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            def __init__(self, inner):
                self.inner = inner

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                seen.append([type(a).__name__ for a in args])
                return Wrap(func(*[a.inner if isinstance(a, Wrap) else a for a in args], **(kwargs or {})))

        seen = []
        for dtype in (tenon.float16, tenon.int64, tenon.bool):
            y = Wrap(tenon.ones(2, dtype=dtype)) * 2
            self.assertEqual(y.inner.dtype, (tenon.ones(2, dtype=dtype) * 2).dtype)
        self.assertEqual(seen, [["Wrap", "int"]] * 3)

    def test_making_a_parameter_is_no_call(self):
        log = []

        class Show(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                log.append(str(func))
                return func(*args, **(kwargs or {}))

        data = tenon.ones(2)
        with Show():
            tenon.nn.Parameter(data)
        self.assertEqual(log, [])


class Names(unittest.TestCase):
    """Functions of torch that are rarely called by these names."""

    def test_embedding_renorm(self):
        weight = tenon.tensor([[3., 4.], [1., 0.], [6., 8.]])
        self.assertIs(tenon.embedding_renorm_(weight, tenon.tensor([0, 1, 0]), 2., 2.), weight)
        tenon.testing.assert_close(weight, tenon.tensor([[1.2, 1.6], [1., 0.], [6., 8.]]))
        with self.assertRaisesRegex(RuntimeError, "Expected tensor for argument #2 'indices' to have one of the following scalar "
                                                  "types: Long, Int; but got torch.FloatTensor instead"):
            tenon.embedding_renorm_(weight, tenon.ones(1), 2., 2.)

    def test_embedding_renorm_counts_from_the_end_and_writes_nothing_where_a_row_is_not_there(self):
        weight = tenon.tensor([[3., 4.], [1., 0.], [6., 8.]])
        tenon.embedding_renorm_(weight, tenon.tensor([-1, -2], dtype=tenon.int32), 2., 2.)
        now = tenon.tensor([[3., 4.], [1., 0.], [1.2, 1.6]])
        tenon.testing.assert_close(weight, now)
        for rows, least in (([3], 3), ([0, 7, 5], 5), ([[0], [-4]], -4)):
            text = re.escape("select(): index %d out of range for tensor of size [3, 2] at dimension 0" % least)
            with self.assertRaisesRegex(IndexError, text):
                tenon.embedding_renorm_(weight, tenon.tensor(rows), 2., 2.)
            with self.assertRaisesRegex(IndexError, text):
                tenon.nn.functional.embedding(tenon.tensor(rows), weight, max_norm=2.)
            tenon.testing.assert_close(weight, now)

    def test_dequantize_and_to_dlpack(self):
        self.assertEqual(tenon.dequantize(tenon.ones(1, dtype=tenon.float16)).dtype, tenon.float32)
        self.assertTrue(tenon.equal(tenon.from_dlpack(tenon.to_dlpack(tenon.arange(3))), tenon.arange(3)))

    def test_blocks_are_tensors_and_may_be_none(self):
        self.assertEqual(tenon.block_diag().shape, (1, 0))
        with self.assertRaisesRegex(TypeError, "expected Tensor as element 0 in argument 0, but got list"):
            tenon.block_diag([tenon.ones(1)])

    def test_unravel_index_wants_whole_numbers(self):
        for indices, shape, error, text in (
                (tenon.ones(1), (2,), TypeError, "expected 'indices' to be integer dtype, but got tenon.float32"),
                (tenon.tensor([1]), (2.5,), TypeError, "expected 'shape' sequence to only contain ints, but got <class 'float'>"),
                (tenon.tensor([1]), 1.5, TypeError, "expected 'shape' to be int or sequence of ints, but got <class 'float'>"),
                (tenon.tensor([1]), (-1,), ValueError, "'shape' cannot have negative values, but got (-1,)")):
            with self.assertRaises(error) as caught:
                tenon.unravel_index(indices, shape)
            self.assertEqual(str(caught.exception), text)

    def test_deterministic_algorithms_want_a_bool(self):
        with self.assertRaisesRegex(TypeError, r"argument 'mode' \(position 1\) must be bool, not str"):
            tenon.use_deterministic_algorithms("a")


class Cells(unittest.TestCase):
    def test_a_state_of_another_batch_is_told_by_its_size(self):
        for cell in (tenon.nn.GRUCell(4, 3), tenon.nn.RNNCell(4, 3)):
            with self.assertRaisesRegex(RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3"):
                cell(tenon.ones(2, 4), tenon.ones(3))


class Bags(unittest.TestCase):
    def test_what_lies_behind_the_last_bag_has_no_gradient(self):
        for mode in ("sum", "mean"):
            weight = tenon.arange(12.).reshape(4, 3).requires_grad_()
            scale = tenon.ones(4, requires_grad=True) if mode == "sum" else None
            made = tenon.nn.functional.embedding_bag(tenon.tensor([1, 2, 3, 0]), weight, tenon.tensor([0, 1, 2]), mode=mode,
                                                     include_last_offset=True, per_sample_weights=scale)
            self.assertEqual(made.tolist(), [[3., 4., 5.], [6., 7., 8.]])
            made.sum().backward()
            self.assertEqual(weight.grad.tolist(), [[0.] * 3, [1.] * 3, [1.] * 3, [0.] * 3])
            if scale is not None:
                self.assertEqual(scale.grad.tolist(), [12., 21., 0., 0.])


class Libraries(unittest.TestCase):
    def test_definitions_that_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'expected schema to look like e.g. "\\(Tensor x\\) -> Tensor" but got'):
            tenon.library.define("odd_calls::q", "(Tensor x -> Tensor")
        with self.assertRaisesRegex(RuntimeError, "Only a single TORCH_LIBRARY can be used to register the namespace aten"):
            tenon.library.Library("aten", "DEF")

    def test_a_library_for_a_block(self):
        with tenon.library._scoped_library("odd_calls", "DEF") as library:
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda x: x * 2, "CPU")
            self.assertEqual(tenon.ops.odd_calls.twice(tenon.ones(1)).item(), 2)
        with self.assertRaises(AttributeError):
            tenon.ops.odd_calls.twice(tenon.ones(1))


class Sizes(unittest.TestCase):
    """A tensor of one whole number serves as a size, whatever its dimensions: `randint(1, 9, (1,))` makes one."""

    two = tenon.tensor([2])

    def test_among_the_sizes_of_a_list(self):
        x, two = tenon.arange(4.), self.two
        for made, shape in (
                (tenon.rand(two, 3), (2, 3)), (tenon.rand(size=(two, 3)), (2, 3)), (tenon.zeros(1, two), (1, 2)),
                (tenon.zeros(tenon.tensor([[2]])), (2,)), (tenon.zeros([two]), (2,)), (tenon.full((two, two), 1.), (2, 2)),
                (x.view(two, two), (2, 2)), (x.reshape((two, -1)), (2, 2)), (x.expand(two, 4), (2, 4)),
                (x.repeat(two, 1), (2, 4)), (x.new_zeros(two, 1), (2, 1)), (x.sum(tenon.tensor([0])), ()),
                (x.unflatten(0, (two, 2)), (2, 2)), (tenon.randint(0, 5, (two,)), (2,)),
                (tenon.nn.functional.pad(x, (two, 0)), (6,)), (x.split([two, 2])[1], (2,)),
                (tenon.nn.functional.max_pool2d(x.view(1, 2, 2), two), (1, 1, 1))):
            self.assertEqual(made.shape, shape)

    def test_by_itself(self):
        x, two = tenon.arange(4.), self.two
        self.assertEqual(tenon.topk(x, two).indices.tolist(), [3, 2])
        self.assertEqual([part.tolist() for part in tenon.split(x, two)], [[0, 1], [2, 3]])
        self.assertEqual(x.select(0, two).item(), 2)
        self.assertEqual(tenon.eye(two).shape, (2, 2))
        self.assertEqual(tenon.randperm(two).shape, (2,))
        self.assertEqual(x.narrow(0, 0, two).shape, (2,))

    def test_where_a_tensor_is_meant(self):
        x = tenon.arange(4)
        self.assertEqual([part.tolist() for part in tenon.tensor_split(x, tenon.tensor([1]))], [[0], [1, 2, 3]])
        self.assertEqual(tenon.repeat_interleave(x[:2], self.two).tolist(), [0, 0, 1, 1])
        with self.assertRaisesRegex(RuntimeError, "start must be an 0-dim integral Tensor"):
            x.narrow(0, self.two, 1)

    def test_what_is_no_size(self):
        x = tenon.ones(2, 2)
        with self.assertRaisesRegex(TypeError, r"argmax\(\): argument 'dim' \(position 1\) must be int, not Tensor"):
            x.argmax(tenon.tensor([0]))
        for size in (tenon.tensor([2, 3]), tenon.tensor([2.]), tenon.tensor([], dtype=tenon.long)):
            with self.assertRaises(TypeError):
                tenon.zeros(size, 1)
        with self.assertRaisesRegex(TypeError, r"failed to unpack the object at pos 2 with error \"type must be tuple of ints"):
            tenon.zeros(2, tenon.tensor([2, 3]))

    def test_size_and_stride_of_what_is_no_dimension(self):
        x = tenon.ones(2, 3)
        self.assertEqual([x.size(-1), x.size(dim=0), x.stride(0), x.stride(dim=None)], [3, 2, 3, (3, 1)])
        for name in ("size", "stride"):
            for args, words, given in (((1.5,), {}, "float"), ((0, 1), {}, "int, int"), ((True,), {}, "bool"), (([1],), {}, "list"),
                                       ((), {"dim": 1.5}, "dim=float, "), ((0,), {"foo": 1}, "int, foo=int")):
                text = "%s() received an invalid combination of arguments - got (%s), but expected one of:\n * (int dim = None)" % (name, given)
                with self.assertRaisesRegex(TypeError, re.escape(text)):
                    getattr(x, name)(*args, **words)
            with self.assertRaisesRegex(IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
                getattr(x, name)(2)


class Optimizers(unittest.TestCase):
    def test_a_parameter_that_is_there_twice_has_the_last_number(self):
        p, q = tenon.ones(1, requires_grad=True), tenon.ones(1, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = tenon.optim.SGD([p, p], .1)
        optimizer.add_param_group({"params": [q]})
        self.assertEqual([g["params"] for g in optimizer.state_dict()["param_groups"]], [[1, 1], [2]])

    def test_lbfgs_has_one_group(self):
        optimizer = tenon.optim.LBFGS([tenon.ones(1, requires_grad=True)])
        optimizer.add_param_group({"params": [tenon.ones(1, requires_grad=True)]})
        with self.assertRaisesRegex(AssertionError, "Expected exactly one param_group, but got 2"):
            optimizer.step(lambda: tenon.zeros(()))


class Transforms(unittest.TestCase):
    def test_a_stack_has_a_slice_for_each(self):
        stack = tenon.distributions.StackTransform([tenon.distributions.ExpTransform()])
        with self.assertRaisesRegex(AssertionError, r"x.size\(0\) = 3 must equal len\(transforms\) 1"):
            stack(tenon.ones(3))
        with self.assertRaisesRegex(ValueError, "Too few dimensions on input"):
            tenon.distributions.CorrCholeskyTransform().inverse_shape((3,))
        self.assertIs(type(tenon.distributions.StickBreakingTransform().forward_shape((3,))), tuple)


if __name__ == "__main__":
    harness.main()
