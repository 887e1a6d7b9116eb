# SPDX-License-Identifier: MIT
"""Fake tensors from Python, at torch's import path. The texts are PyTorch 2.11's."""

import threading
import unittest

import harness
import tenon
from tenon._subclasses import FakeTensor, FakeTensorMode
from tenon._subclasses.fake_tensor import (DataDependentOutputException, DynamicOutputShapeException,
                                           unset_fake_temporarily)
from tenon.utils._python_dispatch import return_and_correct_aliasing
from tenon.utils._pytree import tree_map_only


class Pair(tenon.Tensor):
    """Two tensors, of which each operator is that of either."""

    @staticmethod
    def __new__(cls, a, b, tag, size=None, stride=None):
        return tenon.Tensor._make_wrapper_subclass(cls, size or a.shape, strides=stride or a.stride(), dtype=a.dtype,
                                                   device=a.device, requires_grad=a.requires_grad)

    def __init__(self, a, b, tag, size=None, stride=None):
        self.a, self.b, self.tag = a, b, tag

    def __tensor_flatten__(self):
        return ["a", "b"], self.tag

    @staticmethod
    def __tensor_unflatten__(parts, tag, size, stride):
        return Pair(parts["a"], parts["b"], tag, size, stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        a, b = (func(*tree_map_only(Pair, lambda p: getattr(p, name), args), **(kwargs or {})) for name in "ab")
        return return_and_correct_aliasing(func, args, kwargs or {}, Pair(a, b, "made"))


class Fake(unittest.TestCase):
    def test_factories_inside_a_mode_make_fake_tensors(self):
        with FakeTensorMode() as mode:
            x = tenon.randn(2, 3)
        self.assertEqual(repr(x), "FakeTensor(..., size=(2, 3))")
        self.assertIsInstance(x, FakeTensor)
        self.assertIsInstance(x, tenon.Tensor)
        self.assertIs(x.fake_mode, mode)
        self.assertEqual((x.device, x.fake_device), (tenon.device("cpu"), tenon.device("cpu")))
        self.assertNotIsInstance(tenon.randn(2), FakeTensor)
        self.assertEqual(repr(x + 1), "FakeTensor(..., size=(2, 3))")

    def test_a_device_need_not_exist(self):
        with FakeTensorMode():
            c = tenon.ones(2, device="cuda")
            self.assertEqual(repr(c), "FakeTensor(..., device='cuda:0', size=(2,))")
            with self.assertRaisesRegex(
                    RuntimeError, "Unhandled FakeTensor Device Propagation for aten.add.Tensor, found two different "
                                  "devices cuda:0, cpu"):
                c + tenon.ones(2)

    def test_what_depends_on_values_raises_torchs_classes(self):
        with FakeTensorMode():
            x = tenon.randn(2, 3)
            for call, kind, name in (
                    (lambda: x.nonzero(), DynamicOutputShapeException, "aten.nonzero.default"),
                    (lambda: x[x > 0], DynamicOutputShapeException, "aten.nonzero.default"),
                    (lambda: tenon.unique(x), DynamicOutputShapeException, "aten._unique2.default"),
                    (lambda: tenon.masked_select(x, x > 0), DynamicOutputShapeException,
                     "aten.masked_select.default"),
                    (lambda: x.sum().item(), DataDependentOutputException, "aten._local_scalar_dense.default"),
                    (lambda: bool(x.sum() > 0), DataDependentOutputException, "aten._local_scalar_dense.default"),
                    (lambda: x.tolist(), DataDependentOutputException, "aten._local_scalar_dense.default")):
                with self.assertRaises(kind) as caught:
                    call()
                self.assertEqual(str(caught.exception), name)
                self.assertIs(caught.exception.func, tenon.ops.aten.__getattr__(name.split(".")[1]).default)
            with self.assertRaisesRegex(RuntimeError, r"^.numpy\(\) is not supported for tensor subclasses.$"):
                x.numpy()

    def test_a_tensor_goes_to_the_overload_that_takes_it(self):
        mode = FakeTensorMode()
        for make in (lambda *sizes: mode.from_tensor(tenon.ones(sizes)), lambda *sizes: tenon.ones(sizes, device="meta")):
            x, m, mask = make(), make(4, 3), make(4, 3).bool()
            for made, shape, dtype in (
                    (tenon.linspace(x, 3, 5), (5,), tenon.float32), (tenon.linspace(3, x, 5), (5,), tenon.float32),
                    (tenon.logspace(x, 2, 4, dtype=tenon.float64), (4,), tenon.float64),
                    (tenon.linalg.pinv(m, rtol=x), (3, 4), tenon.float32), (tenon.linalg.matrix_rank(m, x), (), tenon.int64),
                    (tenon.where(mask, x.half(), 2.5), (4, 3), tenon.float16), (m.clone().bernoulli_(x), (4, 3), tenon.float32),
                    (tenon.normal(0.0, m), (4, 3), tenon.float32), (tenon.normal(m, m), (4, 3), tenon.float32)):
                self.assertEqual((tuple(made.shape), made.dtype), (shape, dtype))
            tenon._fused_sgd_([m], [m.clone()], [], weight_decay=0.1, momentum=0.0, lr=x, dampening=0.0, nesterov=False,
                              maximize=False, is_first_step=False)
            steps = [make()]
            tenon._fused_adam_([m], [m.clone()], [m.clone()], [m.clone()], [], steps, lr=x, beta1=0.9, beta2=0.99, weight_decay=0.0,
                               eps=1e-8, amsgrad=False, maximize=False)
        # Where no overload takes the tensor, its value is read.
        self.assertEqual(tenon.ones(2).add_(tenon.ones(2), alpha=tenon.tensor(3.0)).tolist(), [4.0, 4.0])
        with self.assertRaises(DataDependentOutputException):
            mode.from_tensor(tenon.ones(2)).add_(1, alpha=mode.from_tensor(tenon.tensor(3.0)))

    def test_lengths_in_tensors_are_values(self):
        mode = FakeTensorMode()
        probs, targets, lengths = (mode.from_tensor(t) for t in (
            tenon.zeros(5, 2, 4), tenon.ones(2, 2, dtype=tenon.int64), tenon.tensor([2, 2])))
        with self.assertRaises(DynamicOutputShapeException) as caught:
            tenon.ctc_loss(probs, targets, lengths, lengths)
        self.assertEqual(str(caught.exception), "aten._ctc_loss.Tensor")
        with self.assertRaises(DynamicOutputShapeException) as caught:
            tenon._pack_padded_sequence(mode.from_tensor(tenon.zeros(4, 2, 3)), lengths, False)
        self.assertEqual(str(caught.exception), "aten._pack_padded_sequence.default")
        loss, alpha = mode.from_tensor(tenon.zeros(2)), mode.from_tensor(tenon.zeros(2, 5, 5))
        made = tenon.ops.aten._ctc_loss_backward.Tensor(loss, probs, targets, lengths, lengths, loss, alpha, 0)
        self.assertEqual(tuple(made.shape), (5, 2, 4))
        with self.assertRaisesRegex(RuntimeError, r"^Tensor.item\(\) cannot be called on meta tensors$"):
            tenon.ctc_loss(*(t.to("meta") for t in (tenon.zeros(5, 2, 4), tenon.ones(2, 2, dtype=tenon.int64),
                                                    tenon.tensor([2, 2]), tenon.tensor([2, 2]))))

    def test_known_values_stay_known(self):
        with FakeTensorMode():
            t = tenon.tensor(3.)
            self.assertEqual(t.item(), 3.)
            self.assertEqual(repr(tenon.tensor([1, 2])), "FakeTensor(..., size=(2,), dtype=tenon.int64)")
            self.assertEqual(repr(tenon.tensor([1., 2.], dtype=tenon.float16)),
                             "FakeTensor(..., size=(2,), dtype=tenon.float16)")
            self.assertEqual([tenon.tensor(3).tolist(), tenon.tensor([3]).tolist(), (tenon.tensor([[2.5]]) * 2).tolist()], [3, [3], [[5.0]]])
            self.assertRaises(DataDependentOutputException, tenon.ones(()).tolist)
        self.assertEqual(t.constant.item(), 3.)

    def test_real_tensors_are_refused_or_converted(self):
        a = tenon.ones(2, 2)
        with FakeTensorMode():
            with self.assertRaisesRegex(AssertionError, "Please convert all Tensors to FakeTensors first or "
                                                        "instantiate FakeTensorMode with 'allow_non_fake_inputs'."):
                a + 1
        with FakeTensorMode(allow_non_fake_inputs=True):
            self.assertEqual(repr(a + 1), "FakeTensor(..., size=(2, 2))")

    def test_from_tensor_gives_the_same_one_with_the_same_metadata(self):
        mode = FakeTensorMode()
        a = tenon.ones(4, 6)[::2, 1:].requires_grad_()
        f = mode.from_tensor(a)
        self.assertIs(mode.from_tensor(a), f)
        self.assertEqual((f.shape, f.stride(), f.storage_offset(), f.requires_grad, f.is_leaf),
                         (a.shape, a.stride(), a.storage_offset(), True, True))
        (f * 2).sum().backward()
        self.assertEqual(repr(f.grad), "FakeTensor(..., size=(2, 5))")

    def test_a_mode_can_be_left_for_a_while(self):
        with FakeTensorMode() as mode:
            with unset_fake_temporarily() as before:
                self.assertIs(before, mode)
                self.assertEqual(tenon.ones(2).tolist(), [1., 1.])
            self.assertIsInstance(tenon.ones(2), FakeTensor)

    def test_a_mode_belongs_to_the_thread_that_entered_it(self):
        found = []
        with FakeTensorMode():
            thread = threading.Thread(target=lambda: found.append(isinstance(tenon.ones(1), FakeTensor)))
            thread.start()
            thread.join()
        self.assertEqual(found, [False])

    def test_exceptions_leave_the_mode(self):
        with self.assertRaises(ZeroDivisionError):
            with FakeTensorMode():
                1 / 0
        self.assertNotIsInstance(tenon.ones(1), FakeTensor)

    def test_modules_run_on_fake_tensors(self):
        with FakeTensorMode():
            net = tenon.nn.Sequential(tenon.nn.Linear(8, 16), tenon.nn.ReLU(), tenon.nn.Linear(16, 4))
            out = net(tenon.randn(3, 8))
            out.sum().backward()
            self.assertEqual(tuple(out.shape), (3, 4))
            self.assertEqual(tuple(net[0].weight.grad.shape), (16, 8))

    def test_arrays_become_fake_tensors(self):
        import numpy
        with FakeTensorMode():
            for make in (tenon.tensor, tenon.as_tensor, tenon.from_numpy):
                x = make(numpy.ones((2, 3), dtype=numpy.float32))
                self.assertIsInstance(x, FakeTensor)
                self.assertEqual((tuple(x.shape), x.dtype), ((2, 3), tenon.float32))
            self.assertEqual(tenon.tensor(numpy.array(3.0)).item(), 3.0)
            self.assertIs(tenon.as_tensor(numpy.ones(2), dtype=tenon.float16).dtype, tenon.float16)

    def test_what_is_refused_raises_what_torch_raises(self):
        real, square = tenon.ones(2), tenon.ones(2, 2)
        one, other = FakeTensorMode(), FakeTensorMode()
        with self.assertRaisesRegex(AssertionError, "Mixing fake modes NYI"):
            one.from_tensor(real) + other.from_tensor(real)
        with one:
            with self.assertRaisesRegex(AssertionError, "Can't call metadata mutating ops on non-Fake Tensor inputs"):
                square.t_()
            with self.assertRaisesRegex(AssertionError, r"Found in aten\.add\.Tensor\(tensor\(\[\.\.\.\], size=\(2,\)\), 1\)"):
                real + 1
            with self.assertRaisesRegex(AssertionError, r"Found in aten\.mul_\.Tensor\(tensor\(\[\.\.\.\], size=\(2,\)\), 1\.5\)"):
                real.mul_(1.5)
        self.assertEqual(real.tolist(), [1.0, 1.0])

    def test_storages_have_identities(self):
        mode = FakeTensorMode()
        a = tenon.ones(4)
        for t in (a, mode.from_tensor(a), tenon.ones(4, device="meta")):
            self.assertEqual(t.untyped_storage()._cdata, t[1:].untyped_storage()._cdata)
            self.assertNotEqual(t.untyped_storage()._cdata, t.clone().untyped_storage()._cdata)
            self.assertTrue(tenon._C._is_alias_of(t, t[1:]))
            self.assertFalse(tenon._C._is_alias_of(t, t.clone()))
            self.assertTrue(t.is_set_to(t[:]))
            self.assertFalse(t.is_set_to(t.clone()))
            self.assertFalse(t.is_set_to(t[1:]))

    def test_what_is_made_of_tensors_becomes_one_made_of_fake_ones(self):
        mode, real = FakeTensorMode(), Pair(tenon.ones(2, 3), tenon.zeros(2, 3), "tag")
        fake = mode.from_tensor(real)
        self.assertEqual((type(fake), fake.tag, fake.shape, fake.stride(), fake.device), (Pair, "tag", (2, 3), (3, 1), real.device))
        self.assertTrue(isinstance(fake.a, FakeTensor) and isinstance(fake.b, FakeTensor))
        self.assertNotIsInstance(fake, FakeTensor)
        self.assertIs(mode.from_tensor(real), fake)
        self.assertEqual((type(fake * 2), (fake * 2).tag, type((fake * 2).a.fake_mode)), (Pair, "made", FakeTensorMode))
        turned = mode.from_tensor(real.t())
        self.assertEqual((turned.shape, turned.stride()), ((3, 2), (1, 3)))
        within = mode.from_tensor(Pair(real, tenon.zeros(2, 3), "outer"))
        self.assertTrue(type(within.a) is Pair and isinstance(within.a.a, FakeTensor))

    def test_the_history_of_what_is_made_of_tensors_comes_with_it(self):
        mode = FakeTensorMode()
        leaf = mode.from_tensor(Pair(tenon.ones(2, 3), tenon.zeros(2, 3), "tag").requires_grad_())
        self.assertEqual((leaf.requires_grad, leaf.is_leaf, leaf.a.requires_grad), (True, True, False))
        parameter = mode.from_tensor(tenon.nn.Parameter(Pair(tenon.ones(2), tenon.zeros(2), "tag")))
        self.assertEqual((type(parameter), isinstance(parameter, tenon.nn.Parameter)), (Pair, True))
        with mode:
            (leaf * leaf).sum().backward()
        self.assertIs(type(leaf.grad), Pair)

    def test_sparse_and_nested_tensors_keep_their_layout(self):
        mode = FakeTensorMode()
        for real in (tenon.eye(3).to_sparse(), tenon.eye(3).to_sparse_csr(), tenon.eye(3).to_sparse_csc()):
            fake = mode.from_tensor(real)
            self.assertEqual((fake.layout, fake.shape), (real.layout, (3, 3)))
            self.assertIsInstance(fake, FakeTensor)
            self.assertNotIsInstance(real, FakeTensor)
            self.assertIsInstance(fake * 2, FakeTensor)
        parts = [tenon.ones(2, 3), tenon.ones(4, 3)]
        for layout in (tenon.jagged, tenon.strided):
            fake = mode.from_tensor(tenon.nested.nested_tensor(parts, layout=layout))
            self.assertEqual((fake.layout, fake.is_nested), (layout, True))
        self.assertEqual((fake * 2).unbind()[1].shape, (4, 3))

    def test_ctrl_c_leaves_no_mode_on(self):
        mode = FakeTensorMode()

        def call():
            with mode, mode:
                pass

        for at in harness.interruptions(call):
            self.assertEqual(tenon.ones(2).tolist(), [1.0, 1.0], at)
        with self.assertRaisesRegex(RuntimeError, "not inside"):
            mode.__exit__(None, None, None)


if __name__ == "__main__":
    harness.main()
