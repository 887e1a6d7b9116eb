# SPDX-License-Identifier: MIT
"""Nested, masked and sparse tensors in backward passes: as roots, as inputs, in hooks and in functions. Numbers are PyTorch's."""
import gc
import subprocess
import sys
import unittest
import weakref

import harness
import tenon
from tenon.autograd.function import once_differentiable


def jagged():
    parts = [tenon.arange(6.0).reshape(2, 3), tenon.arange(12.0).reshape(4, 3)]
    return tenon.nested.nested_tensor(parts, layout=tenon.jagged, requires_grad=True)


def strided():
    return tenon.nested.nested_tensor([tenon.arange(6.0).reshape(2, 3), tenon.arange(12.0).reshape(4, 3)], requires_grad=True)


def masked():
    return tenon.masked.masked_tensor(tenon.tensor([1.0, 2, 3]), tenon.tensor([True, False, True]), requires_grad=True)


def sparse():
    return tenon.eye(3).to_sparse().requires_grad_()


def sums(nested):
    return [part.sum().item() for part in nested.unbind()]


class Cube(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        assert type(x) is type(grad) and ctx.needs_input_grad == (True,)
        return 3 * x * x * grad


class CubeOnce(Cube):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * 2


class Scaled(tenon.autograd.Function):
    @staticmethod
    def forward(x, w, k=2):
        return x * w * k, x.values().sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.k = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, grad, grad_sum):
        x, w = ctx.saved_tensors
        return grad * w * ctx.k + grad_sum, (grad * x * ctx.k).values().sum(0), None


class SparseProduct(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return tenon.sparse.mm(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return (grad @ b.t()).sparse_mask(a.coalesce()), a.t() @ grad


MADE_OF = {  # a vector's squares as tensors made of parts, and the place of each in what they are when dense
    "coo": lambda v: tenon.sparse_coo_tensor(tenon.tensor([[0, 1, 2], [1, 0, 2]]), v, (3, 3)),
    "csr": lambda v: tenon.sparse_csr_tensor(tenon.tensor([0, 1, 2, 3]), tenon.tensor([1, 0, 2]), v, (3, 3)),
    "jagged": lambda v: tenon.nested.nested_tensor_from_jagged(v, tenon.tensor([0, 1, 3])),
    "strided": lambda v: tenon.nested.as_nested_tensor([v[:1], v[1:]]),
    "masked": lambda v: tenon.masked.masked_tensor(v.clone(), tenon.tensor([True, True, True])),
}


def entries(tensor):
    """The vector of which one of MADE_OF was made."""
    if tensor.is_nested:
        return tenon.cat(list(tensor.unbind()))
    if isinstance(tensor, tenon.masked.MaskedTensor):
        return tensor.get_data()
    return tensor.to_dense()[[0, 1, 2], [1, 0, 2]]


class Squares(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        ctx.kind, ctx.given = kind, []
        ctx.save_for_backward(x)
        return MADE_OF[kind](x * x), x * 2

    @staticmethod
    def backward(ctx, grad, grad_double):
        x, = ctx.saved_tensors
        ctx.given.append(type(grad) is type(MADE_OF[ctx.kind](x.detach())))
        assert ctx.given == [True] * len(ctx.given)
        return 2 * x * entries(grad) + 2 * grad_double, None


class SquaresApart(tenon.autograd.Function):
    @staticmethod
    def forward(x, kind):
        return MADE_OF[kind](x * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * entries(grad), None


class Itself(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        return MADE_OF[kind](x)

    @staticmethod
    def backward(ctx, grad):
        return tenon.tensor([5.0, 6, 7]), None


class Exponential(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        made = MADE_OF[kind](x.exp())
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx, grad):
        made, = ctx.saved_tensors
        return entries(grad) * entries(made), None


class Passes(unittest.TestCase):
    def test_the_gradient_of_a_nested_tensor_is_a_nested_tensor(self):
        for make, total in ((jagged, lambda n: n.values().sum()), (strided, lambda n: sum(p.sum() for p in n.unbind()))):
            n = make()
            grad, = tenon.autograd.grad(total(n * n), n)
            self.assertIs(type(grad), type(n))
            self.assertEqual(sums(grad), [30.0, 132.0])
            self.assertIsNone(n.grad)

    def test_gradients_of_results_between_are_given(self):
        n = jagged()
        m = n * 2
        grad, = tenon.autograd.grad((m * m).values().sum(), m)
        self.assertEqual(sums(grad), [60.0, 264.0])

    def test_what_was_detached_and_requires_grad_again_has_gradients(self):
        n = jagged().detach().requires_grad_()
        self.assertEqual(sums(tenon.autograd.grad((n * n).values().sum(), n)[0]), [30.0, 132.0])

    def test_a_pass_starts_from_a_nested_tensor_with_its_gradient(self):
        for start in (lambda y, g: y.backward(g), lambda y, g: tenon.autograd.backward([y], [g])):
            for make in (jagged, strided):
                n = make()
                start(n * 2, tenon.ones_like(n.detach()))
                self.assertEqual(sums(n.grad), [12.0, 24.0])

    def test_several_roots_and_inputs_keep_their_order(self):
        x, y, w = jagged(), jagged(), tenon.ones(3, requires_grad=True)
        ones = tenon.ones_like(x.detach())
        a, c, b = tenon.autograd.grad([x * 2, x * w * y.values().sum()], [x, w, y], [ones, ones])
        self.assertEqual((sums(a), c.tolist(), sums(b)), ([498.0, 996.0], [81 * 21.0, 81 * 27.0, 81 * 33.0], [486.0, 972.0]))

    def test_what_was_not_used_has_none_or_zeros(self):
        x, y = jagged(), jagged()
        self.assertIsNone(tenon.autograd.grad((x * 2).values().sum(), [x, y], allow_unused=True)[1])
        grads = tenon.autograd.grad((x * 2).values().sum(), [x, y], materialize_grads=True)
        self.assertEqual([sums(g) for g in grads], [[12.0, 24.0], [0.0, 0.0]])

    def test_passes_accumulate_in_the_inputs_that_are_named(self):
        x, w = jagged(), tenon.ones(3, requires_grad=True)
        (x * w).values().sum().backward(inputs=[x])
        self.assertEqual((sums(x.grad), w.grad), ([6.0, 12.0], None))

    def test_gradients_have_gradients(self):
        x = jagged()
        first, = tenon.autograd.grad((x ** 3).values().sum(), x, create_graph=True)
        second, = tenon.autograd.grad((first * 1.0).values().sum(), x)
        self.assertEqual(sums(second), [90.0, 396.0])

    def test_a_gradient_of_other_sizes_is_refused(self):
        for make, wrong in ((jagged, tenon.ones(2, 4, 3)), (jagged, jagged()), (sparse, tenon.eye(4).to_sparse()),
                            (strided, tenon.ones(2, 3))):
            n = make()
            with self.assertRaises(RuntimeError):
                (n * 2).backward(wrong)
            self.assertIsNone(n.grad)
        for make in (jagged, masked, sparse):
            with self.assertRaisesRegex(RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[7\]\)"):
                (make() * 2).backward(tenon.ones(7))
        with self.assertRaisesRegex(RuntimeError, "got 1 tensors and 2 gradients"):
            tenon.autograd.backward([jagged()], [None, None])
        with self.assertRaisesRegex(RuntimeError, "only for scalar outputs"):
            (jagged() * 2).backward()

    def test_masked_and_sparse_tensors_are_roots_and_inputs_too(self):
        x = masked()
        grad, = tenon.autograd.grad((x * x).sum(), x)
        self.assertEqual((type(grad).__name__, grad.to_tensor(0.0).tolist()), ("MaskedTensor", [2.0, 0.0, 6.0]))
        x = sparse()
        (x * 2).backward(tenon.eye(3).to_sparse())
        self.assertEqual(x.grad.to_dense().tolist(), (tenon.eye(3) * 2).tolist())
        grad, = tenon.autograd.grad(x * 2, x, tenon.eye(3).to_sparse())
        self.assertEqual((grad.layout, grad.to_dense().sum().item()), (tenon.sparse_coo, 6.0))

    def test_entries_of_one_place_have_its_gradient_once(self):
        indices = tenon.tensor([[0, 0, 1], [1, 1, 0]])
        x = tenon.sparse_coo_tensor(indices, tenon.tensor([1.0, 2, 3]), (2, 2)).requires_grad_()
        (x * 2).backward(tenon.tensor([[0.0, 5], [7, 0]]).to_sparse())
        self.assertEqual(x.grad.to_dense().tolist(), [[0.0, 10.0], [14.0, 0.0]])


class Hooks(unittest.TestCase):
    def test_a_hook_sees_and_gives_gradients_of_the_tensors_kind(self):
        for make, total in ((jagged, lambda n: n.values().sum()), (masked, lambda n: n.sum()),
                            (sparse, lambda n: n.to_dense().sum())):
            x, y, kinds = make(), make(), []
            total(y * 3).backward()

            def hook(grad):
                kinds.append(type(grad))
                return grad * 10
            x.register_hook(hook)
            total(x * 3).backward()
            self.assertEqual(kinds, [type(x)])
            self.assertEqual(total(x.grad).item(), 10 * total(y.grad).item())

    def test_a_hook_may_not_give_what_is_no_gradient_of_the_tensor(self):
        for given, error, text in ((tenon.ones(2), RuntimeError, "hook '<lambda>' has changed the size of value"),
                                   (jagged(), RuntimeError, "has changed the size of value"),
                                   ("text", TypeError, "expected Variable, but hook returned 'str'")):
            x = jagged()
            x.register_hook(lambda grad, given=given: given)
            with self.assertRaisesRegex(error, text):
                (x * 3).values().sum().backward()
            self.assertIsNone(x.grad)

    def test_a_hook_that_was_removed_is_not_called(self):
        x = jagged()
        x.register_hook(lambda grad: grad * 2).remove()
        (x * 3).values().sum().backward()
        self.assertEqual(sums(x.grad), [18.0, 36.0])

    def test_a_hook_behind_the_sum_sees_the_tensor_itself(self):
        x, seen = jagged(), []
        x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, sums(t.grad))))
        (x * 3).values().sum().backward()
        self.assertEqual(seen, [(True, [18.0, 36.0])])

    def test_a_hook_does_not_keep_its_tensor(self):
        x = jagged()
        x.register_hook(lambda grad: None)
        y = Cube.apply(x)
        refs = weakref.ref(x), weakref.ref(y)
        del x, y
        gc.collect()
        self.assertEqual([ref() for ref in refs], [None, None])


class Functions(unittest.TestCase):
    def test_a_function_sees_the_tensor_and_its_gradient(self):
        x = jagged()
        y = Cube.apply(x)
        self.assertEqual((type(y), y.grad_fn.name()), (type(x), "CubeBackward"))
        y.values().sum().backward()
        self.assertEqual(sums(x.grad), [165.0, 1518.0])
        x = sparse()
        Cube.apply(x).to_dense().sum().backward()
        self.assertEqual(x.grad.to_dense().sum().item(), 9.0)

    def test_functions_are_differentiated_twice_unless_they_say_once(self):
        for function in (Cube, CubeOnce):
            x = jagged()
            first, = tenon.autograd.grad(function.apply(x).values().sum(), x, create_graph=True)
            if function is CubeOnce:
                with self.assertRaises(RuntimeError):
                    tenon.autograd.grad(first.values().sum(), x)
            else:
                self.assertEqual(sums(tenon.autograd.grad(first.values().sum(), x)[0]), [90.0, 396.0])

    def test_ordinary_tensors_and_defaults_stand_beside_nested_ones(self):
        for more, factor in (((), 1), ((4,), 2)):
            x, w = jagged(), tenon.tensor([1.0, 2, 3], requires_grad=True)
            scaled, total = Scaled.apply(x, w, *more)
            (scaled.values().sum() + total).backward()
            self.assertEqual((sums(x.grad), w.grad.tolist()),
                             ([6 + 24.0 * factor, 12 + 48.0 * factor], [42.0 * factor, 54.0 * factor, 66.0 * factor]))

    def test_a_function_of_a_sparse_matrix_gives_it_a_sparse_gradient(self):
        x, d = sparse(), tenon.ones(3, 2, requires_grad=True)
        SparseProduct.apply(x, d).sum().backward()
        self.assertEqual((x.grad.layout, x.grad.to_dense().tolist()), (tenon.sparse_coo, (2 * tenon.eye(3)).tolist()))
        self.assertEqual(d.grad.tolist(), tenon.ones(3, 2).tolist())

    def test_a_result_made_of_parts_has_the_gradient_that_backward_gives(self):
        for kind in MADE_OF:
            x = tenon.tensor([1.0, 2, 3], requires_grad=True)
            with self.subTest(kind=kind):
                made, double = Squares.apply(x, kind)
                self.assertEqual((made.requires_grad, made.is_leaf, made.grad_fn.name()), (True, False, "SquaresBackward"))
                ((entries(made) ** 2).sum() + double.sum()).backward()
                self.assertEqual(x.grad.tolist(), [6.0, 34.0, 110.0])
                made = SquaresApart.apply(x, kind)
                self.assertEqual(tenon.autograd.grad((entries(made) ** 2).sum(), x)[0].tolist(), [4.0, 32.0, 108.0])
                self.assertEqual(SquaresApart.apply(x.detach(), kind).requires_grad, False)

    def test_a_result_that_holds_the_argument_has_the_gradient_that_backward_gives(self):
        for kind in MADE_OF:
            x = tenon.tensor([1.0, 2, 3], requires_grad=True)
            with self.subTest(kind=kind):
                entries(Itself.apply(x, kind)).sum().backward()
                self.assertEqual(x.grad.tolist(), [5.0, 6.0, 7.0])

    def test_a_saved_result_made_of_parts_has_its_history(self):
        for kind in MADE_OF:
            x = tenon.zeros(3, requires_grad=True)
            with self.subTest(kind=kind):
                first, = tenon.autograd.grad(entries(Exponential.apply(x, kind)).sum(), x, create_graph=True)
                self.assertEqual(tenon.autograd.grad(first.sum(), x)[0].tolist(), [1.0, 1.0, 1.0])

    def test_a_result_made_of_parts_does_not_keep_itself(self):
        for kind in MADE_OF:
            x = tenon.zeros(3, requires_grad=True)
            with self.subTest(kind=kind):
                made = Exponential.apply(x, kind)
                refs = weakref.ref(x), weakref.ref(made)
                del x, made
                gc.collect()
                self.assertEqual([ref() for ref in refs], [None, None])

    def test_a_second_derivative_through_a_function_that_has_one_is_refused_for_parts_too(self):
        class Once(Exponential):
            backward = staticmethod(once_differentiable(Exponential.backward))
        x = tenon.zeros(3, requires_grad=True)
        first, = tenon.autograd.grad((entries(Once.apply(x, "coo")) ** 2).sum(), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
            tenon.autograd.grad(first.sum(), x)

    def test_the_first_sparse_tensor_of_a_program_may_be_made_in_a_function(self):
        code = ("import tenon\n"
                "class F(tenon.autograd.Function):\n"
                "    forward = staticmethod(lambda ctx, x: x.to_sparse())\n"
                "    backward = staticmethod(lambda ctx, grad: grad.to_dense() * 3)\n"
                "x = tenon.ones(2, requires_grad=True)\n"
                "tenon.sparse.sum(F.apply(x)).backward()\n"
                "print(x.grad.tolist())")
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout.strip(), "[3.0, 3.0]")

    def test_a_result_made_of_parts_is_differentiated_twice_and_again(self):
        for kind in MADE_OF:
            x = tenon.tensor([1.0, 2, 3], requires_grad=True)
            with self.subTest(kind=kind), tenon.autograd.detect_anomaly(check_nan=True):
                made, double = Squares.apply(x, kind)
                total = (entries(made) ** 2).sum()
                first, = tenon.autograd.grad(total, x, create_graph=True)
                self.assertEqual(tenon.autograd.grad(first.sum(), x, retain_graph=True)[0].tolist(), [12.0, 48.0, 108.0])
                (total + (entries(made) ** 2).sum()).backward(retain_graph=True)
                double.sum().backward()
                self.assertEqual(x.grad.tolist(), [10.0, 66.0, 218.0])


if __name__ == "__main__":
    harness.main()
