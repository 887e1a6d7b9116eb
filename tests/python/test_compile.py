# SPDX-License-Identifier: MIT
"""compile with a backend that is a function. The graphs are those that PyTorch 2.11 gives such a backend."""
import unittest
import warnings

import harness
import tenon
from tenon import nn


def filled(module):
    for parameter in module.parameters():
        parameter.data = tenon.linspace(-1, 1, parameter.numel()).reshape(parameter.shape)
    return module


class Backend:
    """Keeps the graphs that it is given, and runs them as they are."""

    def __init__(self):
        self.graphs, self.shapes, self.runs = [], [], 0

    def __call__(self, module, inputs):
        self.graphs.append([(n.op, n.target if isinstance(n.target, str) else n.target.__name__)
                            for n in module.graph.nodes if n.op != "placeholder"])
        self.shapes.append([tuple(x.shape) for x in inputs])

        def run(*given):
            self.runs += 1
            return module.forward(*given)

        return run


X = tenon.linspace(0, 1, 6).reshape(2, 3)


class CompileWithBackend(unittest.TestCase):
    def setUp(self):
        self.backend = Backend()

    def compiled(self, function):
        return tenon.compile(function, backend=self.backend)

    def assert_runs_as_written(self, function, *args):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            results = [function(*args) for _ in range(2)]
        self.assertEqual(len(seen), 1)
        self.assertIn("could not be recorded", str(seen[0].message))
        self.assertEqual(self.backend.graphs, [])
        return results

    def test_a_module(self):
        model = filled(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
        compiled = self.compiled(model)
        for _ in range(2):
            tenon.testing.assert_close(compiled(X), tenon.tensor([[0.753535270690918], [2.3898990154266357]]))
        self.assertEqual(self.backend.shapes, [[(4, 3), (4,), (2, 3), (1, 4), (1,)]])
        self.assertEqual(self.backend.graphs, [[("call_function", "linear"), ("call_function", "relu"),
                                                ("call_function", "linear"), ("output", "output")]])
        self.assertEqual(self.backend.runs, 2)

    def test_a_function_and_what_it_returns(self):
        first, rest = self.compiled(lambda a, b=2: (a * b, {"z": a + 1, "k": 3}))(X)
        self.assertTrue(tenon.equal(first, X * 2) and tenon.equal(rest["z"], X + 1))
        self.assertEqual(rest["k"], 3)
        self.assertEqual(self.backend.shapes, [[(2, 3)]])
        self.assertEqual(self.backend.graphs, [[("call_function", "mul"), ("call_function", "add"), ("output", "output")]])

    def test_the_same_tensor_twice_is_one_input(self):
        self.compiled(lambda a, b: (a * b).sin() + 1)(X, X)
        self.assertEqual(self.backend.shapes, [[(2, 3)]])
        self.assertEqual(self.backend.graphs, [[("call_function", "mul"), ("call_method", "sin"), ("call_function", "add"),
                                                ("output", "output")]])

    def test_training(self):
        model, same = filled(nn.Linear(3, 1)), filled(nn.Linear(3, 1))
        compiled = self.compiled(model)
        for module, call in ((model, compiled), (same, same)):
            optimizer = tenon.optim.SGD(module.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                call(X).pow(2).sum().backward()
                optimizer.step()
        self.assertTrue(tenon.equal(model.weight, same.weight))
        self.assertEqual((len(self.backend.graphs), self.backend.runs), (1, 3))

    def test_modules_that_ask_for_shapes_and_keep_buffers(self):
        model = filled(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)))
        x = tenon.linspace(0, 1, 16).reshape(1, 1, 4, 4)
        tenon.testing.assert_close(self.compiled(model)(x), tenon.tensor([[-1.7114291191101074, 5.008919715881348]]))
        self.assertEqual(len(self.backend.graphs), 1)
        self.assertEqual(model[1].num_batches_tracked.item(), 1)

    def test_what_changes_outside_is_seen(self):
        scale = 2.0

        def f(a):
            return a * scale

        compiled = self.compiled(f)
        self.assertTrue(tenon.equal(compiled(X), X * 2))
        scale = 3.0
        self.assertTrue(tenon.equal(compiled(X), X * 3))
        self.assertEqual(len(self.backend.graphs), 2)

    def test_dropout_takes_the_same_numbers(self):
        layer = nn.Dropout(0.5)
        tenon.manual_seed(3)
        y = self.compiled(layer)(tenon.ones(8))
        tenon.manual_seed(3)
        self.assertTrue(tenon.equal(y, layer(tenon.ones(8))))

    def test_control_flow_by_values(self):
        compiled = self.compiled(lambda a: a * 2 if a.sum() > 0 else a)
        self.assertTrue(tenon.equal(self.assert_runs_as_written(compiled, X)[1], X * 2))
        self.assertTrue(tenon.equal(compiled(-X), -X))

    def test_another_grad_mode_inside(self):
        def f(a):
            with tenon.no_grad():
                b = a * 2
            return a * b

        x = X.clone().requires_grad_()
        self.assert_runs_as_written(self.compiled(f), x)[0].sum().backward()
        self.assertTrue(tenon.equal(x.grad, X * 2))

    def test_attributes_that_are_set(self):
        class Counting(nn.Module):
            calls = 0

            def forward(self, a):
                self.calls += 1
                self.last = a * 2
                return a + 1

        model = Counting()
        self.assert_runs_as_written(self.compiled(model), X)
        self.assertEqual(model.calls, 2)
        self.assertTrue(tenon.equal(model.last, X * 2))

    def test_a_backend_that_fails(self):
        def bad(module, inputs):
            raise KeyError("nothing")

        with self.assertRaisesRegex(tenon._dynamo.exc.BackendCompilerFailed, "backend='bad' raised:\nKeyError: 'nothing'"):
            tenon.compile(lambda a: a + 1, backend=bad)(X)

    def test_options_reach_the_backend(self):
        seen = []

        def backend(module, inputs, **options):
            seen.append(options)
            return module.forward

        tenon.compile(lambda a: a + 1, backend=backend, options={"level": 2})(X)
        self.assertEqual(seen, [{"options": {"level": 2}}])


if __name__ == "__main__":
    harness.main()
