# SPDX-License-Identifier: MIT
"""tenon.library: operators, kernels, gradients and fake kernels from Python."""

import ctypes
import gc
import threading
import unittest
from typing import List, Optional, Tuple

import harness
import tenon
from tenon import library
from tenon._subclasses import FakeTensor, FakeTensorMode
from tenon.utils._python_dispatch import TorchDispatchMode


@library.custom_op("testlib::scale", mutates_args=())
def scale(x: tenon.Tensor, factor: float = 2.0) -> tenon.Tensor:
    return tenon.from_numpy(x.detach().numpy() * factor).to(x.dtype)


@scale.register_fake
def _(x, factor=2.0):
    return tenon.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.factor = inputs[1] if len(inputs) > 1 else 2.0


scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=_setup)


class Libraries(unittest.TestCase):
    def test_a_library_defines_and_implements_and_undoes(self):
        lib = library.Library("testdef", "DEF")
        lib.define("twice(Tensor x, *, int n=2) -> Tensor")
        lib.impl("twice", lambda x, n=2: x * n, "CompositeExplicitAutograd")
        op = tenon.ops.testdef.twice
        self.assertEqual(op(tenon.ones(2)).tolist(), [2., 2.])
        self.assertEqual(op.default(tenon.ones(2), n=5).tolist(), [5., 5.])
        self.assertEqual(str(op.default._schema), "testdef::twice(Tensor x, *, int n=2) -> Tensor")
        lib._destroy()
        with self.assertRaisesRegex(AttributeError, "'_OpNamespace' 'testdef' object has no attribute 'twice'"):
            tenon.ops.testdef.twice
        again = library.Library("testdef", "DEF")
        again.define("twice(Tensor x) -> Tensor")
        again.impl("twice", lambda x: x + x, "CPU")
        self.assertEqual(tenon.ops.testdef.twice(tenon.ones(1)).tolist(), [2.])
        with self.assertRaises(NotImplementedError):
            tenon.ops.testdef.twice(tenon.ones(1, device="meta"))
        del again
        gc.collect()
        with self.assertRaises(Exception):
            tenon.ops.testdef.twice(tenon.ones(1))

    def test_a_second_kernel_for_a_key_is_refused_unless_it_may_override(self):
        lib = library.Library("testtwice", "DEF")
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        other = library.Library("testtwice", "IMPL")
        for one in (lib, other):
            with self.assertRaisesRegex(RuntimeError, "^This is not allowed since there's already a kernel registered from "
                                        "python overriding f's behavior for CPU dispatch key and testtwice namespace.$"):
                one.impl("f", lambda x: x + 2, "CPU")
        with self.assertRaisesRegex(RuntimeError, "already a kernel registered"):
            library.impl("testtwice::f", "cpu", lambda x: x + 2)
        self.assertEqual(tenon.ops.testtwice.f(tenon.ones(1)).tolist(), [2.])
        other.impl("f", lambda x: x + 3, "CPU", allow_override=True)
        self.assertEqual(tenon.ops.testtwice.f(tenon.ones(1)).tolist(), [4.])
        other._destroy()
        self.assertEqual(tenon.ops.testtwice.f(tenon.ones(1)).tolist(), [2.])
        with self.assertRaisesRegex(RuntimeError, "already a kernel registered"):
            library.impl("testtwice::f", "cpu", lambda x: x + 2)
        del lib
        gc.collect()
        again = library.Library("testtwice", "DEF")
        again.define("f(Tensor x) -> Tensor")
        again.impl("f", lambda x: x + 5, "CPU")
        self.assertEqual(tenon.ops.testtwice.f(tenon.ones(1)).tolist(), [6.])

    def test_an_operator_named_like_a_built_in_one_is_mapped_as_itself(self):
        lib = library.Library("testnamed", "DEF")
        lib.define("t(Tensor self) -> Tensor")
        lib.impl("t", lambda x: tenon.tensor(x.tolist()[::-1]), "CPU")
        x = tenon.arange(12.).reshape(3, 2, 2)
        self.assertEqual(tenon.vmap(tenon.ops.testnamed.t)(x).tolist(), [rows[::-1] for rows in x.tolist()])

    def test_vmap_calls_the_rule_of_an_operator_with_whole_tensors(self):
        @library.custom_op("testvmap::mul", mutates_args=())
        def mul(x: tenon.Tensor, y: tenon.Tensor, k: float = 2.0) -> tenon.Tensor:
            return tenon.from_numpy(x.detach().numpy() * y.detach().numpy() * k)

        seen = []

        @library.register_vmap("testvmap::mul")
        def rule(info, in_dims, x, y, k=2.0):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), tuple(y.shape), k))
            x, y = (t.unsqueeze(-1) if d is None else t.movedim(d, -1) for t, d in zip((x, y), in_dims))
            return (x * y * k).movedim(-1, 0), 0

        x, y = tenon.tensor([[1., 2., 3.], [4., 5., 6.]]), tenon.tensor([1., 10., 100.])
        self.assertEqual(tenon.vmap(mul, in_dims=(0, None))(x, y).tolist(), [[2., 40., 600.], [8., 100., 1200.]])
        self.assertEqual(seen.pop(), (2, "error", (0, None), (2, 3), (3,), 2.0))
        self.assertEqual(tenon.vmap(lambda a: mul(a, a, 1.0), in_dims=1)(x).tolist(), [[1., 16.], [4., 25.], [9., 36.]])
        self.assertEqual(seen.pop()[2:], ((1, 1, None), (2, 3), (2, 3), 1.0))
        z = x.clone().requires_grad_()  # through the rule: the operator has no gradient
        tenon.vmap(mul, in_dims=(0, None))(z, y).sum().backward()
        self.assertEqual(z.grad.tolist(), [[2., 20., 200.]] * 2)
        mul.register_vmap(lambda info, in_dims, x, y, k=2.0: 3)
        with self.assertRaisesRegex(RuntimeError, "Expected the vmap staticmethod to have two returns"):
            tenon.vmap(mul)(x, x)
        with self.assertRaisesRegex(ValueError, r"register_vmap\(3\): got unexpected type for op: <class 'int'>"):
            library.register_vmap(3, rule)

    def test_a_rule_for_vmap_is_below_gradients_that_the_mapped_function_takes(self):
        @library.custom_op("testvmap::cube", mutates_args=())
        def cube(x: tenon.Tensor) -> tenon.Tensor:
            return tenon.from_numpy(x.detach().numpy() ** 3)

        cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
                               setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        calls = []

        @cube.register_vmap
        def _(info, in_dims, x):
            calls.append(in_dims)
            return cube(x), in_dims[0]

        x = tenon.tensor([[1., 2.], [3., 4.]])
        slopes = [[3., 12.], [27., 48.]]
        self.assertEqual(tenon.func.vmap(tenon.func.grad(lambda a: cube(a).sum()))(x).tolist(), slopes)
        self.assertEqual(tenon.func.grad(lambda a: tenon.vmap(cube)(a).sum())(x).tolist(), slopes)
        self.assertEqual(calls, [(0,), (0,)])
        self.assertEqual(tenon.vmap(tenon.vmap(cube))(x).tolist(), [[1., 8.], [27., 64.]])

    def test_a_rule_for_vmap_goes_with_its_library(self):
        lib = library.Library("testvmap2", "DEF")
        lib.define("f(Tensor x) -> Tensor")
        lib.define("g(Tensor x, *, Tensor y) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        rules = library.Library("testvmap2", "FRAGMENT")
        library.register_vmap("testvmap2::f", lambda info, in_dims, x: (x + 10, in_dims[0]), lib=rules)
        self.assertEqual(tenon.vmap(tenon.ops.testvmap2.f)(tenon.zeros(2)).tolist(), [10., 10.])
        with self.assertRaisesRegex(RuntimeError, "for FuncTorchBatched dispatch key and testvmap2 namespace"):
            library.register_vmap("testvmap2::f", lambda info, in_dims, x: (x, 0))
        with self.assertRaisesRegex(NotImplementedError, "register_vmap with kwarg-only Tensor args"):
            library.register_vmap("testvmap2::g", lambda info, in_dims, x: (x, 0))
        rules._destroy()
        self.assertEqual(tenon.vmap(tenon.ops.testvmap2.f)(tenon.zeros(2)).tolist(), [1., 1.])

    def test_a_kernel_is_switched_off_for_a_while(self):
        @library.custom_op("testenabled::f", mutates_args=())
        def f(x: tenon.Tensor) -> tenon.Tensor:
            return tenon.zeros(1)

        f.register_kernel("cpu", lambda x: tenon.ones(1))
        x = tenon.ones(1)
        with f.set_kernel_enabled("cpu", enabled=False):
            self.assertEqual(f(x).item(), 0)
            with f.set_kernel_enabled("cpu"):
                self.assertEqual(f(x).item(), 1)
            with self.assertLogs("tenon.library", "WARNING") as log, f.set_kernel_enabled("cpu", False):
                self.assertEqual(f(x).item(), 0)
            self.assertEqual(log.records[0].getMessage(), "Attempted to disable kernel for cpu but it was already disabled.")
            self.assertEqual(f(x).item(), 0)
        self.assertEqual(f(x).item(), 1)

    def test_a_composite_kernel_has_gradients_by_itself(self):
        library.define("testlib2::cube", "(Tensor x) -> Tensor")
        library.impl("testlib2::cube", "CompositeImplicitAutograd", lambda x: x * x * x)
        x = tenon.tensor([2., 3.], requires_grad=True)
        tenon.ops.testlib2.cube(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [12., 27.])

    def test_a_custom_operator_has_a_schema_a_gradient_and_a_fake_kernel(self):
        self.assertEqual(repr(scale), "<CustomOpDef(testlib::scale)>")
        self.assertEqual(str(tenon.ops.testlib.scale.default._schema),
                         "testlib::scale(Tensor x, float factor=2.) -> Tensor")
        x = tenon.tensor([1., 2.], requires_grad=True)
        y = scale(x, 3.0)
        self.assertEqual(y.tolist(), [3., 6.])
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [3., 3.])
        with FakeTensorMode():
            self.assertEqual(repr(scale(tenon.ones(4))), "FakeTensor(..., size=(4,))")
        self.assertEqual(scale(tenon.ones(3, device="meta")).shape, (3,))

    def test_what_was_not_registered_says_so(self):
        @library.custom_op("testlib::plain", mutates_args=())
        def plain(x: tenon.Tensor) -> tenon.Tensor:
            return x.clone()

        x = tenon.ones(2, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through testlib.plain.default but no "
                                                  "autograd formula was registered."):
            plain(x).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "There was no fake impl registered for "
                                                  "<CustomOpDef\\(testlib::plain\\)>."):
            with FakeTensorMode():
                plain(tenon.ones(2))

    def test_an_operator_may_write_its_argument(self):
        @library.custom_op("testlib::fill", mutates_args={"x"})
        def fill(x: tenon.Tensor, value: float) -> None:
            x.fill_(value)

        x = tenon.zeros(2)
        version = x._version
        self.assertIsNone(fill(x, 3.0))
        self.assertEqual(x.tolist(), [3., 3.])
        self.assertGreater(x._version, version)

    def test_schemas_come_from_annotations(self):
        def f(x: tenon.Tensor, ys: List[tenon.Tensor], n: int, s: str = "a", b: Optional[float] = None, *,
              flag: bool = False) -> Tuple[tenon.Tensor, int]:
            pass

        self.assertEqual(library.infer_schema(f, mutates_args=()),
                         '(Tensor x, Tensor[] ys, SymInt n, str s="a", float? b=None, *, bool flag=False) -> '
                         '(Tensor, SymInt)')
        self.assertEqual(library.infer_schema(f, mutates_args={"x"}).split(",")[0], "(Tensor(a0!) x")
        with self.assertRaisesRegex(ValueError, "Parameter x must have a type annotation"):
            library.infer_schema(lambda x: None, mutates_args=())

    def test_exceptions_of_kernels_travel_out(self):
        @library.custom_op("testlib::fails", mutates_args=())
        def fails(x: tenon.Tensor) -> tenon.Tensor:
            raise KeyError("inside")

        with self.assertRaisesRegex(KeyError, "inside"):
            fails(tenon.ones(1))

    def test_a_mode_sees_custom_operators(self):
        seen = []

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2)
        with Log():
            scale(x)
        self.assertEqual(seen[0], "testlib.scale.default")

    def test_kernels_run_on_any_thread(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(scale(tenon.ones(20000)).sum().item()))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [40000.] * 4)


class MadeOfOperators(unittest.TestCase):
    """Kernels for CompositeImplicitAutograd, whose gradients are those of what they call."""

    def setUp(self):
        self.lib = library.Library("testmade", "DEF")
        self.addCleanup(self.lib._destroy)

    def define(self, name, kernel):
        self.lib.define(name + "(Tensor x) -> Tensor")
        self.lib.impl(name, kernel, "CompositeImplicitAutograd")
        return getattr(tenon.ops.testmade, name)

    def test_one_that_computes_by_itself_is_refused_where_a_gradient_would_be_lost(self):
        def halves(x):
            return tenon.tensor([v / 2 for v in (ctypes.c_float * x.numel()).from_address(x.data_ptr())])

        op, leaf = self.define("halves", halves), tenon.ones(2, requires_grad=True)
        self.assertEqual(op(tenon.ones(2)).tolist(), [.5, .5])
        with self.assertRaisesRegex(RuntimeError, "derivative for testmade::halves is not implemented"):
            op(leaf)
        with self.assertRaisesRegex(RuntimeError, "derivative for testmade::halves is not implemented"):
            op(leaf * 2)
        with tenon.no_grad():
            self.assertEqual(op(leaf).tolist(), [.5, .5])
        self.assertEqual(op(leaf.detach()).tolist(), [.5, .5])

    def test_one_that_takes_the_storage_is_refused_likewise(self):
        def again(x):
            return tenon.tensor(x.untyped_storage().tolist()).view(tenon.uint8).float()

        def over(x):
            return tenon.empty(0).set_(x.untyped_storage(), 0, (2,), (1,)) * 2

        for name, kernel in (("again", again), ("over", over)):
            op, leaf = self.define(name, kernel), tenon.ones(2, requires_grad=True)
            op(tenon.ones(2))
            with self.assertRaisesRegex(RuntimeError, "derivative for testmade::%s is not implemented" % name):
                op(leaf)
        near = self.define("near", lambda x: x * 2 if x.untyped_storage().nbytes() == 8 else x)
        self.assertTrue(near(leaf).requires_grad)

    def test_one_that_prints_and_detaches_is_not(self):
        def shows(x):
            repr(x), x.tolist(), x.sum().item(), x.numpy(force=True)
            return (x * 2).detach()

        op, leaf = self.define("shows", shows), tenon.ones(2, requires_grad=True)
        self.assertFalse(op(leaf).requires_grad)

    def test_one_made_of_operators_has_their_gradients(self):
        op, leaf = self.define("thrice", lambda x: x * 3), tenon.ones(2, requires_grad=True)
        op(leaf).sum().backward()
        self.assertEqual(leaf.grad.tolist(), [3., 3.])


def _operator(name, schema, kernel, backward, setup_context=None):
    library.define("testlists::" + name, schema)
    library.impl("testlists::" + name, "default", kernel)
    library.register_autograd("testlists::" + name, backward, setup_context=setup_context)
    return getattr(tenon.ops.testlists, name)


class Lists(unittest.TestCase):
    """Gradients of operators with lists of tensors. What is expected is what PyTorch 2.11 gives for the same calls,
    but for the two cases that docs/differences.md names."""

    def setUp(self):
        self.a = tenon.ones(2, requires_grad=True)
        self.b = tenon.ones(2)
        self.c = tenon.full((2,), 3., requires_grad=True)

    def test_tensors_of_a_list_get_the_gradients_of_the_registered_backward(self):
        seen = []

        def setup(ctx, inputs, output):
            seen.append((len(inputs), type(inputs[0]), inputs[1], ctx.needs_input_grad[:2]))
            ctx.save_for_backward(*inputs[0])

        def backward(ctx, grad):
            seen.append((ctx.needs_input_grad, len(ctx.saved_tensors)))
            return [grad * 2, grad * 3], None

        op = _operator("mix", "(Tensor[] xs, float k=2.) -> Tensor",
                       lambda xs, k=2.: xs[0].detach() * 2 + xs[1].detach() * 3, backward, setup)
        for xs, grad_a, grad_c, needs in (([self.a, self.b], 2., None, [True, False]),
                                          ([self.b, self.a], 3., None, [False, True]),
                                          ((self.a, self.c), 2., 3., [True, True]),
                                          ([self.a, self.a], 5., None, [True, True])):
            seen.clear()
            self.a.grad = self.c.grad = None
            out = op(xs, 1.)
            self.assertTrue(out.requires_grad)
            self.assertEqual(type(out.grad_fn).__name__, "GeneratedBackwardFor_testlists_mix_defaultBackward")
            out.sum().backward()
            self.assertEqual(self.a.grad.tolist(), [grad_a] * 2)
            self.assertEqual(None if self.c.grad is None else self.c.grad.tolist(),
                             None if grad_c is None else [grad_c] * 2)
            self.assertEqual(seen, [(2, list, 1., tuple(needs)), ((needs, False), 2)])
        seen.clear()
        self.assertFalse(op([self.b, self.b], 1.).requires_grad)
        with tenon.no_grad():
            self.assertFalse(op([self.a, self.c], 1.).requires_grad)
        self.assertEqual(seen, [])
        self.a.grad = None
        op([self.a, self.b]).sum().backward()  # the default is filled in, and its None is not one too many
        self.assertEqual((self.a.grad.tolist(), seen[0][2]), ([2., 2.], 2.))

    def test_a_list_result_comes_back_as_one_list_of_gradients(self):
        seen = []

        def backward(ctx, grads, grad):
            seen.append((type(grads), [g.tolist() for g in grads], grad.tolist()))
            return grad, [g * 2 for g in grads]

        op = _operator("apart", "(Tensor x, Tensor[] xs) -> (Tensor[], Tensor)",
                       lambda x, xs: ([t * 2 for t in xs], x.clone()), backward)
        out = op(self.b, [self.a, self.c])
        self.assertEqual((type(out), type(out[0])), (tuple, list))
        self.assertEqual([t.requires_grad for t in out[0]] + [out[1].requires_grad], [True] * 3)
        out[0][1].sum().backward()
        self.assertEqual(seen, [(list, [[0., 0.], [1., 1.]], [0., 0.])])
        self.assertEqual((self.a.grad.tolist(), self.c.grad.tolist()), ([0., 0.], [2., 2.]))
        many = _operator("many", "(Tensor x, int n) -> Tensor[]", lambda x, n: [x * i for i in range(n)],
                         lambda ctx, grads: (sum(i * g for i, g in enumerate(grads)), None))
        self.a.grad = None
        out = many(self.a, 3)
        self.assertEqual((type(out), len(out)), (list, 3))
        (out[0] + out[2] * 5).sum().backward()
        self.assertEqual(self.a.grad.tolist(), [10., 10.])

    def test_lists_may_hold_none_or_be_none(self):
        op = _operator("holes", "(Tensor?[] xs) -> Tensor", lambda xs: xs[-1].detach() * 2,
                       lambda ctx, grad: [None, grad * 2])
        for first in (None, self.b):
            self.a.grad = None
            op([first, self.a]).sum().backward()
            self.assertEqual(self.a.grad.tolist(), [2., 2.])
        op = _operator("absent", "(Tensor[]? xs, Tensor x) -> Tensor", lambda xs, x: x.detach() * 2,
                       lambda ctx, grad: (None if ctx.needs_input_grad[0] is False else [None], grad))
        for xs in (None, [self.b]):
            self.a.grad = None
            op(xs, self.a).sum().backward()
            self.assertEqual(self.a.grad.tolist(), [1., 1.])

    def test_keywords_and_defaults_reach_setup_context(self):
        def setup(ctx, inputs, keyword_only_inputs, output):
            ctx.k = keyword_only_inputs["k"]

        op = _operator("word", "(Tensor[] xs, *, float k=2.) -> Tensor", lambda xs, *, k=2.: xs[0].detach() * k,
                       lambda ctx, grad: [grad * ctx.k], setup)
        for words, expected in (({"k": 4.}, 4.), ({}, 2.)):
            self.a.grad = None
            op([self.a], **words).sum().backward()
            self.assertEqual(self.a.grad.tolist(), [expected] * 2)

    def test_a_backward_of_another_structure_is_refused(self):
        for at, given in enumerate((lambda g: [g], lambda g: (g, g), lambda g: None)):
            op = _operator("wrong%d" % at, "(Tensor[] xs) -> Tensor", lambda xs: xs[0].detach() * 2,
                           lambda ctx, grad, given=given: given(grad))
            with self.assertRaisesRegex(RuntimeError, "Expected the return from backward to be of the same structure "
                                                      "as the inputs. Got: TreeSpec\\(tuple, None"):
                op([self.a, self.c]).sum().backward()

    def test_needs_input_grad_counts_the_arguments_alone(self):
        seen = []

        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad * 2, grad, None

        op = _operator("plain", "(Tensor x, Tensor y, float k) -> Tensor", lambda x, y, k: x.detach() * k, backward)
        op(self.a, self.b, 2.).sum().backward()
        op(self.b, self.a, 2.).sum().backward()
        self.assertEqual(seen, [(True, False, False), (False, True, False)])
        self.assertEqual(self.a.grad.tolist(), [3., 3.])

    def test_passes_over_one_node_need_what_each_of_them_needs(self):
        seen, lock = [], threading.Lock()

        def backward(ctx, grad):
            needs = ctx.needs_input_grad
            inner, = tenon.autograd.grad(other, self.c, retain_graph=True)  # lets other threads run, too
            with lock:
                seen.append((needs, ctx.needs_input_grad))
            return [grad * 2, grad * inner.sum()]

        op = _operator("shared", "(Tensor[] xs) -> Tensor", lambda xs: xs[0].detach() + xs[1].detach(), backward)
        other, out = (self.c * 2).sum(), op([self.a, self.c]).sum()

        def run(x):
            for _ in range(20):
                tenon.autograd.grad(out, x, retain_graph=True)

        threads = [threading.Thread(target=run, args=(x,)) for x in (self.a, self.c)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(map(repr, seen)), ["(([False, True],), ([False, True],))"] * 20
                         + ["(([True, False],), ([True, False],))"] * 20)

    def test_custom_operators_take_lists(self):
        @library.custom_op("testlists::pair", mutates_args=())
        def pair(xs: List[tenon.Tensor], n: int) -> Tuple[tenon.Tensor, tenon.Tensor]:
            return xs[0] * n, xs[1].clone()

        out = pair([self.a, self.c], 3)
        self.assertTrue(out[0].requires_grad and out[1].requires_grad)
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through testlists.pair.default but no autograd "
                                                  "formula was registered. Please use register_autograd to add one."):
            out[0].sum().backward()

        def setup(ctx, inputs, output):
            ctx.n = inputs[1]

        pair.register_autograd(lambda ctx, g, h: ([g * ctx.n, h], None), setup_context=setup)
        out = pair([self.a, self.c], 3)
        (out[0].sum() + (out[1] ** 2).sum()).backward()
        self.assertEqual((self.a.grad.tolist(), self.c.grad.tolist()), ([3., 3.], [6., 6.]))

    def test_operators_that_write_count_versions_and_pass_gradients_on(self):
        @library.custom_op("testlists::sines", mutates_args={"xs"})
        def sines(xs: List[tenon.Tensor]) -> None:
            for x in xs:
                x.sin_()

        y, z = self.c.detach().clone(), tenon.ones(2)
        before = y._version, z._version
        self.assertIsNone(sines([y, z]))
        self.assertEqual((y._version - before[0], z._version - before[1]), (1, 1))
        self.assertFalse(z.requires_grad)

        @library.custom_op("testlists::adds", mutates_args={"x"})
        def adds(x: tenon.Tensor, ys: List[tenon.Tensor]) -> tenon.Tensor:
            x.add_(ys[0])
            return ys[0] * 2

        x = tenon.ones(2)
        with self.assertWarnsRegex(UserWarning, "testlists::adds writes its argument 'x' and has no derivative"):
            out = adds(x, [self.a])
        self.assertEqual((out.requires_grad, x.tolist(), x._version, x.requires_grad), (True, [2., 2.], 1, False))
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through testlists.adds.default"):
            out.sum().backward()

    def test_a_write_whose_gradient_would_be_wrong_is_refused(self):
        @library.custom_op("testlists::triples", mutates_args={"x", "n"})
        def triples(x: tenon.Tensor, n: Optional[tenon.Tensor] = None) -> None:
            x.mul_(3)

        x = tenon.ones(2, requires_grad=True)
        y, count = x * 1, tenon.zeros(2, dtype=tenon.int64)
        for written, kind, text in ((x, RuntimeError, "a leaf Variable that requires grad is being used in an in-place"),
                                    (y, NotImplementedError, "derivative for testlists::triples is not implemented"),
                                    (y[:1], NotImplementedError, "it writes its argument 'x', which requires grad")):
            with self.assertRaisesRegex(kind, text):
                triples(written, count)
        self.assertEqual((x.tolist(), y.tolist(), y._version), ([1., 1.], [1., 1.], 0))
        with tenon.no_grad():
            triples(x)
        triples(y.detach())
        self.assertEqual((x.tolist(), y.tolist()), ([3., 3.], [3., 3.]))

    def test_a_tangent_that_would_be_lost_is_refused(self):
        from tenon.autograd import forward_ad

        @library.custom_op("testlists::same", mutates_args=())
        def same(x: tenon.Tensor) -> tenon.Tensor:
            return x * 1

        @library.custom_op("testlists::signs", mutates_args=())
        def signs(x: tenon.Tensor) -> tenon.Tensor:
            return x > 0

        @library.custom_op("testlists::halves", mutates_args={"x"})
        def halves(x: tenon.Tensor) -> None:
            x.div_(2)

        x = tenon.ones(2)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x)
            for op in (same, halves):
                with self.assertRaisesRegex(NotImplementedError, "Trying to use forward AD with testlists::"):
                    op(dual)
            self.assertEqual((signs(dual).tolist(), same(x).tolist(), x.tolist()), ([True, True], [1., 1.], [1., 1.]))

    def test_a_custom_operator_may_not_give_what_it_was_given(self):
        def twice(x: tenon.Tensor) -> Tuple[tenon.Tensor, tenon.Tensor]:
            y = x + 1
            return y, y

        def same(x: tenon.Tensor) -> tenon.Tensor:
            return x

        def view(x: tenon.Tensor) -> tenon.Tensor:
            return x.view(-1)

        for fn in (twice, same, view):
            op = library.custom_op("testlists::alias_" + fn.__name__, fn, mutates_args=())
            for x in (self.a, self.b):
                with self.assertRaisesRegex(RuntimeError, "^alias_%s \\(with implementation in .*\\): The output of this "
                                            "custom operator \\(1\\) must not also be an input to this custom operator "
                                            "and \\(2\\) may not alias any inputs" % fn.__name__):
                    op(x)


class Checks(unittest.TestCase):
    def made(self, name, fn, fake=None):
        op = tenon.library.custom_op("checks::" + name, fn, mutates_args=(), schema="(Tensor x) -> Tensor")
        op.register_fake(fake or tenon.empty_like)
        return op

    def test_an_operator_that_keeps_its_word_passes(self):
        good = self.made("good", lambda x: x * 2)
        good.register_autograd(lambda ctx, g: g * 2)
        for x in (tenon.randn(3), tenon.randn(3, requires_grad=True)):
            self.assertEqual(tenon.library.opcheck(good, (x,)), dict.fromkeys(
                ("test_schema", "test_autograd_registration", "test_faketensor"), "SUCCESS"))

    def test_one_that_does_not_is_found_out(self):
        def writes(x):
            x.add_(1)
            return x.clone()
        for name, fn, fake, text in (
                ("writes", writes, None, "test_schema failed with Argument x is not defined as mutable but was mutated"),
                ("same", lambda x: x, None, "test_schema failed with same .* must not also be an input"),
                ("fake", lambda x: x * 2, lambda x: x.new_empty(x.shape[0] + 1),
                 r"test_faketensor failed with .* Shapes .*\[3\]\) and .*\[4\]\) are not equal!")):
            op = self.made(name, fn, fake)
            with self.assertRaisesRegex(tenon._opcheck.OpCheckError, text):
                tenon.library.opcheck(op, (tenon.randn(3),))
        lib = tenon.library.Library("checks_lib", "FRAGMENT")
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.sin(), "CPU")
        found = tenon.library.opcheck(tenon.ops.checks_lib.f.default, (tenon.randn(3, requires_grad=True),),
                                      test_utils="test_autograd_registration", raise_exception=False)
        self.assertRegex(str(found["test_autograd_registration"]), "does not have an autograd kernel")
        lib._destroy()
        with self.assertRaisesRegex(ValueError, "expected test_utils to be subset of"):
            tenon.library.opcheck(op, (tenon.ones(1),), test_utils="nope")

    def traced(self, op, *args):
        """What the two checks of tracing say, which are one: None where they pass."""
        static, dynamic = "test_aot_dispatch_static", "test_aot_dispatch_dynamic"
        found = tenon.library.opcheck(op, args, test_utils=(static, dynamic), raise_exception=False)
        self.assertEqual(str(found[static]), str(found[dynamic]))
        return None if found[static] == "SUCCESS" else str(found[static])

    def test_an_operator_that_can_be_traced_gives_the_same_in_the_graph(self):
        scaled = tenon.library.custom_op("checks::scaled", lambda x, k: x.detach() ** 2 * k, mutates_args=(),
                                         schema="(Tensor x, float k) -> Tensor")
        scaled.register_fake(lambda x, k: tenon.empty_like(x))
        scaled.register_autograd(lambda ctx, g: (g * 2 * ctx.k * ctx.saved_tensors[0], None),
                                 setup_context=lambda ctx, inputs, output: (
                                     ctx.save_for_backward(inputs[0]), setattr(ctx, "k", inputs[1])))

        def write(x, y):
            x.add_(y)

        x = tenon.arange(6.0).reshape(2, 3)
        wanted = x.clone().requires_grad_()
        for op, args in ((scaled, (wanted, 2.0)), (scaled, (x, 2.0)), (tenon.ops.aten.add_.Tensor, (x, x.clone())),
                         (tenon.ops.aten.matmul.default, (wanted, x.t())), (tenon.ops.aten.split.Tensor, (wanted, 2)),
                         (tenon.ops.aten.bernoulli.default, (x / 6,))):
            self.assertIsNone(self.traced(op, *args), op)
        written = tenon.library.custom_op("checks::written", write, mutates_args={"x"}, schema="(Tensor(a!) x, Tensor y) -> ()")
        self.assertIsNone(self.traced(written, x.clone(), x.clone()))

    def test_one_that_cannot_be_traced_is_found_out(self):
        by_hand = self.made("by_hand", lambda x: x * 3)
        by_hand.register_autograd(lambda ctx, g: tenon.tensor(g.tolist()) * 3)
        self.assertIsNone(self.traced(by_hand, tenon.ones(2)))
        self.assertRegex(self.traced(by_hand, tenon.ones(2, requires_grad=True)), "_local_scalar_dense")
        no_fake = tenon.library.custom_op("checks::no_fake", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        self.assertRegex(self.traced(no_fake, tenon.ones(2)), "There was no fake impl registered")
        lib = tenon.library.Library("checks_lib", "FRAGMENT")
        lib.define("other(Tensor x) -> Tensor")
        lib.impl("other", lambda x: x * (2 if isinstance(x, FakeTensor) else 3), "CompositeImplicitAutograd")
        self.assertRegex(self.traced(tenon.ops.checks_lib.other.default, tenon.ones(2)),
                         "Outputs of the traced operator are not those of the operator: ")
        lib._destroy()

    def test_autocast_of_an_operator(self):
        op = self.made("cast", lambda x: x.clone())
        op.register_autocast("cpu", tenon.bfloat16)
        with tenon.autocast("cpu"):
            self.assertEqual(op(tenon.ones(2)).dtype, tenon.bfloat16)
            self.assertEqual(op(tenon.ones(2, dtype=tenon.int64)).dtype, tenon.int64)
        self.assertEqual(op(tenon.ones(2)).dtype, tenon.float32)

    def test_calls_that_never_end_are_named(self):
        lib = tenon.library.Library("endless", "DEF")
        lib.define("a(Tensor x) -> Tensor")
        lib.define("b(Tensor x) -> Tensor")
        lib.impl("a", lambda x: tenon.ops.endless.b(x), "CPU")
        lib.impl("b", lambda x: tenon.ops.endless.a(x), "CPU")

        class Again(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return Again.apply(x)

        with self.assertRaises(RecursionError) as caught:
            tenon.ops.endless.a(tenon.ones(3))
        text = str(caught.exception)
        self.assertRegex(text, r"^maximum recursion depth exceeded.*Dispatches go round in this cycle:\n")
        self.assertRegex(text, r"endless::a \[CPU\] in .*<lambda> \(.*test_library.py:\d+\)")
        self.assertRegex(text, r"endless::b \[CPU\] in .*<lambda> \(.*test_library.py:\d+\)")
        self.assertEqual(text.count("go round in this cycle"), 1)
        with self.assertRaisesRegex(RecursionError, r"go round in this cycle:\n  .*Again.forward \(.*test_library.py:\d+\)"):
            Again.apply(tenon.ones(3, requires_grad=True))
        with self.assertRaisesRegex(RecursionError, r"^mine$"):  # nothing goes round
            tenon.library.custom_op("endless2::c", mutates_args=(), schema="(Tensor x) -> Tensor")(self.refuse)(tenon.ones(1))
        lib._destroy()

    @staticmethod
    def refuse(x):
        raise RecursionError("mine")

    def test_triton_is_not_here(self):
        op = tenon.library.triton_op("checks::tri", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
        self.assertEqual(op(tenon.ones(1)).item(), 2)
        with self.assertRaisesRegex(RuntimeError, "wrap_triton only works on functions annotated with"):
            tenon.library.wrap_triton(lambda x: x)


if __name__ == "__main__":
    harness.main()
