# SPDX-License-Identifier: MIT
"""The graph from Python: nodes, edges and what they keep; anomaly mode, which says where a node was made."""
import gc
import time
import unittest
import warnings

import harness
from leaves import leaf
import tenon
from tenon.autograd import graph


class Graph(unittest.TestCase):
    def test_nodes(self):
        x = leaf(1.0, 2.0)
        y = (x * x).sum()
        fn = y.grad_fn
        self.assertIs(fn, y.grad_fn)
        self.assertEqual(fn.name(), "SumBackward0")
        self.assertEqual(type(fn).__name__, "SumBackward0")
        self.assertRegex(repr(fn), r"^<SumBackward0 object at 0x[0-9a-f]+>$")
        self.assertIsInstance(fn, graph.Node)
        mul, index = fn.next_functions[0]
        self.assertEqual((mul.name(), index), ("MulBackward0", 0))
        self.assertIs(mul.next_functions[0][0], mul.next_functions[1][0])
        accumulator = mul.next_functions[0][0]
        self.assertEqual(accumulator.name(), "torch::autograd::AccumulateGrad")
        self.assertEqual(type(accumulator).__name__, "AccumulateGrad")
        self.assertIs(accumulator.variable, x)
        self.assertIsNone(x.grad_fn)
        with self.assertRaises(AttributeError):
            mul.variable

    def test_transposed_matrices_are_recorded_as_transposes(self):
        x = tenon.ones(2, 3, requires_grad=True)
        self.assertEqual([made.grad_fn.name() for made in (x.mT, x.mH, x.H, x.t()[None].mT, x.T)],
                         ["TransposeBackward0"] * 4 + ["PermuteBackward0"])

    def test_a_node_is_a_function_of_gradients(self):
        a, b, calls = tenon.tensor([1.0, 2.0], requires_grad=True), tenon.tensor([3.0, 5.0], requires_grad=True), []
        y = a * b
        y.register_hook(calls.append)
        for scale in (1.0, 2.0):
            made = y.grad_fn(tenon.full((2,), scale))
            self.assertEqual([g.tolist() for g in made], [[3 * scale, 5 * scale], [scale, 2 * scale]])
        self.assertTrue(made[0].requires_grad)
        with tenon.no_grad():
            self.assertFalse(y.grad_fn(tenon.ones(2))[0].requires_grad)
        self.assertEqual((y.sin().grad_fn(None), calls, a.grad), (None, [], None))
        first, second = a.unbind()
        self.assertEqual(first.grad_fn(None, tenon.tensor(4.0)).tolist(), [0.0, 4.0])
        self.assertEqual(a.max(0).values.grad_fn(tenon.tensor(4.0)).tolist(), [0.0, 4.0])  # places have no gradient
        leaf = y.grad_fn.next_functions[0][0]
        with tenon.no_grad():
            self.assertEqual(leaf(tenon.ones(2)), ())
        self.assertEqual(a.grad.tolist(), [1.0, 1.0])
        with self.assertRaisesRegex(TypeError, "expected 1 arguments, got 2 instead"):
            y.grad_fn(tenon.ones(2), tenon.ones(2))
        with self.assertRaisesRegex(TypeError, "keyword arguments are not supported"):
            y.grad_fn(gradient=tenon.ones(2))
        with self.assertRaisesRegex(TypeError, "expected Variable argument 0"):
            y.grad_fn(3.0)
        with self.assertRaisesRegex(RuntimeError, r"got \[3\] but expected shape compatible with \[2\]"):
            y.grad_fn(tenon.ones(3))
        y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through the graph a second time"):
            y.grad_fn(tenon.ones(2))

    def test_saved_values(self):
        x = leaf(1.0, 2.0)
        y = x.exp()
        self.assertEqual(y.grad_fn._saved_result.tolist(), y.tolist())
        z = x * 2 * x
        self.assertIs(z.grad_fn._saved_other, x)
        self.assertIn("_saved_self", dir(z.grad_fn))
        with self.assertRaises(AttributeError):
            z.grad_fn._saved_nothing
        y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "directly access saved tensors after they have already been freed"):
            y.grad_fn._saved_result

    def test_metadata_lives_as_long_as_the_node(self):
        y = leaf(1.0) * 2
        y.grad_fn.metadata["note"] = "hello"
        gc.collect()
        self.assertEqual(y.grad_fn.metadata, {"note": "hello"})

    def test_versions_bases_and_output_numbers(self):
        x = tenon.zeros(4)
        self.assertEqual(x._version, 0)
        x.add_(1)
        self.assertEqual(x._version, 1)
        graph.increment_version(x)
        self.assertEqual(x._version, 2)
        y = leaf(1.0, 2.0, 3.0, 4.0) * 1
        v = y.view(2, 2)
        self.assertIs(v._base, y)
        self.assertIs(v[0]._base, y)
        self.assertIsNone(y._base)
        a, b = y.split(2)
        self.assertEqual((a.output_nr, b.output_nr), (0, 1))
        self.assertIs(a.grad_fn, b.grad_fn)

    def test_passes_start_and_end_at_edges(self):
        x = tenon.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        z = (y ** 2).sum()
        ex, ey, ez = map(graph.get_gradient_edge, (x, y, z))
        del y, z
        by_y, by_x = tenon.autograd.grad(ez, (ey, ex), retain_graph=True)
        self.assertEqual((by_y.tolist(), by_x.tolist()), ([6, 12], [18, 36]))
        self.assertEqual(tenon.autograd.grad(ey, ex, tenon.ones(2), retain_graph=True)[0].tolist(), [3, 3])
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            tenon.autograd.grad(ey, x)
        tenon.autograd.backward(ez, inputs=ex)
        self.assertEqual(x.grad.tolist(), [18, 36])

    def test_gradient_edges(self):
        x = leaf(1.0)
        y = x * 2
        edge = graph.get_gradient_edge(y)
        self.assertIs(edge.node, y.grad_fn)
        self.assertEqual(edge.output_nr, 0)
        self.assertEqual(graph.get_gradient_edge(x).node.name(), "torch::autograd::AccumulateGrad")
        with self.assertRaisesRegex(RuntimeError, "It is not possible to get the gradient edge"):
            graph.get_gradient_edge(tenon.ones(1))

    def test_retain_grad(self):
        x = leaf(1.0, 2.0)
        y = x * 3
        self.assertFalse(y.retains_grad)
        y.retain_grad()
        self.assertTrue(y.retains_grad)
        (y * y).sum().backward()
        self.assertEqual(y.grad.tolist(), [6.0, 12.0])
        self.assertIs(y.grad, y.grad)
        x.retain_grad()
        self.assertFalse(x.retains_grad)
        with self.assertRaisesRegex(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
            tenon.ones(1).retain_grad()

    def test_a_call_of_many_results_takes_time_by_their_number(self):
        x, began = tenon.ones(100000, 1, requires_grad=True), time.monotonic()
        many = x.unbind()
        tenon.stack(many[::2]).sum().backward()
        self.assertLess(time.monotonic() - began, 30)  # minutes, if each of them moved the others
        self.assertEqual(x.grad.flatten()[:4].tolist(), [1., 0., 1., 0.])

    def test_variable_is_a_name_of_tensor(self):
        x = tenon.autograd.Variable(tenon.ones(2), requires_grad=True)
        self.assertIsInstance(x, tenon.autograd.Variable)
        self.assertTrue(x.requires_grad and x.is_leaf)


class Anomaly(unittest.TestCase):
    def test_the_message_has_the_python_line_of_the_forward_call(self):
        x = leaf(-1.0, 4.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tenon.autograd.detect_anomaly():
                y = x.sqrt().sum()  # the line in question
                with self.assertRaises(RuntimeError) as raised:
                    y.backward()
        text = str(raised.exception)
        self.assertIn("Function 'SqrtBackward0' returned nan values in its 0th output.", text)
        self.assertIn("Error detected in SqrtBackward0. Traceback of forward call that caused the error:", text)
        self.assertIn("the line in question", text)
        self.assertIn("Anomaly Detection has been enabled.", str(caught[0].message))
        self.assertFalse(tenon.is_anomaly_enabled())

    def test_a_warning_says_where_as_the_reference_does(self):
        class Fails(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                raise ValueError("mine")

        x = leaf(1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tenon.autograd.set_detect_anomaly(True):
                with self.assertRaisesRegex(ValueError, "mine"):
                    Fails.apply(x).sum().backward()  # that call
        self.assertEqual(len(caught), 1)
        self.assertIn("Error detected in FailsBackward. Traceback of forward call", str(caught[0].message))
        self.assertIn("that call", str(caught[0].message))

    def test_a_node_knows_where_it_was_made(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tenon.autograd.set_detect_anomaly(True):
                y = leaf(1.0) * 2  # made here
        lines = y.grad_fn.metadata["traceback_"]
        self.assertIsInstance(lines, list)
        self.assertTrue(all(line.startswith("  File ") and line.endswith("\n") for line in lines), lines)
        self.assertIn("made here", lines[-1])
        self.assertNotIn("  in aten", lines[-1])
        self.assertEqual((leaf(1.0) * 2).grad_fn.metadata, {})

    def test_nan_may_pass_when_that_is_wanted(self):
        x = leaf(-1.0)
        with tenon.autograd.set_detect_anomaly(True, check_nan=False):
            self.assertTrue(tenon.is_anomaly_enabled())
            self.assertFalse(tenon.is_anomaly_check_nan_enabled())
            x.sqrt().sum().backward()
        self.assertTrue(x.grad.isnan().all())

    def test_what_was_said_of_nan_is_kept_while_the_mode_is_off(self):
        self.assertTrue(tenon.is_anomaly_check_nan_enabled())
        with tenon.autograd.set_detect_anomaly(False, check_nan=False):
            self.assertEqual((tenon.is_anomaly_enabled(), tenon.is_anomaly_check_nan_enabled()), (False, False))
        self.assertTrue(tenon.is_anomaly_check_nan_enabled())

    def test_exceptions_of_hooks_keep_their_type(self):
        x = leaf(1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tenon.autograd.detect_anomaly():
                with self.assertRaises(ZeroDivisionError) as caught:
                    y = x * 3  # noted
                    y.register_hook(lambda g: 1 / 0)
                    y.sum().backward()
        self.assertIn("y = x * 3  # noted", caught.exception.__notes__[0])


    def test_results_of_the_forward_pass_are_looked_at_when_asked(self):
        def inside(**words):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return tenon.autograd.detect_anomaly(**words)

        x = leaf(-1.0, 0.0)
        with inside():
            self.assertTrue(x.sqrt().isnan().any())  # as PyTorch: gradients alone
        with inside(check_forward=True):
            self.assertTrue(x.reciprocal().isinf().any())
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()
            with inside():
                x.sqrt()
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()  # what was on before is on again
        with inside(check_forward="inf"), self.assertRaisesRegex(RuntimeError, "reciprocal"):
            x.reciprocal()
        x.sqrt(), x.reciprocal()
        with tenon.autograd.set_detect_anomaly(True, check_forward=True):
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()
        x.sqrt()
        with self.assertRaisesRegex(ValueError, "check_forward must be False, True, 'nan' or 'inf', got 3"):
            tenon.autograd.set_detect_anomaly(True, check_forward=3)
        self.assertFalse(tenon.is_anomaly_enabled())


if __name__ == "__main__":
    harness.main()
