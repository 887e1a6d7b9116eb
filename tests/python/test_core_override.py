# SPDX-License-Identifier: MIT
"""__torch_function__: classes and modes that see calls, and classes that results keep."""

import copy
import gc
import unittest
import weakref

import harness
import tenon

mode_free = tenon.empty(2, 2)


class Kept(tenon.Tensor):
    pass


class Seen(tenon.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((getattr(func, "__name__", func), types, kwargs))
        return super().__torch_function__(func, types, args, kwargs or {})


class Off(tenon.Tensor):
    __torch_function__ = tenon._C._disabled_torch_function_impl


class Mode:
    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))

    def __enter__(self):
        tenon._C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *_):
        self.assert_same = tenon._C._pop_torch_function_stack() is self


class Classes(unittest.TestCase):
    def test_results_keep_the_class(self):
        x = tenon.ones(2, 3).as_subclass(Kept)
        plain = tenon.ones(2, 3)
        for made in (x + 1, 1 - x, plain + x, x.T, x[0], x.sum(0), x.max(1).values, x.max(1)[1], x.data, x.detach(),
                     x.double(), x.to(tenon.float64), tenon.add(x, x), x.split(1)[0], tenon.cat([plain, x])):
            self.assertIs(type(made), Kept)
        self.assertIs(type(x.shape), tenon.Size)

    def test_what_a_tensor_has_keeps_its_own_class(self):
        x = tenon.ones(2).as_subclass(Kept)
        x.grad = tenon.zeros(2)
        self.assertIs(type(x.grad), tenon.Tensor)

    def test_a_class_can_switch_it_off(self):
        x = tenon.ones(2).as_subclass(Off)
        self.assertIs(type(x + 1), tenon.Tensor)

    def test_calls_methods_and_attributes_are_seen(self):
        x = tenon.ones(2, 3).as_subclass(Seen)
        for call, name, kwargs in ((lambda: x + 1, "add", None), (lambda: tenon.add(tenon.ones(2, 3), x, alpha=2), "add", {"alpha": 2}),
                                   (lambda: x.shape, "__get__", None), (lambda: x.size(), "size", None),
                                   (lambda: x[0], "__getitem__", None), (lambda: x.view(3, 2), "view", None),
                                   (lambda: tenon.cat([tenon.ones(2, 3), x]), "cat", None), (lambda: x.numel(), "numel", None)):
            Seen.calls.clear()
            call()
            self.assertEqual([(n, k) for n, _, k in Seen.calls], [(name, kwargs)])
            self.assertEqual(Seen.calls[0][1], (Seen,))
        Seen.calls.clear()
        x.requires_grad = True
        self.assertEqual(Seen.calls[0][0], "__set__")

    def test_keeping_a_gradient_is_seen(self):
        t = tenon.ones(2, requires_grad=True).mul(2).as_subclass(Seen)
        Seen.calls.clear()
        t.retain_grad()
        self.assertIn("retain_grad", [name for name, _, _ in Seen.calls])

    def test_what_python_asks_of_an_object_is_seen(self):
        answers = {"__len__": 77, "__repr__": "mine", "__bool__": True, "__float__": 3.5, "__int__": 4, "__contains__": True,
                   "__format__": "form", "__deepcopy__": "deep", "__reduce_ex__": (str, ("x",)), "tolist": ["mine"],
                   "numpy": "array", "item": 11, "type": "kind", "register_hook": "hook", "__dlpack__": "capsule"}

        class Answers(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                for name, answer in answers.items():
                    if func is getattr(tenon.Tensor, name):
                        return answer
                return super().__torch_function__(func, types, args, kwargs or {})

        x = tenon.arange(4.).as_subclass(Answers)
        seen = {"__len__": len(x), "__repr__": repr(x), "__bool__": bool(x), "__float__": float(x), "__int__": int(x),
                "__contains__": 9 in x, "__format__": format(x, ""), "__deepcopy__": copy.deepcopy(x),
                "__reduce_ex__": x.__reduce_ex__(2), "tolist": x.tolist(), "numpy": x.numpy(), "item": x.item(), "type": x.type(),
                "register_hook": x.register_hook(print), "__dlpack__": x.__dlpack__()}
        self.assertEqual(seen, answers)

    def test_a_class_may_log_what_it_sees(self):
        """The example of PyTorch's page on extending: the text of a tensor asks for nothing that is logged."""
        log = []

        class Logging(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func is not tenon.Tensor.__repr__:
                    log.append(f"{func.__name__} {args!r}")
                return super().__torch_function__(func, types, args, kwargs or {})

        self.assertEqual(repr(Logging([1., 2.]) + 1), "Logging([2., 3.])")
        self.assertEqual(log, ["add (Logging([1., 2.]), 1)"])

    def test_parts_are_of_the_class(self):
        x = tenon.arange(4.).view(2, 2)
        for cls in Kept, Seen:
            y = x.as_subclass(cls)
            a, b = y
            self.assertEqual({type(v) for v in [*y, *reversed(y), a, b]}, {cls})
        Seen.calls.clear()
        [0 for _ in x.as_subclass(Seen)]
        self.assertEqual([name for name, *_ in Seen.calls], ["dim", "unbind"])
        with self.assertRaisesRegex(TypeError, "iteration over a 0-d tensor"):
            list(tenon.tensor(1.).as_subclass(Seen))

    def test_a_subclass_is_asked_before_its_base(self):
        order = []

        class Base(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                order.append(cls)
                return NotImplemented

        class Derived(Base):
            pass

        a, b = tenon.ones(2).as_subclass(Base), tenon.ones(2).as_subclass(Derived)
        with self.assertRaisesRegex(TypeError, "all __torch_function__ handlers returned NotImplemented"):
            tenon.add(a, b)
        self.assertEqual(order, [Derived, Base])

    def test_other_objects_take_part(self):
        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "duck", func.__name__

        self.assertEqual(tenon.add(Duck(), 1), ("duck", "add"))
        self.assertEqual(tenon.matmul(tenon.ones(2), Duck()), ("duck", "matmul"))
        self.assertEqual(tenon.stack([tenon.ones(2), Duck()]), ("duck", "stack"))

    def test_what_is_among_indices_takes_part(self):
        seen = []

        def noted(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, [t.__name__ for t in types]))
            return -1

        Other = type("Other", (), {"__torch_function__": classmethod(noted)})
        Logged = type("Logged", (tenon.Tensor,), {"__torch_function__": classmethod(noted)})
        Kept = type("Kept", (tenon.Tensor,), {})
        x = tenon.tensor([[5, 6], [7, 8]])
        logged, kept = tenon.tensor([1]).as_subclass(Logged), tenon.tensor([1]).as_subclass(Kept)
        for o in (logged, Other()):
            for index in (o, (0, o), (o, slice(None)), [o]):
                with self.subTest(index=str(type(index)), o=type(o).__name__):
                    del seen[:]
                    self.assertEqual(x[index], -1)
                    x[index] = 1
                    x[0] = o
                    self.assertEqual(seen, [("__getitem__", [type(o).__name__])] + 2 * [("__setitem__", [type(o).__name__])])
        self.assertEqual(x.tolist(), [[5, 6], [7, 8]])
        for index, wanted in ((kept, [[7, 8]]), ((0, kept), [6]), ((slice(None), kept), [[6], [8]])):
            self.assertIs(type(x[index]), Kept)
            self.assertEqual(x[index].tolist(), wanted)
        with tenon._C.DisableTorchFunctionSubclass():
            self.assertIs(type(x[0, kept]), tenon.Tensor)
            x[0, logged] = 3
        self.assertEqual(x.tolist(), [[5, 3], [7, 8]])
        with self.assertRaisesRegex(TypeError, "can't assign a object to a torch.LongTensor"):
            x[0] = object()

    def test_those_who_are_said_to_matter_are_asked(self):
        asked = []

        class Like:
            @classmethod
            def __torch_function__(cls, func, types, args, kwargs):  # both, always
                asked.append((func, types, args, kwargs))
                return "answered"

        class Other(Like):
            pass

        like, box = Like(), {"inside": Like()}
        for relevant, args in (((like,), (like,)), ((box["inside"],), (box,)), ((like,), (like, Other()))):
            self.assertEqual(tenon.overrides.handle_torch_function(len, relevant, *args), "answered")
            self.assertEqual(asked.pop(), (len, (Like,), args, {}))

        @tenon.overrides.wrap_torch_function(lambda box: (box["inside"],))
        def first(box):
            return box

        self.assertEqual(first(box), "answered")
        self.assertEqual(first({"inside": 1}), {"inside": 1})
        with self.assertRaisesRegex(TypeError, "^expected a sequence$"):
            tenon.overrides.has_torch_function(object())

    def test_gradients_of_what_is_no_tensor_are_asked_for(self):
        class Like:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return args

        x = Like()
        self.assertEqual(tenon.autograd.grad(x, x), ((x,), (x,)))

    def test_disabled_blocks(self):
        x = tenon.ones(2).as_subclass(Seen)
        Seen.calls.clear()
        with tenon._C.DisableTorchFunctionSubclass():
            self.assertIs(type(x + 1), tenon.Tensor)
            self.assertFalse(tenon._C._is_torch_function_enabled())
        self.assertEqual(Seen.calls, [])
        self.assertTrue(tenon._C._has_torch_function_unary(x))
        self.assertFalse(tenon._C._has_torch_function((tenon.ones(1), 2)))


class Modes(unittest.TestCase):
    def test_a_mode_sees_calls_once_and_is_off_inside(self):
        x = tenon.ones(2)
        with Mode() as outer, Mode() as inner:
            x + 1
            tenon.relu(x)
            x.shape
        self.assertEqual(inner.calls, ["add", "relu", "__get__"])
        self.assertEqual(outer.calls, inner.calls)
        self.assertEqual(tenon._C._len_torch_function_stack(), 0)

    def test_a_mode_sees_what_makes_tensors(self):
        with Mode() as mode:
            tenon.tensor([1]), tenon.as_tensor([1]), tenon.asarray([1]), tenon.normal(0., 1., (1,))
            tenon.nn.init.uniform_(mode_free), tenon.nn.init.constant_(mode_free, 1), tenon.nn.init.normal_(mode_free)
            tenon.nn.init.kaiming_uniform_(mode_free)
        self.assertEqual(mode.calls, ["tensor", "as_tensor", "asarray", "normal", "uniform_", "constant_", "normal_",
                                      "kaiming_uniform_"])

    def test_a_mode_that_fails_stays_on_the_stack(self):
        class Bad(Mode):
            def __torch_function__(self, *_):
                raise KeyError("bad")

        with Bad():
            with self.assertRaises(KeyError):
                tenon.ones(2) + 1
            self.assertEqual(tenon._C._len_torch_function_stack(), 1)

    def test_a_mode_is_not_told_of_classes_that_are_not_asked(self):
        told = []

        class Wary(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                told.append(types)
                return NotImplemented if types else func(*args, **(kwargs or {}))

        class Kept(tenon.Tensor):
            pass

        x = tenon.ones(2).as_subclass(Kept)
        with Wary():
            self.assertIs(type(tenon.neg(x)), Kept)
            self.assertEqual(told, [(Kept,), ()])
            with tenon._C.DisableTorchFunctionSubclass():
                self.assertIs(type(x + 1), tenon.Tensor)
        self.assertEqual(told[2:], [()])

    def test_a_mode_whose_method_is_of_the_class_is_refused(self):
        class Mode(tenon.overrides.TorchFunctionMode):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2)
        with self.assertRaisesRegex(RuntimeError, "as a classmethod is not supported, please make it a plain method"), Mode():
            x + x
        self.assertEqual((x + x).tolist(), [2, 2])

    def test_all_disabled_means_modes_too(self):
        x = tenon.ones(2)
        with Mode() as mode, tenon._C.DisableTorchFunction():
            x + 1
        self.assertEqual(mode.calls, [])


class Lifetimes(unittest.TestCase):
    def test_an_object_lives_on_as_often_as_it_is_forgotten(self):
        holder = tenon.ones(2)
        holder.grad = tenon.zeros(2).as_subclass(Kept)
        for i in range(5):
            g = holder.grad
            self.assertIs(type(g), Kept)
            g.note = i
            ref = weakref.ref(g)
            del g
            self.assertIsNotNone(ref())
            self.assertEqual(holder.grad.note, i)
        del ref
        note = weakref.ref(holder.grad)
        holder.grad = None
        gc.collect()
        self.assertIsNone(note())

    def test_cycles_are_collected(self):
        x = tenon.ones(2)
        x.me = x
        ref = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNone(ref())


class Composed(unittest.TestCase):
    def test_a_function_that_is_made_of_operators_is_asked_about_as_one(self):
        seen = []

        class Mine(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((func, len(args)))
                return super().__torch_function__(func, types, args, kwargs or {})

        x = tenon.ones(2, 2).as_subclass(Mine)
        y = tenon.ones(2, 2)
        for call, func, n in ((lambda: tenon.einsum("ij,jk->ik", x, y), tenon.einsum, 3),
                              (lambda: tenon.einsum("ij,jk->ik", [x, y]), tenon.einsum, 3),
                              (lambda: tenon.block_diag(y, x), tenon.block_diag, 2),
                              (lambda: tenon.norm(x, dim=1), tenon.norm, 1),
                              (lambda: tenon.tensordot(y, x, dims=1), tenon.tensordot, 2)):
            seen.clear()
            self.assertIsInstance(call(), Mine)
            self.assertEqual(seen[:1], [(func, n)])


class Names(unittest.TestCase):
    def test_functions_of_modules_are_named_by_their_module(self):
        for f, name in ((tenon.fft.fft, "fft.fft"), (tenon.linalg.norm, "linalg.norm"), (tenon.special.erf, "special.erf"),
                        (tenon.add, "add"), (tenon.Tensor.add, "Tensor.add"), (tenon.nn.functional.relu, "nn.functional.relu")):
            self.assertEqual(tenon.overrides.resolve_name(f), "tenon." + name)


if __name__ == "__main__":
    harness.main()
