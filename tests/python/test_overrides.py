# SPDX-License-Identifier: MIT
"""Which function a class or a mode is told of, where Python has an operator and where the package has a function of its own. The
names are those that PyTorch 2.11 tells."""

import contextlib
import operator
import pickle
import unittest

import harness
import tenon
from tenon.overrides import get_overridable_functions, get_testing_overrides, resolve_name

# operator of Python: what x op y, 2 op x and x op= 2 are told as
OPERATORS = {
    "add": ("add", "add", "add_"),
    "sub": ("sub", "__rsub__", "sub_"),
    "mul": ("mul", "mul", "mul_"),
    "truediv": ("div", "__rtruediv__", "div_"),
    "floordiv": ("__floordiv__", "__rfloordiv__", "floor_divide_"),
    "mod": ("remainder", "__rmod__", "remainder_"),
    "pow": ("__pow__", "__rpow__", "__ipow__"),
    "and": ("__and__", "bitwise_and", "__iand__"),
    "or": ("__or__", "bitwise_or", "__ior__"),
    "xor": ("__xor__", "bitwise_xor", "__ixor__"),
    "lshift": ("__lshift__", "__rlshift__", "__ilshift__"),
    "rshift": ("__rshift__", "__rrshift__", "__irshift__"),
    "lt": ("lt", "gt", None),
    "eq": ("__eq__", "__eq__", None),
    "ne": ("ne", "ne", None),
}


class Like:
    """No tensor, and asked all the same."""
    told = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.told.append((func, args))
        return -1


class Told(tenon.Tensor):
    told = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.told.append((func, args))
        return super().__torch_function__(func, types, args, kwargs or {})


def told(cls, call):
    """(the first function that a class is told of, its arguments), and the result."""
    cls.told.clear()
    result = call()
    return cls.told[0] if cls.told else (None, None), result


class Operators(unittest.TestCase):
    def test_operators_are_told_by_pytorchs_names_with_the_tensor_first(self):
        x = tenon.tensor([3, 5]).as_subclass(Told)
        plain = tenon.tensor([3, 5])
        for name, (forward, reflected, inplace) in OPERATORS.items():
            f = getattr(operator, "__%s__" % name)
            for call, expected, wanted, other in ((lambda: f(x, 2), forward, f(plain, 2), 2), (lambda: f(2, x), reflected, f(2, plain), 2),
                                                  (lambda: f(x, plain), forward, f(plain, plain), plain)):
                (func, args), result = told(Told, call)
                self.assertEqual((name, resolve_name(func)), (name, "tenon.Tensor." + expected))
                self.assertIs(args[0], x)
                self.assertIs(args[1], other)
                self.assertIs(type(result), Told)
                self.assertEqual(result.tolist(), wanted.tolist())
            if inplace and name != "truediv":
                y = tenon.tensor([3, 5]).as_subclass(Told)
                (func, args), result = told(Told, lambda: getattr(operator, "__i%s__" % name)(y, 2))
                self.assertEqual((name, resolve_name(func)), (name, "tenon.Tensor." + inplace))
                self.assertIs(result, y)
                self.assertEqual(result.tolist(), f(plain, 2).tolist())

    def test_operators_with_something_else_that_is_asked(self):
        for f, name in ((operator.pow, "__pow__"), (operator.and_, "__and__"), (operator.eq, "eq"), (operator.add, "add")):
            (func, args), result = told(Like, lambda: f(tenon.tensor([1]), Like()))
            self.assertEqual((resolve_name(func), result), ("tenon.Tensor." + name, -1))

    def test_operators_of_one(self):
        x = tenon.tensor([3, 5]).as_subclass(Told)
        half = tenon.tensor([0.5]).as_subclass(Told)
        for call, name in ((lambda: ~x, "__invert__"), (lambda: +x, "positive"), (lambda: -x, "neg"), (lambda: abs(x), "abs"),
                           (lambda: complex(half), "__complex__"), (lambda: x.is_cuda, "is_cuda.__get__"),
                           (lambda: x.is_sparse, "is_sparse.__get__"), (lambda: half.grad_fn, "grad_fn.__get__"),
                           (lambda: x.is_conj(), "is_conj"), (lambda: x.resolve_neg(), "resolve_neg"), (lambda: x._is_view(), "_is_view"),
                           (lambda: x.__dlpack_device__(), "__dlpack_device__")):
            (func, _), _ = told(Told, call)
            self.assertEqual(resolve_name(func), "tenon.Tensor." + name)
        (func, _), _ = told(Told, lambda: self.assertRaisesRegex(TypeError, "only implemented on integer", lambda: ~half))
        self.assertIs(func, tenon.Tensor.__invert__)

    def test_a_mode_is_told_of_operators(self):
        seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(resolve_name(func))
                return func(*args, **(kwargs or {}))

        x = tenon.tensor([3, 5])
        with Mode():
            results = [x ** 2, 2 ** x, 1 - x, x & 1, x == 3, +x]
        self.assertEqual(seen, ["tenon.Tensor." + n for n in ("__pow__", "__rpow__", "__rsub__", "__and__", "__eq__", "positive")])
        self.assertEqual([r.tolist() for r in results], [[9, 25], [8, 32], [-2, -4], [1, 1], [True, False], [3, 5]])


class Calls(unittest.TestCase):
    """What __torch_function__ is given, as PyTorch 2.11 gives it."""

    def setUp(self):
        case = self
        self.calls = []

        class Own(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                case.calls.append((func, tuple(t.__name__ for t in types), args, kwargs))
                return -1

        self.x = tenon.ones(2, 2).as_subclass(Own)

    def called(self, call):
        self.calls.clear()
        call()
        self.assertEqual(len(self.calls), 1)
        return self.calls[0]

    def test_a_function_in_python_gives_every_argument_one_way(self):
        F, x, plain = tenon.nn.functional, self.x, tenon.ones(2, 2)
        defaults = {"size_average": None, "reduce": None, "reduction": "sum"}
        for call in (lambda: F.kl_div(x, plain, None, None, "sum"), lambda: F.kl_div(target=plain, input=x, reduction="sum")):
            func, types, args, kwargs = self.called(call)
            self.assertIs(func, F.kl_div)
            self.assertEqual(types, ("Own", "Tensor"))
            self.assertTrue(len(args) == 2 and args[0] is x and args[1] is plain)
            self.assertEqual(kwargs, {**defaults, "log_target": False})
        _, _, args, kwargs = self.called(lambda: tenon.meshgrid(x, plain))
        self.assertEqual((len(args), kwargs), (2, {"indexing": None}))
        self.assertRaisesRegex(TypeError, "unexpected keyword argument 'out'", lambda: tenon.atleast_1d(x, out=x))

    def test_types_of_a_function_in_c_are_those_that_override(self):
        _, types, _, kwargs = self.called(lambda: tenon.add(self.x, tenon.ones(2, 2)))
        self.assertEqual((types, kwargs), (("Own",), None))

    def test_operators_that_are_python_in_pytorch(self):
        x, plain = self.x, tenon.ones(2, 2)
        for call, name in ((lambda: 2 - x, "__rsub__"), (lambda: 2 @ x, "__rmatmul__"), (lambda: x // 2, "__floordiv__"),
                           (lambda: x ** 2, "__pow__"), (lambda: 2 % x, "__rmod__"), (lambda: reversed(x), "__reversed__")):
            func, types, args, kwargs = self.called(call)
            self.assertEqual((resolve_name(func), types, kwargs), ("tenon.Tensor." + name, ("Own",), {}))
            self.assertIs(args[0], x)
        self.assertEqual(self.called(lambda: plain // x)[1], ("Own", "Tensor"))

    def test_equality_asks_the_left_side_alone(self):
        class Other(type(self.x)):
            pass

        func, types, _, _ = self.called(lambda: tenon.ones(2).as_subclass(Other) == self.x)
        self.assertEqual((func, types), (tenon.Tensor.__eq__, ("Other",)))

    def test_equality_with_a_class_that_is_kept_asks_that_one(self):
        class Kept(tenon.Tensor):
            pass

        (func, _), result = told(Told, lambda: tenon.ones(2).as_subclass(Kept) == tenon.ones(2).as_subclass(Told))
        self.assertEqual((func, type(result), result.tolist()), (None, Kept, [True, True]))

    def test_indices_are_seen_two_deep(self):
        like, t = Like(), tenon.ones(2, 2)
        for index in ((0, [like]), (0, (like,)), [like], ((like,),)):
            (func, args), result = told(Like, lambda: t[index])
            self.assertEqual((func, result), (tenon.Tensor.__getitem__, -1))
            self.assertIs(args[1], index)
        (func, _), _ = told(Like, lambda: operator.setitem(t, (0, [like]), 1))
        self.assertIs(func, tenon.Tensor.__setitem__)

    def test_to_asks_the_tensor_whose_like_is_wanted(self):
        func, types, args, _ = self.called(lambda: tenon.ones(2).to(self.x))
        self.assertEqual((func, types), (tenon.Tensor.to, ("Own",)))
        self.assertIs(args[1], self.x)

    def test_names_of_dimensions_are_looked_up_after_asking(self):
        func, _, args, _ = self.called(lambda: tenon.sum(self.x, "N"))
        self.assertIs(func, tenon.sum)
        self.assertEqual(args[1], "N")
        self.assertIs(self.called(lambda: self.x.max("N"))[0], tenon.Tensor.max)

    def test_a_length_and_a_truth_must_be_such(self):
        self.assertRaisesRegex(ValueError, r"__len__\(\) should return >= 0", lambda: len(self.x))
        self.assertRaisesRegex(TypeError, "__bool__ should return bool, returned int", lambda: bool(self.x))


class Lists(unittest.TestCase):
    def test_what_cannot_be_overridden_is_not_listed(self):
        listed, ignored = get_testing_overrides(), tenon.overrides.get_ignored_functions()
        for name in ("__hash__", "__delitem__", "__iter__", "__reduce__", "new_ones", "as_subclass", "stride"):
            self.assertNotIn(getattr(tenon.Tensor, name), listed, name)
        self.assertFalse([f for f in listed if getattr(f, "__name__", None) in ("__del__", "__bytes__")])
        for f in (tenon.abs_, tenon.result_type, tenon.nn.functional.sigmoid, tenon.nn.functional.has_torch_function, tenon.nn.init.zeros_):
            self.assertNotIn(f, listed)
        for f in (tenon.Tensor.new_ones, tenon.ones, tenon.result_type, tenon.nn.functional.sigmoid):
            self.assertIn(f, ignored)
        for f in (tenon.nn.init.uniform_, tenon.sym_int, tenon.Tensor.__len__, tenon.Tensor.shape.__get__, tenon.nn.functional.relu):
            self.assertIn(f, listed)

    def test_methods_and_properties(self):
        is_one = tenon.overrides.is_tensor_method_or_property
        self.assertTrue(is_one(tenon.Tensor.add) and is_one(tenon.Tensor.shape.__get__))
        for f in (tenon.Tensor.grad.__set__, tenon.Tensor.__hash__, tenon.Tensor.new, tenon.add):
            self.assertFalse(is_one(f))

    def test_what_is_switched_off(self):
        c = tenon._C
        with c.DisableTorchFunctionSubclass():
            self.assertEqual((c._is_torch_function_enabled(), c._is_torch_function_all_disabled()), (False, False))
        with c.DisableTorchFunction():
            self.assertEqual((c._is_torch_function_enabled(), c._is_torch_function_all_disabled()), (False, True))
        self.assertFalse(c._is_torch_function_all_disabled())


class Functions(unittest.TestCase):
    def test_functions_that_are_written_in_python_ask(self):
        e = Like()
        for call, func in ((lambda: tenon.lu(e), tenon.lu), (lambda: tenon.split(e, 2), tenon.split), (lambda: tenon.stft(e, 4), tenon.stft),
                           (lambda: tenon.unravel_index(e, (2, 2)), tenon.unravel_index), (lambda: tenon.conv_tbc(e, e, e), tenon.conv_tbc),
                           (lambda: tenon.histogramdd(e, 1), tenon.histogramdd), (lambda: tenon.sym_not(e), tenon.sym_not),
                           (lambda: tenon.sym_float(e), tenon.sym_float), (lambda: tenon.sym_max(e, e), tenon.sym_max)):
            (seen, _), result = told(Like, call)
            self.assertEqual((seen, result), (func, -1))

    def test_an_object_that_is_asked_fits_every_parameter(self):
        x, like = tenon.ones(2, 3), Like()
        for call in ("add(x, 1, alpha=like)", "sum(x, like)", "sum(x, dim=(0, like))", "sum(x, [like])", "sum(x, 0, like)", "sum(x, dtype=like)",
                     "zeros(like)", "zeros(2, like)", "zeros((2, like))", "zeros(2, dtype=like)", "zeros(2, device=like)",
                     "zeros(2, requires_grad=like)", "full((2,), like)", "randn(2, generator=like)", "empty_like(x, memory_format=like)",
                     "transpose(x, 0, like)", "cat(like)", "topk(x, 1, largest=like)", "clamp(x, 0, like)", "max(x, 0, out=like)",
                     "max(x, 0, out=(x, like))", "div(x, x, rounding_mode=like)", "_foreach_add([x], [1, like])",
                     "nn.functional.pad(x, (1, like))", "tensor(1, dtype=like)", "tensor(1, device=like)", "as_tensor(1, dtype=like)",
                     "Tensor.view(x, like)", "Tensor.view(x, 2, like)", "Tensor.view(x, like, 3)", "Tensor.permute(x, 0, like)",
                     "Tensor.to(x, like)", "Tensor.to(x, float32, non_blocking=like)", "Tensor.size(x, like)", "Tensor.double(x, memory_format=like)",
                     "Tensor.requires_grad_(x, like)", "Tensor.uniform_(x, 0, like)", "Tensor.numpy(x, force=like)", "Tensor.new_zeros(x, (2, like))",
                     "device(like)", "device('cpu', like)", "nonzero(x, as_tuple=like)", "Tensor.resize_as_(x, like)",
                     "ops.aten.add(x, like)", "ops.aten.sum.dim_IntList(x, [like])", "ops.aten.add.Scalar(x, like)", "ops.aten.zeros([2], dtype=like)"):
            Like.told.clear()
            self.assertEqual((call, eval("tenon." + call, {"tenon": tenon, "x": x, "like": like, "float32": tenon.float32})), (call, -1))
            self.assertEqual((call, len(Like.told)), (call, 1))

    def test_an_object_that_is_asked_has_no_say_where_it_is_data_or_out_of_place(self):
        x, like = tenon.ones(2, 3), Like()
        for call in ("tensor(like)", "tensor([like])", "zeros(like, 2)", "Tensor.expand(x, like, 3)", "sum(x, ('a', like))", "ops.aten.view(x, [2, like])",
                     "Tensor.sum(like)", "is_tensor(like) or [][0]"):
            Like.told.clear()
            with self.assertRaises((TypeError, RuntimeError, IndexError)):
                eval("tenon." + call, {"tenon": tenon, "x": x, "like": like})
            self.assertEqual((call, Like.told), (call, []))
        with tenon._C.DisableTorchFunctionSubclass():
            for call in ("add(x, like)", "sum(x, like)", "cat([x, like])", "zeros((2, like))", "tensor(1, dtype=like)"):
                with self.assertRaises(TypeError):
                    eval("tenon." + call, {"tenon": tenon, "x": x, "like": like})

    def test_numbers_with_a_torch_function_are_numbers_and_asked_in_lists(self):
        class Number(int):
            __torch_function__ = Like.__torch_function__

        x = tenon.ones(2, 3)
        self.assertEqual(tenon.sum(x, Number(0)).shape, (3,))
        self.assertEqual(tenon.full((2,), Number(3)).tolist(), [3, 3])
        self.assertEqual(tenon.sum(x, (0, Number(1))), -1)
        self.assertEqual(x.view(Number(6)), -1)

    def test_who_is_asked_is_said_by_what_an_object_has(self):
        class Other:
            pass

        one = Other()
        one.__torch_function__ = lambda func, types, args=(), kwargs=None: (types, kwargs)
        self.assertEqual(tenon.sum(tenon.ones(2), one), ((Other,), None))

        class Broken:
            def __getattr__(self, name):
                raise KeyError(name)

        with self.assertRaises(TypeError):
            tenon.add(tenon.ones(2), Broken())

    def test_types_are_in_the_order_of_the_parameters(self):
        class A(Like):
            pass

        class B:
            seen = []

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                cls.seen.append(types)
                return -2

        x = tenon.ones(2)
        self.assertEqual((tenon.add(other=A(), input=B()), B.seen.pop()), (-2, (B, A)))
        self.assertEqual((tenon.add(input=B(), other=x, alpha=A()), B.seen.pop()), (-2, (B, A)))
        kept = tenon.zeros((2, tenon.tensor(1).as_subclass(Told)))
        self.assertIs(type(kept), Told)

    def test_operators_by_name_are_shown_as_they_were_called(self):
        seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((func, types, len(args), kwargs))
                return func(*args, **(kwargs or {}))

        x, aten = tenon.ones(2), tenon.ops.aten
        with Mode():
            aten.add(x, other=1)
            aten.sum.default(x)
        self.assertEqual(seen, [(aten.add, (), 1, {"other": 1}), (aten.sum.default, (), 1, {})])

    def test_a_mode_is_told_the_class_of_a_tensor_without_arguments(self):
        seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(types)
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2, 2)
        with Mode():
            for call in (lambda: x.shape, lambda: x.dim(), lambda: x.t(), lambda: -x, lambda: x.detach(), lambda: x.is_floating_point(),
                         lambda: setattr(x, "grad", None), lambda: x.tolist()):
                call()
            for call in (lambda: x.size(), lambda: x.sum(), lambda: x + 1, lambda: tenon.neg(x)):
                call()
        self.assertEqual(seen, [(tenon.Tensor,)] * 8 + [()] * 4)

    def test_a_function_of_pythons_that_nobody_answers_says_so_in_its_words(self):
        class Not:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        @tenon.overrides.wrap_torch_function(lambda x: (x,))
        def mine(x):
            return "plain"

        self.assertEqual(mine(tenon.ones(1)), "plain")
        with self.assertRaisesRegex(TypeError, r"no implementation found for '.*\.mine' on types that implement __torch_function__: \[<class .*Not'>\]"):
            mine(Not())
        with self.assertRaisesRegex(TypeError, "no implementation found for '.*relu'"):
            tenon.nn.functional.relu(Not())
        with self.assertRaisesRegex(TypeError, "Multiple dispatch failed"):
            tenon.relu(Not())

    def test_default_devices_are_function_modes(self):
        stack = tenon.overrides._get_current_function_mode_stack
        context = tenon.utils._device.DeviceContext
        seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((func, kwargs and kwargs.get("device"), len(stack())))
                return func(*args, **(kwargs or {}))

        meta, mode = tenon.device("meta"), Mode()
        with meta:
            self.assertEqual([(type(m), m.device) for m in stack()], [(context, meta)])
            with tenon.device("cpu"):
                self.assertEqual((len(stack()), tenon._C._len_torch_function_stack(), tenon.zeros(1).device.type), (2, 2, "cpu"))
            with mode:
                self.assertEqual((stack()[1], tenon.zeros(1).device), (mode, meta))
                self.assertEqual(seen[0], (tenon.zeros, None, 1))
            with tenon._C.DisableTorchFunction():
                self.assertEqual(tenon.zeros(1).device.type, "cpu")
            off = tenon._C._pop_torch_function_stack()
            self.assertEqual((tenon.zeros(1).device.type, tenon.get_default_device().type), ("cpu", "cpu"))
            tenon._C._push_on_torch_function_stack(off)
            self.assertEqual(tenon.tensor(1).device, meta)
            self.assertEqual((tenon.as_tensor(tenon.ones(1, device="cpu")).device, tenon.asarray(tenon.ones(1, device="cpu")).device), (meta, meta))
            self.assertEqual(tenon.normal(0., 1., (2,)).device.type, "cpu")
        self.assertEqual(stack(), [])
        with mode:
            del seen[:]
            with meta:
                tenon.tensor([1.]), tenon.randn(2, device="cpu"), tenon.add(tenon.ones(2), 1)
                self.assertEqual([type(m) for m in stack()], [Mode, context])
        self.assertEqual(seen, [(tenon.device, None, 0), (tenon.tensor, meta, 0), (tenon.randn, "cpu", 0), (tenon.ones, meta, 0), (tenon.add, None, 0)])
        self.assertTrue(issubclass(context, tenon.overrides.TorchFunctionMode))

    def test_classes_are_asked_when_every_mode_stepped_aside(self):
        made = []

        class Asks:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                made.append((tenon.zeros(1).device.type, kwargs and kwargs.get("device")))
                raise KeyError("mine")

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        meta = tenon.device("meta")
        for modes in ((meta,), (meta, tenon.device("cpu"), meta), (meta, Mode()), (Mode(), meta)):
            with contextlib.ExitStack() as on:
                for mode in modes:
                    on.enter_context(mode)
                for call in (lambda: tenon.add(tenon.ones(1), Asks()), lambda: tenon.zeros((2, Asks()))):
                    with self.assertRaises(KeyError):
                        call()
                self.assertEqual((tenon._C._len_torch_function_stack(), tenon.zeros(1).device), (len(modes), meta))
            self.assertEqual(made, [("cpu", None), ("cpu", meta)])
            del made[:]

    def test_the_data_of_a_tensor_has_no_say_under_a_mode(self):
        seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(types)
                return -1

        x, y = tenon.ones(1).as_subclass(Told), tenon.ones(1)
        with Mode():
            tenon.tensor(x), tenon.as_tensor(x), tenon.asarray(1, dtype=tenon.int8), tenon.autograd.grad(y, x)
        self.assertEqual(seen, [(), (), (), (Told, tenon.Tensor)])

    def test_what_a_class_is_kept_from_may_be_written_by_it(self):
        class Kept(tenon.Tensor):
            pass

        kept, out = tenon.ones(2).as_subclass(Kept), tenon.zeros(2)
        made = tenon.add(kept, kept, out=out)
        self.assertEqual((type(made), made.data_ptr(), out.tolist()), (Kept, out.data_ptr(), [2, 2]))
        self.assertIs(type(out.add_(kept)), Kept)
        self.assertIs(tenon.add(kept, 1, out=kept), kept)

    def test_set_default_device_lies_under_all_modes(self):
        stack = tenon.overrides._get_current_function_mode_stack
        with tenon.overrides.BaseTorchFunctionMode() as mode:
            tenon.set_default_device("meta")
            try:
                self.assertIs(stack()[1], mode)
                self.assertEqual((tenon.zeros(1).device.type, tenon.get_default_device().type), ("meta", "meta"))
                tenon.set_default_device("cpu")
                self.assertEqual((len(stack()), stack()[0].device.type), (2, "cpu"))
                with tenon.utils._device.DeviceContext("meta") as nothing:
                    self.assertEqual((nothing, len(stack()), stack()[0].device.type), (None, 2, "meta"))
            finally:
                tenon.set_default_device(None)
            self.assertEqual(stack(), [mode])
        seen = []

        class Told(tenon.utils._device.DeviceContext):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs)

        with Told("meta"):
            self.assertEqual(tenon.zeros(1).device.type, "meta")
        self.assertIn(tenon.zeros, seen)

    def test_many_modes_inside_each_other_and_one_that_fails(self):
        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func is tenon.neg:
                    raise KeyError("mine")
                return func(*args, **(kwargs or {}))

        with contextlib.ExitStack() as all_of_them:
            for i in range(40):
                all_of_them.enter_context(tenon.device("meta" if i % 3 else "cpu") if i % 2 else Mode())
            self.assertEqual((tenon._C._len_torch_function_stack(), tenon.zeros(1).device.type), (40, "cpu"))
            with self.assertRaises(KeyError):
                tenon.neg(tenon.ones(1))
            self.assertEqual(tenon._C._len_torch_function_stack(), 40)
        self.assertEqual((tenon._C._len_torch_function_stack(), tenon.zeros(1).device.type), (0, "cpu"))
        with self.assertRaisesRegex(RuntimeError, "empty mode stack"):
            tenon._C._pop_torch_function_stack()

    def test_the_list_of_functions_has_operators_attributes_and_modules(self):
        listed = get_overridable_functions()
        for space in (tenon, tenon.functional, tenon.nn.functional, tenon.Tensor, tenon.linalg, tenon.fft, tenon.special):
            self.assertTrue(space in listed, space)
        for space, func in ((tenon.Tensor, tenon.Tensor.__add__), (tenon.Tensor, tenon.Tensor.__getitem__), (tenon.Tensor, tenon.Tensor.__len__),
                            (tenon.functional, tenon.functional.einsum), (tenon.linalg, tenon.linalg.norm), (tenon.fft, tenon.fft.fft),
                            (tenon.Tensor.shape, tenon.Tensor.shape.__get__), (tenon.Tensor.is_cuda, tenon.Tensor.is_cuda.__get__)):
            self.assertTrue(func in listed[space], func)
        overrides = get_testing_overrides()
        for func in (tenon.Tensor.__add__, tenon.Tensor.grad.__get__, tenon.einsum, tenon.linalg.norm, tenon.nn.functional.linear):
            self.assertEqual(overrides[func](1, 2, 3), -1)

    def test_a_function_is_the_one_that_programs_name(self):
        told = []

        class Told(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                told.append(func)
                return NotImplemented

        F, x = tenon.nn.functional, tenon.ones(1, 1, 2, 2).as_subclass(Told)
        for func, args in ((F.linear, (x, x)), (F.gelu, (x,)), (F.conv2d, (x, x)), (F.avg_pool2d, (x, 2)), (F.one_hot, (x,)),
                           (F.scaled_dot_product_attention, (x, x, x)), (F.cosine_similarity, (x, x)), (F.softplus, (x,)),
                           (F.bilinear, (x, x, x)), (F.relu, (x,)), (tenon.add, (x, 1)), (tenon.linalg.inv, (x,)),
                           (tenon.fft.fft, (x,)), (tenon.special.erf, (x,)), (tenon.special.softmax, (x, 0))):
            del told[:]
            with self.assertRaisesRegex(TypeError, "Multiple dispatch failed|no implementation found for .* on types that implement __torch_function__"):
                func(*args)
            self.assertIs(told[0], func)
        self.assertIs(tenon.conv2d, F.conv2d)
        for func in (F.linear, F.conv2d, tenon.linalg.inv, tenon.add):
            self.assertIs(pickle.loads(pickle.dumps(func)), func)
        self.assertEqual((F.gelu.__module__, tenon.conv2d.__module__), ("tenon._C._nn", "tenon"))

    def test_functions_are_named_by_the_last_module_that_has_them(self):
        for func, name in ((tenon.einsum, "functional.einsum"), (tenon.linalg.norm, "linalg.norm"), (tenon.nn.functional.linear, "nn.functional.linear"),
                           (tenon.nn.functional.one_hot, "nn.functional.one_hot"), (tenon.special.expit, "special.expit"), (tenon.add, "add"),
                           (tenon.nn.init.normal_, "nn.init.normal_"), (tenon.Tensor.__pow__, "Tensor.__pow__")):
            self.assertEqual(resolve_name(func), "tenon." + name)


if __name__ == "__main__":
    harness.main()
