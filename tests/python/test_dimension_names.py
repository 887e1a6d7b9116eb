# SPDX-License-Identifier: MIT
"""Names of dimensions: what PyTorch says about each expression of named_cases.py, names that are not there, and where Tenon
differs. The errors are PyTorch 2.11's."""
import copy
import json
import os
import subprocess
import sys
import unittest
import warnings

import harness
import tenon
from named_cases import results

warnings.simplefilter("ignore")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "named.json")
# PyTorch gives a result one name twice, and forgets names where nothing is squeezed.
TWICE = {
    "t(('X', None, None)) @ t(('A', 'B', 'X'))[0]": "['X', None, 'X']",
    "t(('X', None, None)) @ t((None, 'B', 'X'))[0]": "['X', None, 'X']",
    "t(('X', 'A', 'B')) @ t(('A', 'B', 'X'))[0]": "['X', 'A', 'X']",
    "t(('X', 'A', 'B')) @ t((None, 'B', 'X'))[0]": "['X', 'A', 'X']",
    "t(('X', 'A', 'B'))[0] @ t(('A', 'B', 'X'))": "['A', 'A', 'X']",
    "t((None, 'A', 'B'))[0] @ t(('A', 'B', 'X'))": "['A', 'A', 'X']",
}
OURS = {text: "RuntimeError: Cannot construct a tensor with duplicate names. Got names: %s." % names for text, names in TWICE.items()}
OURS.update({text: "(2, 3, 4)('N', 'C', 'H')" for text in ("x.squeeze('N')", "L.squeeze(x, 'H')")})

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

    def test_names_can_be_taken_away_where_there_are_none(self):
        for made in (A.rename(None), A.rename(None, None)):
            self.assertEqual((made.tolist(), made.names, made.data_ptr()), (A.tolist(), (None, None), A.data_ptr()))
        self.assertIs(A.rename_(None), A)
        self.assert_error(lambda: A.rename(None, None, None), RuntimeError,
                          "Number of names (3) and number of dimensions in tensor (2) do not match. Attempted to create a "
                          "tensor with names [None, None, None]")
        self.assert_error(lambda: A.rename(x="y"), RuntimeError, "rename: Tried to rename dim 'x' to dim y in "
                          "Tensor[(None, None)] but dim 'x' does not exist")

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


class Expressions(unittest.TestCase):
    def test_each_gives_what_pytorch_gives(self):
        with open(GOLDEN) as file:
            wanted = json.load(file)
        got = list(results(tenon))
        self.assertEqual(len(got), len(wanted))
        left = dict(OURS)
        for ours, theirs in zip(got, wanted):
            with self.subTest(expression=theirs[0]):
                self.assertEqual(ours, (theirs[0], left.pop(theirs[0], theirs[1])))
        self.assertEqual(left, {})


class Named(unittest.TestCase):
    def setUp(self):
        self.x = tenon.arange(6.0).reshape(2, 3).rename("N", "C")

    def test_values_are_those_of_unnamed_tensors(self):
        plain, weight = self.x.rename(None), tenon.arange(12.0).reshape(3, 4)
        for call in (lambda t: t + t, lambda t: t.sum(1), lambda t: t @ weight, lambda t: t.softmax(1), lambda t: t.transpose(0, 1),
                     lambda t: tenon.cat([t, t]), lambda t: t.std(0), lambda t: t.cumsum(1), lambda t: t[0], lambda t: t.mT):
            self.assertEqual(call(self.x).tolist(), call(plain).tolist())
        self.assertEqual(self.x.flatten(["N", "C"], "F").tolist(), plain.flatten().tolist())
        self.assertEqual(self.x.align_to("C", "new", "N").tolist(), plain.t().unsqueeze(1).tolist())
        self.assertEqual(self.x.sum("N").tolist(), plain.sum(0).tolist())

    def test_gradients_are_those_of_unnamed_tensors(self):
        weight = tenon.arange(12.0).reshape(3, 4)
        grads = []
        for names in (("N", "C"), (None, None)):
            x = (tenon.arange(6.0).reshape(2, 3) * 0.1).rename(*names).requires_grad_()
            y = (x @ weight.rename("C" if names[0] else None, None)).softmax(1) * 2
            (y * y).sum(0).sum().backward()
            grads.append(x.grad)
        self.assertEqual(grads[0].tolist(), grads[1].tolist())
        self.assertEqual(grads[0].names, (None, None))

    def test_a_rename_is_a_view(self):
        y = self.x.rename("A", "B")
        y.zero_()
        self.assertEqual(self.x.sum().item(), 0)
        self.assertEqual(self.x.names, ("N", "C"))

    def test_flattening_one_dimension_leaves_the_tensor_its_name(self):
        self.assertEqual(self.x.flatten(["C"], "F").names, ("N", "F"))
        self.assertEqual(self.x.names, ("N", "C"))

    def test_a_mask_of_fewer_dimensions(self):
        mask = tenon.tensor([True, False, True]).rename("C")
        self.assertEqual(self.x.masked_fill_(mask, 0.0).tolist(), [[0, 1, 0], [0, 4, 0]])

    def test_operators_that_write_and_take_names_here(self):
        self.assertEqual(self.x.cumsum_(0).names, ("N", "C"))
        self.assertEqual(self.x.diag().names, (None,))

    def test_operators_made_elsewhere_refuse_names(self):
        op = tenon.library.custom_op("named_test::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        with self.assertRaisesRegex(RuntimeError, "named_test::twice is not yet supported with named tensors"):
            op(self.x)

    def test_parameters_and_modules(self):
        parameter = tenon.nn.Parameter(self.x)
        self.assertEqual((parameter.names, parameter.data.names), (("N", "C"), ("N", "C")))
        layer = tenon.nn.Sequential(tenon.nn.Linear(3, 4), tenon.nn.ReLU(), tenon.nn.Dropout(0.5), tenon.nn.Softmax("N"))
        out = layer(self.x)
        self.assertEqual(out.names, ("N", None))
        out.sum().backward()
        self.assertEqual(layer[0].weight.grad.names, (None, None))
        self.assertEqual(copy.deepcopy(parameter).names, ("N", "C"))
        with self.assertRaisesRegex(RuntimeError, "aten::new_empty is not yet supported with named tensors"):
            copy.deepcopy(self.x)

    def test_classes_of_ones_own(self):
        class Mine(tenon.Tensor):
            pass

        mine = self.x.as_subclass(Mine)
        for made in (mine, mine.rename("A", "B"), mine.sum("C"), mine.align_to("C", "N"), mine.flatten(["N", "C"], "F")):
            self.assertIs(type(made), Mine)
            self.assertTrue(made.has_names())

    def test_steps_of_optimisers(self):
        for kind in (tenon.optim.SGD, tenon.optim.Adam, tenon.optim.AdamW, tenon.optim.RMSprop):
            named, plain = (tenon.nn.Parameter(t.clone()) for t in (self.x, self.x.rename(None)))
            for parameter in (named, plain):
                optimiser = kind([parameter], lr=0.1)
                for _ in range(2):
                    optimiser.zero_grad()
                    (parameter * parameter).sum().backward()
                    optimiser.step()
            self.assertEqual((named.names, named.tolist()), (("N", "C"), plain.tolist()))

    def test_fake_tensors(self):
        with tenon._subclasses.FakeTensorMode():
            x = tenon.ones(2, 3, names=("N", "C"))
            self.assertEqual((x.sum("C").names, (x @ tenon.ones(3, 4)).names), (("N",), ("N", None)))
            self.assertIn("names=('N', 'C')", repr(x))

    def test_functions_of_ones_own(self):
        seen = []

        class Twice(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                seen.append((ctx.saved_tensors[0].names, grad.names))
                return grad * 2

        x = self.x.requires_grad_()
        y = Twice.apply(x)
        self.assertEqual(y.names, ("N", "C"))
        y.sum().backward()
        self.assertEqual(seen, [((None, None), (None, None))])
        self.assertEqual(x.names, ("N", "C"))

    def test_the_first_name_brings_a_warning(self):
        program = ("import warnings, tenon\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n"
                   "    tenon.ones(2).rename(None)\n    assert not caught\n    tenon.ones(2, names=('N',)).sum('N')\n"
                   "    tenon.ones(2, names=('N',))\n    [one] = caught\nprint(one.category.__name__, one.message)")
        made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(made.stdout, "UserWarning Named tensors and all their associated APIs are an experimental feature and subject "
                         "to change. Please do not use them for anything important until they are released as stable.\n", made.stderr)


if __name__ == "__main__":
    harness.main()
