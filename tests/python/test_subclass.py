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
