# SPDX-License-Identifier: MIT
"""The rules of fake tensors, each by its name: what one is, modes, real tensors among fake ones, known values, devices, factories,
results that depend on values, and what conversion keeps. Written so that the same file holds with PyTorch 2.11 in Tenon's place."""

import threading
import unittest

import harness
import tenon
from tenon._subclasses.fake_tensor import (DataDependentOutputException, DynamicOutputShapeException, FakeTensor,
                                           FakeTensorMode)
from tenon.nn.functional import conv2d


def on(device, *sizes, dtype=None):
    return tenon.empty(sizes, device=device, dtype=dtype)


class Rules(unittest.TestCase):
    def refuses(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))


class WhatItIs(Rules):
    def test_it_has_the_device_that_it_pretends(self):
        with FakeTensorMode():
            x = on("cuda", 2, 3)
        self.assertEqual((str(x.device), str(x.fake_device), x.is_cuda, x.is_meta), ("cuda:0", "cuda:0", True, False))

    def test_a_device_without_a_number_is_the_first(self):
        with FakeTensorMode():
            self.assertEqual([str(on(d, 1).device) for d in ("cuda", "cuda:0", "cuda:1", "cpu")], ["cuda:0", "cuda:0", "cuda:1", "cpu"])

    def test_it_has_no_data(self):
        with FakeTensorMode():
            x = on("cpu", 4)
        self.assertEqual((x.data_ptr(), x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()), (0, 0, 16))
        self.refuses(RuntimeError, ".numpy() is not supported for tensor subclasses.", x.numpy)

    def test_it_has_the_keys_of_its_device(self):
        with FakeTensorMode():
            for device, wanted in (("cpu", ("CPU", "AutogradCPU", "AutocastCPU", "ADInplaceOrView")),
                                   ("cuda", ("CUDA", "AutogradCUDA", "AutocastCUDA", "ADInplaceOrView"))):
                keys = str(tenon._C._dispatch_keys(on(device, 1)))
                self.assertTrue(all(key in keys for key in wanted), keys)
                self.assertNotIn("Meta", keys)

    def test_a_meta_tensor_may_be_converted_and_stays_on_meta(self):
        f = FakeTensorMode().from_tensor(tenon.ones(2, device="meta"))
        self.assertIsInstance(f, FakeTensor)
        self.assertEqual(str(f.device), "meta")
        self.assertEqual(str((f + 1).device), "meta")

    def test_it_prints_its_size_device_and_dtype(self):
        with FakeTensorMode():
            self.assertEqual(repr(on("cuda", 2)), "FakeTensor(..., device='cuda:0', size=(2,))")
            self.assertEqual(repr(on("cpu", 2, dtype=tenon.float64)).replace("tenon.", "torch."),
                             "FakeTensor(..., size=(2,), dtype=torch.float64)")


class Modes(Rules):
    def test_entering_twice_is_entering_once(self):
        mode = FakeTensorMode()
        with mode:
            with mode:
                pass
            self.assertIsInstance(tenon.ones(1), FakeTensor)
        self.assertNotIsInstance(tenon.ones(1), FakeTensor)

    def test_another_mode_is_left_to_the_one_before(self):
        one, other = FakeTensorMode(), FakeTensorMode()
        with one:
            with other:
                self.assertIs(tenon.ones(1).fake_mode, other)
            self.assertIs(tenon.ones(1).fake_mode, one)

    def test_outside_a_mode_a_tensor_brings_its_own(self):
        mode = FakeTensorMode()
        x = mode.from_tensor(tenon.ones(2, 3))
        for made in (x + 1, x @ x.t(), x.sum(), tenon.zeros_like(x), x[0], x.new_ones(4)):
            self.assertIsInstance(made, FakeTensor)
            self.assertIs(made.fake_mode, mode)

    def test_modes_do_not_mix(self):
        real = tenon.ones(2)
        a, b = FakeTensorMode().from_tensor(real), FakeTensorMode().from_tensor(real)
        self.refuses(AssertionError, "Mixing fake modes NYI", lambda: a + b)

    def test_a_mode_is_of_one_thread(self):
        seen = []
        with FakeTensorMode():
            thread = threading.Thread(target=lambda: seen.append(tenon.ones(2).tolist()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [[1.0, 1.0]])


class RealTensors(Rules):
    TEXT = ("Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
            "Found in aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)))")

    def test_a_real_argument_is_refused_with_the_call(self):
        mode, real = FakeTensorMode(), tenon.ones(2)
        fake = mode.from_tensor(tenon.ones(2))
        with mode:
            self.refuses(AssertionError, self.TEXT, lambda: fake + real)
        self.refuses(AssertionError, self.TEXT, lambda: fake + real)

    def test_a_real_number_is_refused_too(self):
        mode, real = FakeTensorMode(), tenon.tensor(2.0)
        self.refuses(AssertionError, "Please convert all Tensors to FakeTensors first", lambda: mode.from_tensor(tenon.ones(2)) + real)

    def test_changing_the_sizes_of_a_real_tensor_is_refused(self):
        real = tenon.ones(2, 2)
        for allow in (False, True):
            with FakeTensorMode(allow_non_fake_inputs=allow):
                self.refuses(AssertionError, "Can't call metadata mutating ops on non-Fake Tensor inputs. Found in "
                             "aten.t_.default(tensor([...], size=(2, 2)))", real.t_)

    def test_a_mode_that_allows_them_converts_them(self):
        real, base = tenon.ones(2), tenon.ones(3, 2)
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            made = mode.from_tensor(tenon.ones(2)) + real + base[1]
        self.assertIsInstance(made, FakeTensor)
        self.assertEqual(tuple(made.shape), (2,))


class KnownValues(Rules):
    def test_a_number_that_is_made_inside_is_known(self):
        with FakeTensorMode():
            self.assertEqual([tenon.tensor(3).item(), tenon.tensor([2.5]).item(), tenon.tensor([[True]]).item()], [3, 2.5, True])

    def test_what_is_computed_of_known_values_is_known(self):
        with FakeTensorMode():
            t = tenon.tensor(3)
            self.assertEqual(((t + 1).item(), (t * t).item(), bool(t < 4), float(t.double() / 2), t.reshape(1)[0].item()),
                             (4, 9, True, 1.5, 3))

    def test_a_write_of_something_unknown_is_forgotten(self):
        mode = FakeTensorMode()
        unknown = mode.from_tensor(tenon.tensor(1.0))
        with mode:
            t = tenon.tensor(3.0)
            t.add_(1)
            self.assertEqual(t.item(), 4.0)
            t.add_(unknown)
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", t.item)

    def test_a_random_result_is_not_known(self):
        with FakeTensorMode():
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", tenon.rand(()).item)
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", tenon.tensor(0.5).bernoulli().item)

    def test_more_than_one_element_is_not_known(self):
        with FakeTensorMode():
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", tenon.tensor([1, 2])[0].item)
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", (tenon.tensor(1) + tenon.tensor([1, 2])).tolist)

    def test_a_converted_tensor_is_not_known(self):
        f = FakeTensorMode().from_tensor(tenon.tensor(3))
        self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", f.item)


class Devices(Rules):
    def merged(self, a, b, call=tenon.add):
        with FakeTensorMode():
            return str(call(on(*a), on(*b)).device)

    def test_one_device_is_the_results(self):
        self.assertEqual(self.merged(("cuda", 2), ("cuda", 2)), "cuda:0")
        self.assertEqual(self.merged(("cpu", 2), ("cpu", 2)), "cpu")

    def test_a_number_on_the_cpu_goes_with_any_device(self):
        self.assertEqual([self.merged(("cuda", 2), ("cpu",)), self.merged(("cpu",), ("cuda", 2)), self.merged(("cpu",), ("cuda",)),
                          self.merged(("cpu",), ("cpu", 2))], ["cuda:0", "cuda:0", "cuda:0", "cpu"])

    def test_two_devices_are_refused_in_their_order(self):
        text = "Unhandled FakeTensor Device Propagation for aten.%s, found two different devices %s, %s"
        for a, b in (("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")):
            self.refuses(RuntimeError, text % ("add.Tensor", a, b), lambda: self.merged((a, 2), (b, 2)))  # noqa: B023
            self.refuses(RuntimeError, text % ("mm.default", a, b), lambda: self.merged((a, 2, 2), (b, 2, 2), tenon.mm))  # noqa: B023

    def test_a_number_on_another_device_is_refused(self):
        self.refuses(RuntimeError, "found two different devices cpu, cuda:0", lambda: self.merged(("cpu", 2), ("cuda",)))

    def test_nextafter_takes_no_number_from_the_cpu(self):
        self.refuses(RuntimeError, "found two different devices", lambda: self.merged(("cuda", 2), ("cpu",), tenon.nextafter))

    def test_copy_goes_to_the_device_of_what_is_written(self):
        self.assertEqual(self.merged(("cuda", 2), ("cpu", 2), lambda x, y: x.copy_(y)), "cuda:0")
        self.assertEqual(self.merged(("cpu", 2), ("cuda", 2), lambda x, y: x.copy_(y)), "cpu")

    def test_to_a_device_is_there(self):
        with FakeTensorMode():
            self.assertEqual([str(on("cpu", 2).to(d).device) for d in ("cuda", "cuda:1", "cpu")], ["cuda:0", "cuda:1", "cpu"])
            self.assertEqual(str(on("cpu", 2).to("meta").device), "meta")

    def test_an_index_on_the_cpu_serves_any_device(self):
        with FakeTensorMode():
            x, at = on("cuda", 4, 3), on("cpu", 2, dtype=tenon.int64)
            self.assertEqual((str(x[at].device), tuple(x[at].shape)), ("cuda:0", (2, 3)))

    def test_values_that_are_put_are_on_the_same_device_or_a_number(self):
        with FakeTensorMode():
            x, at = on("cuda", 4), on("cpu", 2, dtype=tenon.int64)
            x[at] = on("cpu")
            x[at] = on("cuda", 2)
            self.refuses(RuntimeError, "Mismatching aten.index_put_.default device between self (cuda:0) and values (cpu)",
                         lambda: x.index_put_((at,), on("cpu", 2)))


class Limited(Rules):
    def test_dtypes_that_few_operators_take_are_refused_as_by_the_cpu(self):
        calls = (lambda x: x.topk(2), lambda x: x.amax(), lambda x: x @ x, lambda x: x.softmax(0), lambda x: x.tril(), lambda x: x.clamp(0, 1),
                 lambda x: tenon.nn.functional.max_pool2d(x[None], 2), lambda x: x.std(), lambda x: x + x, lambda x: x.scatter_add(0, x.long(), x),
                 lambda x: x.float(), lambda x: tenon.cat([x, x]), lambda x: x.t(), lambda x: x.clone())

        def said(call, x):
            try:
                made = call(x)
                return made.dtype, made.shape, made.stride()
            except (RuntimeError, NotImplementedError) as error:
                return type(error), str(error)

        mode = FakeTensorMode()
        for dtype in (tenon.uint16, tenon.uint32, tenon.uint64, tenon.float8_e4m3fn, tenon.float8_e5m2):
            real = tenon.zeros(3, 3).to(dtype)
            for call in calls:
                wanted = said(call, real)
                self.assertEqual(said(call, mode.from_tensor(real)), wanted)
                self.assertEqual(said(call, real.to("meta")), wanted)
        # Another device takes what it takes.
        with mode:
            self.assertEqual(tenon.zeros(3, device="cuda").to(tenon.uint16).amax().dtype, tenon.uint16)


class Factories(Rules):
    def test_they_are_where_they_are_asked_to_be(self):
        with FakeTensorMode():
            made = (tenon.empty(2), tenon.zeros(2), tenon.ones(2, device="cuda"), tenon.full((2,), 1.0, device="cuda:1"),
                    tenon.arange(2, device="cuda"), tenon.rand(2, device="cpu"), tenon.empty_strided((2,), (1,), device="cuda"))
        self.assertTrue(all(isinstance(t, FakeTensor) for t in made))
        self.assertEqual([str(t.device) for t in made], ["cpu", "cpu", "cuda:0", "cuda:1", "cuda:0", "cpu", "cuda:0"])

    def test_those_like_a_tensor_are_where_it_is(self):
        with FakeTensorMode():
            x = on("cuda", 2, 3)
            for make in (tenon.empty_like, tenon.zeros_like, tenon.ones_like, tenon.rand_like, tenon.randn_like):
                self.assertEqual((str(make(x).device), str(make(x, device="cpu").device)), ("cuda:0", "cpu"))
            self.assertEqual(str(x.new_zeros(2).device), "cuda:0")

    def test_a_generator_is_left_alone(self):
        before = tenon.get_rng_state()
        with FakeTensorMode():
            tenon.rand(5), tenon.randn(5), tenon.randperm(5), tenon.ones(5).bernoulli_(), tenon.ones(5).normal_()
            tenon.nn.functional.dropout(tenon.ones(5))
        self.assertTrue(tenon.equal(tenon.get_rng_state(), before))


class Values(Rules):
    def test_a_number_that_is_read_depends_on_values(self):
        x = FakeTensorMode().from_tensor(tenon.ones(()))
        for read in (x.item, lambda: bool(x), lambda: int(x), lambda: float(x), x.tolist, lambda: x.is_nonzero()):
            self.refuses(DataDependentOutputException, "aten._local_scalar_dense.default", read)

    def test_comparisons_to_one_truth_depend_on_values(self):
        x = FakeTensorMode().from_tensor(tenon.ones(2))
        self.refuses(DataDependentOutputException, "aten.equal.default", lambda: tenon.equal(x, x + 1))
        self.refuses(DataDependentOutputException, "aten.allclose.default", lambda: tenon.allclose(x, x))

    def test_sizes_that_depend_on_values_are_named(self):
        x = FakeTensorMode().from_tensor(tenon.ones(2, 3))
        n = x.long().flatten()
        for call, name in ((x.nonzero, "aten.nonzero.default"), (lambda: x[x > 0], "aten.nonzero.default"),
                           (lambda: tenon.masked_select(x, x > 0), "aten.masked_select.default"),
                           (lambda: tenon.unique(x), "aten._unique2.default"),
                           (lambda: tenon.unique_consecutive(x), "aten.unique_consecutive.default"),
                           (lambda: tenon.unique(x, dim=0), "aten.unique_dim.default"),
                           (lambda: tenon.bincount(n), "aten.bincount.default"),
                           (lambda: tenon.repeat_interleave(n), "aten.repeat_interleave.Tensor")):
            self.refuses(DynamicOutputShapeException, name, call)

    def test_putting_where_a_mask_is_needs_no_count(self):
        with FakeTensorMode():
            x = tenon.ones(2, 3)
            x[x > 0] = 1.0
            self.assertEqual(tuple(x.shape), (2, 3))

    def test_a_size_that_is_given_needs_no_values(self):
        n = FakeTensorMode().from_tensor(tenon.ones(3, dtype=tenon.int64))
        self.assertEqual(tuple(tenon.repeat_interleave(n, output_size=7).shape), (7,))

    def test_convolutions_lie_as_the_devices_do(self):
        image, weight = tenon.ones(2, 3, 5, 5), tenon.ones(4, 3, 2, 2)
        for a, b in ((image, weight), (image.contiguous(memory_format=tenon.channels_last), weight),
                     (image, weight.contiguous(memory_format=tenon.channels_last))):
            mode = FakeTensorMode()
            self.assertEqual(conv2d(mode.from_tensor(a), mode.from_tensor(b)).stride(), conv2d(a, b).stride())


class Conversion(Rules):
    def setUp(self):
        self.mode = FakeTensorMode()

    def fake(self, t):
        return self.mode.from_tensor(t)

    def test_one_tensor_has_one_fake(self):
        a, b = tenon.ones(2), tenon.ones(2)
        self.assertIs(self.fake(a), self.fake(a))
        self.assertIsNot(self.fake(a), self.fake(b))

    def test_geometry_dtype_and_bytes_are_kept(self):
        for t in (tenon.ones(4, 6)[::2, 1:], tenon.ones(2, 3).t(), tenon.ones(3).expand(2, 3), tenon.ones(()), tenon.ones(0, 2),
                  tenon.ones(2, 3, 4, 5).contiguous(memory_format=tenon.channels_last), tenon.ones(2, dtype=tenon.complex64)):
            f = self.fake(t)
            self.assertEqual((f.shape, f.stride(), f.storage_offset(), f.dtype, f.untyped_storage().nbytes()),
                             (t.shape, t.stride(), t.storage_offset(), t.dtype, t.untyped_storage().nbytes()))

    def test_shared_storages_stay_shared(self):
        base = tenon.ones(6)
        a, b, other = self.fake(base[:3]), self.fake(base[3:]), self.fake(tenon.ones(6))
        self.assertEqual(a.untyped_storage()._cdata, b.untyped_storage()._cdata)
        self.assertNotEqual(a.untyped_storage()._cdata, other.untyped_storage()._cdata)

    def test_a_view_keeps_its_base(self):
        base = tenon.ones(4, 3)
        view = base[1:]
        f = self.fake(view)
        self.assertTrue(f._is_view())
        self.assertIs(f._base, self.fake(base))
        self.assertEqual(tuple(f._base.shape), (4, 3))

    def test_a_view_counts_writes_with_its_base(self):
        base = tenon.ones(4)
        f = self.fake(base[1:])
        before = f._base._version
        f.add_(1)
        self.assertEqual((f._version - before, f._base._version - before), (1, 1))

    def test_a_view_of_another_dtype_keeps_its_base(self):
        z = tenon.ones(3, dtype=tenon.complex64)
        f = self.fake(tenon.view_as_real(z))
        self.assertIs(f._base, self.fake(z))
        self.assertEqual((tuple(f.shape), f.dtype), ((3, 2), tenon.float32))

    def test_leaves_stay_leaves(self):
        for requires_grad in (False, True):
            f = self.fake(tenon.ones(2, requires_grad=requires_grad))
            self.assertEqual((f.is_leaf, f.requires_grad, f.grad_fn), (True, requires_grad, None))

    def test_a_gradient_comes_along(self):
        x = tenon.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        f = self.fake(x)
        self.assertIsInstance(f.grad, FakeTensor)
        self.assertEqual(tuple(f.grad.shape), (2,))

    def test_a_result_has_a_history_that_cannot_be_run(self):
        x = tenon.ones(2, requires_grad=True)
        f = self.fake(x * 2)
        self.assertEqual((f.is_leaf, f.requires_grad), (False, True))
        self.refuses(RuntimeError, "Internal error: Tried to backward() through example input", f.sum().backward)

    def test_a_view_of_what_was_written_and_then_made_a_leaf_goes_back_to_it(self):
        x = tenon.zeros(6)
        view = x[1:]
        x.mul_(2)
        x.requires_grad_()
        fake = FakeTensorMode().from_tensor(view)
        self.assertEqual((fake.requires_grad, fake.is_leaf, fake._base.is_leaf), (True, False, True))
        (fake * 2).sum().backward()
        self.assertEqual(fake._base.grad.shape, (6,))
        self.assertEqual((view.is_leaf, view.requires_grad), (False, True))

    def test_a_leaf_that_is_a_view_stays_one(self):
        x = tenon.ones(4)[1:].requires_grad_()
        f = self.fake(x)
        self.assertEqual((f.is_leaf, f.requires_grad, f._is_view(), f._base.requires_grad), (True, True, True, False))

    def test_a_view_without_a_gradient_is_not_written_where_gradients_are(self):
        x = tenon.ones(4, requires_grad=True) * 1
        with tenon.no_grad():
            view = x[1:]
        self.refuses(RuntimeError, "in no_grad mode", lambda: self.fake(view).mul_(2))

    def test_one_of_several_views_is_not_written(self):
        x = tenon.ones(4, requires_grad=True) * 1
        view = x.unbind()[0]
        self.refuses(RuntimeError, "is a view and is being modified inplace", lambda: self.fake(view).mul_(2))

    def test_parameters_stay_parameters(self):
        f = self.fake(tenon.nn.Parameter(tenon.ones(2)))
        self.assertIsInstance(f, tenon.nn.Parameter)
        self.assertIsInstance(f, FakeTensor)
        self.assertTrue(f.requires_grad)

    def test_an_inference_tensor_stays_one(self):
        with tenon.inference_mode():
            x = tenon.ones(2)
            self.assertTrue(self.fake(x).is_inference())


if __name__ == "__main__":
    harness.main()
