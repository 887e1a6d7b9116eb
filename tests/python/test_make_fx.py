# SPDX-License-Identifier: MIT
"""make_fx: a function as a graph of operators, its gradient included. Code is PyTorch 2.11's where a test compares it."""

import unittest

import harness
import tenon
from tenon import nn
from tenon._subclasses.fake_tensor import FakeTensorMode
from tenon.fx.experimental.proxy_tensor import get_proxy_mode, make_fx


def lines(graph_module):
    return [line.strip() for line in graph_module.code.replace("tenon.", "torch.").strip().split("\n")]


class MakeFx(unittest.TestCase):
    def same(self, f, *args, again=()):
        """The graph of f does what f does, also with other values."""
        made = make_fx(f)(*args)
        for given in (args, again or args):
            tenon.testing.assert_close(made(*given), f(*given))
        return made

    def test_the_text_names_what_pytorchs_does(self):
        def f(x):
            return (x[:, 1:].sum() + tenon.arange(2).sum()) * x.to("cpu", copy=True) + x[[0, 1]] * tenon.as_tensor([1., 2., 3.])

        x = tenon.arange(6.).view(2, 3)
        traced = make_fx(f)(x)
        for text in ("slice.Tensor(x_1, 1, 1, 9223372036854775807)", "arange.default(2, device = device(type='cpu'), pin_memory = False)",
                     "dtype = tenon.float32, layout = tenon.strided, device = device(type='cpu')"):
            self.assertIn(text, traced.code)
        self.assertEqual(traced.code.count("lift_fresh_copy.default"), 2)
        self.assertEqual(traced(x * 3).tolist(), f(x * 3).tolist())

    def test_fake_traces_with_fake_tensors(self):
        from tenon._subclasses.fake_tensor import FakeTensor, FakeTensorMode
        seen = []

        def f(x):
            y = x.sin() * 2
            seen.append((isinstance(x, FakeTensor), isinstance(y, FakeTensor)))
            return y + tenon.tensor([1.0, 2.0]) + tenon.ones(2)

        x = tenon.ones(2)
        traced = make_fx(f, tracing_mode="fake")(x)
        self.assertEqual(seen, [(True, True)])
        self.assertEqual(traced(x).tolist(), f(x).tolist())
        nodes = [n for n in traced.graph.nodes if n.op != "output"]
        self.assertEqual([n.name for n in nodes], ["x_1", "sin", "mul", "_tensor_constant0", "lift_fresh_copy", "add", "ones", "add_1"])
        self.assertTrue(all(isinstance(n.meta["val"], FakeTensor) for n in nodes))
        self.assertFalse(isinstance(traced._tensor_constant0, FakeTensor))
        with self.assertRaisesRegex(AssertionError, "^Please convert all Tensors to FakeTensors first"):
            make_fx(lambda t: t + x, tracing_mode="fake")(x)
        with FakeTensorMode() as mode:
            own = tenon.ones(2)
        given = make_fx(lambda t: t + 1, tracing_mode="fake")(own)
        self.assertEqual([n.meta["val"].fake_mode is mode for n in given.graph.nodes if n.op != "output"], [True, True])

    def test_operators_are_nodes(self):
        made = self.same(lambda x: (x.sin() + x @ x).sum(), tenon.ones(2, 2), again=(tenon.eye(2) * 3,))
        self.assertEqual(lines(made), [
            "def forward(self, x_1):", "sin = torch.ops.aten.sin.default(x_1)",
            "mm = torch.ops.aten.mm.default(x_1, x_1);  x_1 = None", "add = torch.ops.aten.add.Tensor(sin, mm);  sin = mm = None",
            "sum_1 = torch.ops.aten.sum.default(add);  add = None", "return sum_1"])
        node = next(iter(made.graph.nodes))
        self.assertEqual((node.op, tuple(node.meta["tensor_meta"].shape)), ("placeholder", (2, 2)))
        self.assertIsNone(get_proxy_mode())

    def test_what_comes_from_elsewhere_is_an_attribute(self):
        weight, layer = tenon.ones(3, 2), nn.Linear(2, 3)
        made = self.same(lambda x: layer(x @ weight), tenon.ones(1, 3), again=(tenon.tensor([[1.0, 2.0, 3.0]]),))
        self.assertEqual([name for name, _ in made.named_buffers()], ["_tensor_constant0"])
        self.assertIs(made._param_constant0, layer.weight)

    def test_a_tensor_that_is_written_down_is_new_in_each_call(self):
        made = make_fx(lambda x: x + tenon.tensor([1.0, 2.0]).add_(1))(tenon.zeros(2))
        for _ in range(2):
            self.assertEqual(made(tenon.zeros(2)).tolist(), [2.0, 3.0])

    def test_numbers_beside_fake_tensors_are_numbers_of_the_graph(self):
        def numbers(x):
            return ((x * 2 + 0.5) / 3 - 2j).abs().sum() * 1.5

        mode = FakeTensorMode()
        fake = mode.from_tensor(tenon.ones(3))
        with mode:
            made = make_fx(numbers)(fake)
        self.assertEqual(lines(made), lines(make_fx(numbers)(tenon.ones(3))))
        self.assertEqual(list(made.named_buffers()), [])
        x = tenon.tensor([1.0, 2.0, 4.0])
        tenon.testing.assert_close(made(x), numbers(x))

    def test_gradients_and_slices_are_operators(self):
        self.same(tenon.func.grad(lambda x: (x.sin() * x).sum()), tenon.ones(3), again=(tenon.tensor([1.0, 2.0, 3.0]),))

        def by_autograd(x):
            x = x.detach().requires_grad_()
            return tenon.autograd.grad((x.exp() * x).sum(), x)[0]

        self.same(by_autograd, tenon.ones(3), again=(tenon.tensor([1.0, 2.0, 3.0]),))
        made = self.same(tenon.func.vmap(lambda x: x.cos().sum()), tenon.ones(2, 3), again=(tenon.arange(6.0).reshape(2, 3),))
        self.assertEqual(list(made.named_buffers()), [])

    def test_writes_lists_and_parts(self):
        self.same(lambda x: x.clone().add_(1).mul_(2), tenon.ones(2), again=(tenon.zeros(2),))
        self.same(lambda x: (x.max(0)[0], [x.sort()[1], {"a": x}]), tenon.tensor([1.0, 3.0]), again=(tenon.tensor([5.0, 3.0]),))
        self.same(lambda d: d["a"] + d["b"][1], {"a": tenon.ones(1), "b": [0, tenon.ones(1)]},
                  again=({"a": tenon.zeros(1), "b": [0, tenon.ones(1) * 7]},))
        self.assertEqual(lines(make_fx(lambda *args: args[0])(tenon.ones(1))), ["def forward(self, arg0_1):", "return arg0_1"])

    def test_decompositions_are_asked_first(self):
        table = {tenon.ops.aten.tanh.default: lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())}
        made = make_fx(lambda x: x.tanh(), table)(tenon.ones(2))
        self.assertNotIn("tanh", made.code)
        tenon.testing.assert_close(made(tenon.ones(2) * 2), tenon.tanh(tenon.ones(2) * 2))

    def test_what_cannot_be_traced(self):
        with self.assertRaisesRegex(RuntimeError, "^It appears that you're trying to get value out of a tracing tensor with "
                                    "aten._local_scalar_dense.default - erroring out!"):
            make_fx(lambda x: x * x.sum().item())(tenon.ones(2))
        with self.assertRaisesRegex(AssertionError, "tracing_mode must be real/fake/symbolic, got nope"):
            make_fx(lambda x: x, tracing_mode="nope")
        with self.assertRaisesRegex(NotImplementedError, "sizes are numbers"):
            make_fx(lambda x: x, tracing_mode="symbolic")
        self.assertIsNone(get_proxy_mode())


if __name__ == "__main__":
    harness.main()
