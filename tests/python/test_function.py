# SPDX-License-Identifier: MIT
"""autograd.Function: what forward and backward see and may say, and the texts of what is refused. Values are closed
forms; the promises were seen to hold of PyTorch 2.11 too, but for needs_input_grad, which there does not know the
pass, and keyword arguments of apply."""
import gc
import threading
import unittest
import warnings
import weakref

import harness
from leaves import leaf
import tenon
from tenon.autograd import Function, forward_ad
from tenon.autograd.function import once_differentiable


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Square(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


class Forward(unittest.TestCase):
    def test_value_gradient_and_node(self):
        x = leaf(0.0, 1.0)
        y = Exp.apply(x)
        self.assertEqual(y.grad_fn.name(), "ExpBackward")
        self.assertEqual(type(y.grad_fn).__name__, "ExpBackward")
        self.assertRegex(repr(y.grad_fn), r"^<\w+\.autograd\.function\.ExpBackward object at 0x")
        self.assertIs(y.grad_fn, y.grad_fn)
        self.assertEqual(y.grad_fn.next_functions[0][0].variable.tolist(), [0.0, 1.0])
        self.assertTrue(tenon.equal(y.grad_fn.saved_tensors[0], y))
        y.backward(tenon.tensor([1.0, 2.0]))
        self.assertTrue(tenon.allclose(x.grad, tenon.tensor([1.0, 2 * 2.718281828])))

    def test_grad_mode_and_requires_grad(self):
        seen = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                seen.append(tenon.is_grad_enabled())
                seen.append(ctx.needs_input_grad)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                seen.append(tenon.is_grad_enabled())
                return g * 2

        y = F.apply(leaf(1.0))
        self.assertTrue(y.requires_grad)
        y.backward()
        self.assertFalse(F.apply(tenon.ones(1)).requires_grad)
        with tenon.no_grad():
            self.assertFalse(F.apply(leaf(1.0)).requires_grad)
        self.assertEqual(seen[:3], [False, (True,), False])
        self.assertEqual(seen[3:5], [False, (False,)])

    def test_other_arguments_and_attributes(self):
        class Scale(Function):
            @staticmethod
            def forward(ctx, x, factor, name, extra=None):
                ctx.factor, ctx.name = factor, name
                return x * factor

            @staticmethod
            def backward(ctx, g):
                self.assertEqual(ctx.name, "scale")
                self.assertEqual(ctx.needs_input_grad, (True, False, False))
                return g * ctx.factor, None, None

        x = leaf(1.0, 2.0)
        Scale.apply(x, 3.0, "scale").sum().backward()
        self.assertEqual(x.grad.tolist(), [3.0, 3.0])

    def test_several_results_and_what_is_no_tensor(self):
        class Many(Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y, "text", x + y, 7

            @staticmethod
            def backward(ctx, g1, none, g2, nothing):
                self.assertIsNone(none)
                self.assertIsNone(nothing)
                return g1 * 2 + g2, g1 * 3 + g2

        x, y = leaf(3.0), leaf(2.0)
        a, text, b, number = Many.apply(x, y)
        self.assertEqual((text, number, a.output_nr, b.output_nr), ("text", 7, 0, 2))
        (a + 10 * b).sum().backward()
        self.assertEqual((x.grad.item(), y.grad.item()), (12.0, 13.0))

    def test_gradients_that_did_not_come(self):
        seen = []

        class Two(Function):
            @staticmethod
            def forward(ctx, x, materialize):
                ctx.set_materialize_grads(materialize)
                return x * 1, x * 2

            @staticmethod
            def backward(ctx, g1, g2):
                seen.append((g1, g2))
                return g1, None

        x = leaf(1.0, 2.0)
        Two.apply(x, True)[0].sum().backward()
        Two.apply(x, False)[0].sum().backward()
        self.assertEqual(seen[0][1].tolist(), [0.0, 0.0])
        self.assertIsNone(seen[1][1])

    def test_setup_context(self):
        x = leaf(3.0)
        y = Square.apply(x)
        y.backward()
        self.assertEqual((y.item(), x.grad.item()), (9.0, 6.0))

        class Power(Function):
            @staticmethod
            def forward(x, n=2):
                return x ** n

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.n = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * ctx.n * x ** (ctx.n - 1), None

        x = leaf(3.0)
        Power.apply(x).backward()
        Power.apply(x, 3).backward()
        Power.apply(x, n=1).backward()
        self.assertEqual(x.grad.item(), 6.0 + 27.0 + 1.0)

    def test_an_input_returned_as_it_is(self):
        class Same(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 5

        x = leaf(1.0)
        y = Same.apply(x)
        self.assertIsNot(y, x)
        y.sum().backward()
        self.assertEqual(x.grad.item(), 5.0)

    def test_dirty_inputs(self):
        class Increment(Function):
            @staticmethod
            def forward(ctx, x):
                x.add_(1)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 3

        x = leaf(1.0)
        h = x * 2
        y = Increment.apply(h)
        self.assertIs(y, h)
        self.assertEqual(h.grad_fn.name(), "IncrementBackward")
        y.sum().backward()
        self.assertEqual(x.grad.item(), 6.0)
        with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad has been used in an in-place operation."):
            Increment.apply(x)

    def test_what_is_not_differentiable(self):
        class Sort(Function):
            @staticmethod
            def forward(ctx, x):
                values, order = x.sort()
                rank = values * 0
                ctx.mark_non_differentiable(rank)
                ctx.save_for_backward(order)
                return values, order, rank

            @staticmethod
            def backward(ctx, g, g_order, g_rank):
                (order,) = ctx.saved_tensors
                out = tenon.zeros_like(g)
                out[order] = g
                return out

        x = leaf(3.0, 1.0, 2.0)
        values, order, rank = Sort.apply(x)
        self.assertTrue(values.requires_grad)
        self.assertFalse(order.requires_grad or rank.requires_grad)
        (values * tenon.tensor([1.0, 2.0, 3.0])).sum().backward()
        self.assertEqual(x.grad.tolist(), [3.0, 1.0, 2.0])


class Backward(unittest.TestCase):
    def test_an_edge_keeps_the_node(self):
        x = leaf(1.0, 2.0)
        z = Square.apply(x * 1)
        edge = tenon.autograd.graph.get_gradient_edge(z)
        del z
        tenon.autograd.backward(edge, tenon.ones(2))
        self.assertEqual(x.grad.tolist(), [2.0, 4.0])

    def test_an_input_that_is_returned_keeps_its_class(self):
        class Kind(tenon.Tensor):
            pass

        class Same(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, grad):
                return grad
        for x in (tenon.ones(2), leaf(1.0, 2.0)):
            self.assertIs(type(Same.apply(x.as_subclass(Kind))), Kind)
        self.assertIs(type(Same.apply(tenon.nn.Parameter(tenon.ones(2)))), tenon.Tensor)

    def test_twice(self):
        x = leaf(2.0)
        (g,) = tenon.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
        (gg,) = tenon.autograd.grad(g.sum(), x)
        self.assertEqual((g.item(), gg.item()), (4.0, 2.0))
        y = Exp.apply(leaf(0.0))
        y.backward(retain_graph=True)
        y.backward()
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through the graph a second time"):
            y.backward()

    def test_once(self):
        class Once(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 2 * x

        x = leaf(2.0)
        self.assertEqual(tenon.autograd.grad(Once.apply(x).sum(), x)[0].item(), 4.0)
        seed = tenon.ones(1, requires_grad=True)
        (g,) = tenon.autograd.grad(Once.apply(x), x, seed, create_graph=True)
        twice = "trying to differentiate twice a function that was marked with @once_differentiable"
        with self.assertRaisesRegex(RuntimeError, twice):
            g.sum().backward()
        # Another path to x does not hide that this one is missing, whether the gradient that came has a history or not.
        for of in (lambda y: y.sum(), lambda y: (y * y).sum()):
            (g,) = tenon.autograd.grad(of(Once.apply(x)), x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, twice):
                tenon.autograd.grad(g.sum() + (x ** 3).sum(), x)

    def test_once_also_when_it_is_said_later(self):
        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]

        class Derived(Square):
            pass

        plain, x = Square.backward, leaf(2.0)
        Square.backward = staticmethod(once_differentiable(plain))
        for function in (Square, Derived):
            (g,) = tenon.autograd.grad(function.apply(x), x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "trying to differentiate twice a function that was marked"):
                tenon.autograd.grad(g, x)
        Square.backward = staticmethod(plain)
        (g,) = tenon.autograd.grad(Derived.apply(x), x, create_graph=True)
        self.assertEqual(tenon.autograd.grad(g, x)[0].item(), 2.0)

    def test_needs_input_grad_is_of_the_pass(self):
        seen = []

        class Mul(Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx, g):
                seen.append(ctx.needs_input_grad)
                x, y = ctx.saved_tensors
                return g * y, g * x

        x, y = leaf(2.0), leaf(3.0)
        out = Mul.apply(x, y)
        self.assertEqual(tenon.autograd.grad(out.sum(), y, retain_graph=True)[0].item(), 2.0)
        out.sum().backward()
        self.assertEqual(seen, [(False, True), (True, True)])

    def test_wrong_results(self):
        def make(result):
            class Wrong(Function):
                @staticmethod
                def forward(ctx, x, n):
                    return x * 1

                @staticmethod
                def backward(ctx, g):
                    return result(g)
            return Wrong

        x = leaf(1.0)
        cases = [
            (lambda g: g, r"function WrongBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
            (lambda g: (g, None, g), r"function WrongBackward returned an incorrect number of gradients \(expected 2, got 3\)"),
            (lambda g: (g, g), "function WrongBackward returned a gradient different than None at position 2, but the corresponding forward input was not a Variable"),
            (lambda g: (3, None), r"expected Variable or None \(got int\)"),
        ]
        for result, text in cases:
            with self.assertRaisesRegex(RuntimeError, text):
                make(result).apply(x, 2).backward()
        make(lambda g: (g, None, None, None)).apply(x, 2).backward()
        self.assertEqual(x.grad.item(), 1.0)
        with self.assertRaisesRegex(RuntimeError, r"Function WrongBackward returned an invalid gradient at index 0 - got "
                                    r"\[5\] but expected shape compatible with \[2\]"):
            make(lambda g: (g.new_zeros(5), None)).apply(leaf(1.0, 2.0), 2).sum().backward()

    def test_what_is_missing(self):
        class Nothing(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

        with self.assertRaisesRegex(NotImplementedError, "You must implement either the backward or vjp method"):
            Nothing.apply(leaf(1.0)).backward()

        class Less(Function):
            pass

        with self.assertRaisesRegex(NotImplementedError, "You must implement the forward function for custom autograd.Function."):
            Less.apply(leaf(1.0))

    def test_saving_something_else(self):
        class Bad(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
                return x * 1

        with self.assertRaisesRegex(TypeError, "save_for_backward can only save variables, but argument 0 is of type int"):
            Bad.apply(leaf(1.0))

    def test_a_saved_input_that_is_returned_with_setup_context(self):
        class Bad(Function):
            @staticmethod
            def forward(x):
                return x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, g):
                return g

        with self.assertRaisesRegex(RuntimeError, "A input that has been returned as-is as output is being saved for backward."):
            Bad.apply(leaf(1.0))

    def test_exceptions(self):
        class Bad(Function):
            @staticmethod
            def forward(ctx, x, where):
                ctx.where = where
                if where == "forward":
                    raise KeyError("forward")
                return x * 1

            @staticmethod
            def backward(ctx, g):
                raise LookupError("backward")

        x = leaf(1.0)
        with self.assertRaises(KeyError):
            Bad.apply(x, "forward")
        with self.assertRaisesRegex(LookupError, "backward"):
            Bad.apply(x, "backward").backward()
        Exp.apply(x).backward()
        self.assertIsNotNone(x.grad)

    def test_what_was_saved_is_looked_for_though_no_gradient_comes(self):
        class Nothing(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return None

        y = leaf(1.0, 2.0).exp()
        lost = Nothing.apply(y).sum()
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "output 0 of ExpBackward0, is at version 1; expected version 0"):
            lost.backward()
        for function in (tenon.exp, lambda x: tenon.cat([x, x]).prod()):
            lost = Nothing.apply(function(leaf(1.0, 2.0))).sum()
            lost.backward(retain_graph=True)
            lost.backward()
            with self.assertRaisesRegex(RuntimeError, "backward through the graph a second time"):
                lost.backward()

    def test_a_written_saved_tensor(self):
        x = leaf(1.0)
        y = Exp.apply(x)
        with tenon.no_grad():
            y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "which is output 0 of ExpBackward, is at version 1; expected version 0 instead"):
            y.backward()

    def test_the_context_goes_with_the_graph(self):
        contexts = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                contexts.append(weakref.ref(ctx))
                ctx.kept = [1, 2, 3]
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g

        y = F.apply(leaf(1.0))
        gc.collect()
        self.assertEqual(contexts[0]().kept, [1, 2, 3])
        del y
        gc.collect()
        self.assertIsNone(contexts[0]())
        F.apply(tenon.ones(1))
        gc.collect()
        self.assertIsNone(contexts[1]())

    def test_hooks_on_the_node(self):
        x, seen = leaf(1.0), []
        y = Exp.apply(x)
        y.grad_fn.register_hook(lambda ins, outs: seen.append((len(ins), len(outs))))
        y.backward()
        self.assertEqual(seen, [(1, 1)])

    def test_functions_inside_backward_of_functions(self):
        class Outer(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.exp()

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * Exp.apply(x)

        x = leaf(0.0)
        (g,) = tenon.autograd.grad(Outer.apply(x).sum(), x, create_graph=True)
        (gg,) = tenon.autograd.grad(g.sum(), x)
        self.assertEqual((g.item(), gg.item()), (1.0, 1.0))

    def test_threads_run_functions(self):
        x, errors = tenon.ones(8, requires_grad=True), []

        def work():
            try:
                for _ in range(100):
                    Square.apply(x).sum().backward()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(600)
        self.assertEqual(errors, [])
        self.assertEqual(x.grad.tolist(), [1600.0] * 8)

    def test_a_compressed_gradient_is_refused_for_a_dense_input(self):
        class Gives(Function):
            @staticmethod
            def forward(ctx, x, number, y):
                return x * y

            @staticmethod
            def backward(ctx, g):
                return None, None, made

        dense = tenon.ones(2, 2)
        for made, name in ((dense.to_sparse_csr(), "SparseCsr"), (dense.to_sparse_csc(), "SparseCsc"),
                           (dense.to_sparse_bsr((1, 1)), "SparseBsr"), (dense.to_sparse_bsc((1, 1)), "SparseBsc")):
            x, y = dense.clone().requires_grad_(), dense.clone().requires_grad_()
            with self.assertRaises(RuntimeError) as caught:
                Gives.apply(x, 3, y).sum().backward()
            self.assertEqual(str(caught.exception), "Function GivesBackward returned an invalid gradient at index 1 - "
                             "expected layout Strided but got " + name)
            self.assertIsNone(y.grad)
            Gives.apply(x, 3, dense).sum().backward()  # not wanted: not looked at
        made, y = dense.to_sparse(), dense.clone().requires_grad_()
        Gives.apply(dense, 3, y).sum().backward()
        self.assertEqual((y.grad.layout, y.grad.to_dense().tolist()), (tenon.sparse_coo, dense.tolist()))


class ForwardMode(unittest.TestCase):
    def test_jvp_gives_nothing_for_what_has_no_gradient(self):
        class Two(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                other = x.clone()
                ctx.mark_non_differentiable(other)
                return x.clone(), other

            @staticmethod
            def jvp(ctx, tangent):
                return tangent, tangent.clone()
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(tenon.ones(2), tenon.ones(2))
            with self.assertRaisesRegex(RuntimeError, "returned a gradient at position 1.*You should return None at that position"):
                Two.apply(dual)

    def test_jvp_writes_and_views_what_forward_writes_and_views(self):
        def tangent(forward, jvp, prepare=lambda x: x):
            class Made(tenon.autograd.Function):
                pass
            Made.forward, Made.jvp = staticmethod(forward), staticmethod(jvp)
            Made.backward = staticmethod(lambda ctx, grad: grad)
            with forward_ad.dual_level():
                dual = prepare(forward_ad.make_dual(tenon.ones(2, 2), tenon.full((2, 2), 3.0)))
                return forward_ad.unpack_dual(Made.apply(dual)).tangent

        def write(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        flat = lambda ctx, x: x.view(-1)
        self.assertEqual(tangent(write, lambda ctx, t: t.mul_(2)).tolist(), [[6, 6], [6, 6]])
        self.assertEqual(tangent(flat, lambda ctx, t: t.view(-1)).tolist(), [3] * 4)
        self.assertEqual(tangent(lambda ctx, x: x, lambda ctx, t: t.view_as(t)).tolist(), [[3, 3], [3, 3]])
        self.assertEqual(tangent(lambda ctx, x: x[0], lambda ctx, t: t[0], lambda x: x.t()).tolist(), [3] * 2)
        not_written = "is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace"
        no_view = r"forward is returning a view \(or an input as-is\) but the jvp is not returning a view"
        other = "A custom Function is returning a view but the jvp is not returning a view of the given grad input"
        for text, forward, jvp in (
                (not_written, write, lambda ctx, t: t * 2), (not_written, write, lambda ctx, t: t),
                (not_written, write, lambda ctx, t: t.mul_(2) * 1), (not_written, write, lambda ctx, t: None),
                ("is not returning the forward mode gradients as-is", write, lambda ctx, t: t.mul_(2).view_as(t)),
                (no_view, flat, lambda ctx, t: t.reshape(-1).clone()), (no_view, lambda ctx, x: x, lambda ctx, t: t),
                (other, flat, lambda ctx, t: tenon.ones(4).view(4))):
            with self.assertRaisesRegex(RuntimeError, text):
                tangent(forward, jvp)

    def test_jvp(self):
        with forward_ad.dual_level():
            d = forward_ad.make_dual(tenon.tensor([3.0]), tenon.tensor([10.0]))
            self.assertEqual(forward_ad.unpack_dual(Square.apply(d)).tangent.item(), 60.0)
            with self.assertRaisesRegex(RuntimeError, "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."):
                Exp.apply(d)

    def test_the_number_of_tangents(self):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1, x * 2

            @staticmethod
            def jvp(ctx, t):
                return t

        with forward_ad.dual_level():
            d = forward_ad.make_dual(tenon.tensor([3.0]), tenon.tensor([10.0]))
            with self.assertRaisesRegex(RuntimeError, r"Function's jvp returned an invalid number of forward gradients \(expected 2 but got 1\)"):
                Two.apply(d)


class Old(unittest.TestCase):
    def test_instances_are_not_called(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = Exp()
        with self.assertRaisesRegex(RuntimeError, "Legacy autograd function with non-static forward method is deprecated."):
            f(leaf(1.0))


if __name__ == "__main__":
    harness.main()
