# SPDX-License-Identifier: MIT
"""Classes of tensors with __torch_dispatch__: over data, and as wrappers around other tensors."""

import gc
import unittest

import harness
import tenon
from tenon.utils._python_dispatch import is_traceable_wrapper_subclass, return_and_correct_aliasing, transform_subclass
from tenon.utils._pytree import tree_map

aten = tenon.ops.aten


class Logged(tenon.Tensor):
    """Data of its own; calls are logged and answered on plain tensors."""
    log = []
    __torch_function__ = tenon._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data):
        return tenon.Tensor._make_subclass(cls, data, data.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs or {})


class Doubled(tenon.Tensor):
    """A wrapper: every result is twice what it would be."""
    __torch_function__ = tenon._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = tenon.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype,
                                                   device=inner.device, requires_grad=requires_grad)
        made.inner = inner
        return made

    def __repr__(self):
        return "Doubled(%r)" % self.inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
        out = func(*args, **kwargs)
        twice = func in (aten.mul.Tensor, aten.add.Tensor)
        return tree_map(lambda x: cls(x * 2 if twice else x) if isinstance(x, tenon.Tensor) else x, out)


class Quantized(tenon.Tensor):
    """int8 values and a scale, put apart and together again."""
    __torch_function__ = tenon._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values, scale):
        return tenon.Tensor._make_wrapper_subclass(cls, values.shape, dtype=tenon.float32, device=values.device)

    def __init__(self, values, scale):
        self.values, self.scale = values, scale

    @classmethod
    def of(cls, x):
        scale = x.abs().max() / 127
        return cls((x / scale).round().to(tenon.int8), scale)

    def real(self):
        return self.values.to(tenon.float32) * self.scale

    def __tensor_flatten__(self):
        return ["values", "scale"], {"kind": "int8"}

    @staticmethod
    def __tensor_unflatten__(parts, context, outer_size, outer_stride):
        assert context == {"kind": "int8"}
        return Quantized(parts["values"], parts["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is aten.detach.default:
            return transform_subclass(args[0], lambda name, t: t.detach())
        args, kwargs = tree_map(lambda x: cls.real(x) if isinstance(x, cls) else x, (args, kwargs or {}))
        return return_and_correct_aliasing(func, args, kwargs, func(*args, **kwargs))


class Boxed(tenon.Tensor):
    """A wrapper around one tensor; results are wrappers."""
    __torch_function__ = tenon._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        return tenon.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, outer_size, outer_stride):
        return Boxed(parts["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = tree_map(lambda x: x.inner if isinstance(x, Boxed) else x, (args, kwargs or {}))
        out = tree_map(lambda x: Boxed(x) if isinstance(x, tenon.Tensor) else x, func(*inner[0], **inner[1]))
        return return_and_correct_aliasing(func, args, kwargs or {}, out)


class WrappersInModules(unittest.TestCase):
    """A parameter that is a wrapper is another wrapper after a conversion: the tensors in it go along."""

    def boxed(self):
        module = tenon.nn.Linear(2, 2, bias=False)
        module.weight = tenon.nn.Parameter(Boxed(module.weight.detach()))
        return module, module.weight

    def test_a_conversion_reaches_what_is_wrapped(self):
        module, weight = self.boxed()
        module(tenon.ones(1, 2)).sum().backward()
        grad = weight.grad
        module.double()
        self.assertIs(module.weight, weight)
        self.assertIs(type(weight), Boxed)
        self.assertIsInstance(weight, tenon.nn.Parameter)
        self.assertEqual((weight.dtype, weight.inner.dtype), (tenon.float64, tenon.float64))
        self.assertIs(weight.grad, grad)
        self.assertEqual((grad.dtype, grad.inner.dtype), (tenon.float64, tenon.float64))

    def test_a_parameter_becomes_a_wrapper(self):
        module = tenon.nn.Linear(2, 2)
        weight = module.weight
        module._apply(lambda t: Boxed(t.detach()))
        self.assertIs(module.weight, weight)
        self.assertIs(type(weight), Boxed)
        self.assertTrue(weight.requires_grad)

    def test_parametrizations_put_wrappers_on_and_take_them_off(self):
        class Unbox(tenon.nn.Module):
            def forward(self, x):
                return x.inner

        class Box(tenon.nn.Module):
            def forward(self, x):
                return Boxed(x)

        parametrize = tenon.nn.utils.parametrize
        module, weight = self.boxed()
        parametrize.register_parametrization(module, "weight", Unbox())
        self.assertIs(type(module.weight), tenon.Tensor)
        self.assertIs(type(module.parametrizations.weight.original), Boxed)
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
        self.assertIs(module.weight, weight)
        module = tenon.nn.Linear(2, 2)
        weight = module.weight
        parametrize.register_parametrization(module, "weight", Box())
        self.assertIs(type(module.weight), Boxed)
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
        self.assertIs(module.weight, weight)
        self.assertIs(type(weight), Boxed)


class Subclasses(unittest.TestCase):
    def test_a_class_sees_calls_with_its_tensors(self):
        Logged.log.clear()
        x = Logged(tenon.ones(2, 2))
        y = x @ tenon.ones(2, 2) + 1
        self.assertEqual(Logged.log[:1], ["aten.mm.default"])
        self.assertEqual(y.tolist(), [[3., 3.], [3., 3.]])

    def test_a_wrapper_is_asked_and_its_results_are_wrappers(self):
        x = Doubled(tenon.full((2,), 3.))
        self.assertEqual((tuple(x.shape), x.dtype, x.device.type), ((2,), tenon.float32, "cpu"))
        y = x * x
        self.assertIs(type(y), Doubled)
        self.assertEqual(y.inner.tolist(), [18., 18.])
        self.assertEqual((1 + x).inner.tolist(), [8., 8.])
        self.assertEqual(repr(x), "Doubled(tensor([3., 3.]))")

    def test_a_wrapper_works_under_autograd(self):
        x = Doubled(tenon.full((2,), 3.), requires_grad=True)
        y = x.exp()
        self.assertIs(type(y), Doubled)
        self.assertEqual(type(y.grad_fn).__name__, "ExpBackward0")
        gc.collect()
        y.sum().backward()
        self.assertIs(type(x.grad), Doubled)

    def test_a_wrapper_is_put_apart_and_together(self):
        x = tenon.tensor([[1., -2.], [0.5, 4.]])
        q = Quantized.of(x)
        self.assertTrue(is_traceable_wrapper_subclass(q))
        self.assertFalse(is_traceable_wrapper_subclass(x))
        self.assertTrue(tenon.allclose(q @ tenon.eye(2), x, atol=0.05))
        self.assertIs(type(q @ tenon.eye(2)), tenon.Tensor)
        d = q.detach()
        self.assertIs(type(d), Quantized)
        self.assertTrue(tenon.equal(d.values, q.values))

    def test_the_data_of_a_wrapper_is_what_its_class_detaches(self):
        for requires_grad in (False, True):
            data = Doubled(tenon.tensor([1.0, 2.0]), requires_grad).data
            self.assertIs(type(data), Doubled)
            self.assertEqual((data.inner.tolist(), data.requires_grad), ([1.0, 2.0], False))

    def test_as_subclass_and_a_class_without_a_handler(self):
        x = tenon.ones(2).as_subclass(Logged)
        Logged.log.clear()
        x.neg()
        self.assertEqual(Logged.log, ["aten.neg.default"])

        class Plain(tenon.Tensor):
            pass

        with self.assertRaisesRegex(TypeError, "Plain must define __torch_dispatch__"):
            tenon.Tensor._make_wrapper_subclass(Plain, (2,))

    def test_a_tensor_made_of_a_tensor_is_a_view_of_it_and_passes_its_gradient(self):
        class Named(tenon.Tensor):
            pass

        p = tenon.ones(2, requires_grad=True)
        for make in (tenon.Tensor, tenon.FloatTensor, p.new, Named):
            x = make(p)
            self.assertEqual((x.requires_grad, x.is_leaf, x.grad_fn.name()), (True, False, "AliasBackward0"))
            self.assertIs(x._base, p)
            self.assertEqual(tenon.autograd.grad((x * 3).sum(), p)[0].tolist(), [3, 3])
        self.assertIs(type(tenon.Tensor(Named(p))), tenon.Tensor)
        q = tenon.ones(2)
        Named(q).mul_(2)
        self.assertEqual((q.tolist(), q._version), ([2, 2], 1))

    def test_a_tensor_of_a_class_made_of_numbers_is_no_view(self):
        class Named(tenon.Tensor):
            pass

        for x in (Named([1.0, 2.0]), Named(2, 3)):
            self.assertIs(type(x), Named)
            self.assertIsNone(x._base)
            x.requires_grad_()
            self.assertTrue(x.is_leaf)

    def test_a_class_that_sees_operators_has_no_torch_function_unless_its_own(self):
        disabled = tenon._C._disabled_torch_function_impl
        said = []

        class Base:
            def __init_subclass__(cls, word=None, **kwargs):
                super().__init_subclass__(**kwargs)
                said.append((cls.__name__, word))

        class Sees(tenon.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                args = tree_map(lambda x: x.inner if isinstance(x, cls) else x, args)
                return func(*args, **(kwargs or {}))

        class Both(Sees):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs)

        class Mixed(Base, tenon.Tensor, word="one"):
            __torch_dispatch__ = Sees.__torch_dispatch__

        class Plain(Base, tenon.Tensor):
            pass

        self.assertIs(Sees.__torch_function__, disabled)
        self.assertIs(Mixed.__torch_function__, disabled)
        self.assertIsNot(Both.__torch_function__, disabled)
        self.assertIsNot(Plain.__torch_function__, disabled)
        self.assertEqual(said, [("Mixed", "one"), ("Plain", None)])
        with self.assertRaises(TypeError):
            class Wrong(tenon.Tensor, word="one"):
                pass
        x = tenon.Tensor._make_wrapper_subclass(Sees, (2,))
        x.inner = tenon.ones(2)
        self.assertIs(type(x + 1), tenon.Tensor)  # what its class gives, not one of it without what it wraps
        self.assertIs(type(x.new_tensor([1.])), tenon.Tensor)
        self.assertIs(type(tenon.ones(2).as_subclass(Plain) + 1), Plain)
        with tenon._C._DisableTorchDispatch():
            self.assertEqual(x.detach().shape, (2,))

    def test_sizes_of_a_wrapper_follow_where_an_operator_changes_them_in_place(self):
        class Two(tenon.Tensor):
            @staticmethod
            def __new__(cls, a):
                return tenon.Tensor._make_wrapper_subclass(cls, a.shape, strides=a.stride())

            def __init__(self, a):
                self.a = a

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                inner = tree_map(lambda x: x.a if isinstance(x, cls) else x, args)
                out = tree_map(lambda x: cls(x) if isinstance(x, tenon.Tensor) else x, func(*inner, **(kwargs or {})))
                return return_and_correct_aliasing(func, args, kwargs, out)

        for change, shape in ((lambda x: x.t_(), (3, 2)), (lambda x: x.transpose_(0, 1), (3, 2)), (lambda x: x.unsqueeze_(0), (1, 2, 3)),
                              (lambda x: x.squeeze_(), (2, 3)), (lambda x: x.swapaxes_(0, 1), (3, 2))):
            x = Two(tenon.ones(2, 3))
            self.assertIs(change(x), x)
            self.assertEqual((tuple(x.shape), tuple(x.a.shape), x.stride()), (shape, shape, x.a.stride()))
        with self.assertRaisesRegex(RuntimeError, "not supported for tensor subclasses, got Two"):
            Two(tenon.ones(2)).tolist()
        tags = [tag.name for tag in aten.unsqueeze_.default.tags]
        self.assertEqual(tags, ["inplace_view"])

    def test_what_a_class_sees_is_what_a_mode_sees(self):
        Logged.log.clear()
        x = Logged(tenon.ones(2, 3))
        seen = []

        class Calls(Logged):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                seen.append((func._opname, args[2:], {k: str(v) for k, v in (kwargs or {}).items()}))
                return super().__torch_dispatch__(func, types, args, kwargs)

        x = Calls(tenon.ones(2, 3))
        tenon.zeros_like(x), x.new_zeros(2), x[:, 1:], x[-1:], x.to("meta")
        x[0] = 5
        at = {"dtype": "tenon.float32", "layout": "tenon.strided", "device": "meta"}
        self.assertEqual([call for call in seen if call[0] != "detach"],
                         [("zeros_like", (), {"pin_memory": "False"}), ("new_zeros", (), {"pin_memory": "False"}), ("slice", (1, 2**63 - 1), {}),
                          ("slice", (-1, 2**63 - 1), {}), ("_to_copy", (), at), ("select", (0,), {})])
        self.assertEqual(x.as_subclass(tenon.Tensor)[0].tolist(), [5, 5, 5])

    def test_a_shell_that_nobody_handles_is_refused(self):
        x = tenon.Tensor._make_wrapper_subclass(Doubled, (2, 3))
        with tenon._C._DisableTorchDispatch():
            self.assertEqual(x.t().shape, (3, 2))
            for call in (lambda: x + 1, lambda: x.detach() + 1, lambda: x.t() @ x, lambda: x.zero_(), lambda: tenon.ones(2, 3).add_(x)):
                with self.assertRaises(RuntimeError):
                    call()

    def test_the_class_of_a_subclass_is_asked_before_its_base(self):
        asked = []

        class A(tenon.Tensor):
            __torch_function__ = tenon._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append(cls.__name__)
                return NotImplemented

        class B(A):
            pass

        with self.assertRaisesRegex(TypeError, "Multiple dispatch failed"):
            tenon.add(tenon.ones(2).as_subclass(A), tenon.ones(2).as_subclass(B))
        self.assertEqual(asked, ["B", "A"])


if __name__ == "__main__":
    harness.main()
