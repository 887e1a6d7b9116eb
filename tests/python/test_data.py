# SPDX-License-Identifier: MIT
"""Tensors from Python data and back: tensor(), item(), tolist(), storages, copies and pickles."""

import copy
import gc
import pickle
import unittest
import weakref

import golden_check
import harness
import tenon

# Where Tenon differs on purpose.
KNOWN = {
    "torch.tensor(np.array(['a']))": "there are no uint16, uint32 and uint64 to name",
    "torch.tensor(np.array([object()]))": "the same",
    "torch.tensor([np.array([1, 2]), np.array([3, 4])])": "it is not slow here, so nothing warns",
    "len(v.storage())": "typed storages do not warn",
    "v.storage().tolist()": "the same",
    "v.storage().dtype == torch.float32": "the same",
    "v.__dlpack_device__()": "plain integers",
}


class Data(unittest.TestCase):
    def test_expressions_give_what_pytorch_gives(self):
        golden_check.run(self, "data", KNOWN)

    def test_lists_of_any_depth(self):
        deep = 1.5
        for unused in range(64):
            deep = [deep]
        self.assertEqual(tenon.tensor(deep).dim(), 64)
        with self.assertRaises(ValueError):
            tenon.tensor([deep])
        endless = []
        endless.append(endless)
        with self.assertRaises(ValueError):
            tenon.tensor(endless)

    def test_items_that_raise_are_reported_and_nothing_leaks(self):
        class Bad:
            def __float__(self):
                raise KeyError("no")

        for unused in range(100):
            with self.assertRaises(KeyError):
                tenon.tensor([1.0, Bad()], dtype=tenon.float32)

    def test_what_has_a_length_but_no_first_item_has_no_shape(self):
        class Table(dict):  # as a table whose columns have names
            def __init__(self, error):
                super().__init__(a=1)
                self.error = error

            def __getitem__(self, key):
                raise self.error

        class Rows:
            def __init__(self, error):
                self.error = error

            def __len__(self):
                return 3

            def __getitem__(self, key):
                raise self.error

        for error in (KeyError(0), IndexError("no"), RuntimeError("no")):
            with self.assertRaisesRegex(ValueError, "^could not determine the shape of object type 'Rows'$"):
                tenon.tensor(Rows(error))
        with self.assertRaises(KeyboardInterrupt):
            tenon.tensor(Rows(KeyboardInterrupt()))
        with self.assertRaisesRegex(RuntimeError, "Could not infer dtype of Table"):
            tenon.tensor(Table(KeyError(0)))

    def test_a_list_that_changes_while_it_is_read_does_no_harm(self):
        data = []

        class Sly(float):
            def __float__(self):
                data.clear()
                return 1.0

        data.extend([2.0, Sly(), 3.0, 4.0])
        try:
            tenon.tensor(data, dtype=tenon.float32)
        except (IndexError, ValueError):
            pass

    def test_default_dtype_counts(self):
        tenon.set_default_dtype(tenon.float64)
        try:
            self.assertEqual(tenon.tensor(1.5).dtype, tenon.float64)
            self.assertEqual(tenon.tensor([1j]).dtype, tenon.complex128)
        finally:
            tenon.set_default_dtype(tenon.float32)


class Storage(unittest.TestCase):
    def test_a_storage_keeps_its_bytes(self):
        storage = tenon.arange(4.).untyped_storage()
        gc.collect()
        self.assertEqual(storage.tensor_of(tenon.float32).tolist(), [0, 1, 2, 3])
        self.assertEqual(len(storage), 16)

    def test_tensors_over_one_storage_share_it(self):
        x = tenon.arange(6.)
        y = tenon.zeros(0).set_(x.untyped_storage(), 2, (2, 2), (2, 1))
        y[0, 0] = 9
        self.assertEqual(x.tolist(), [0, 1, 9, 3, 4, 5])
        self.assertIsNone(y._base)

    def test_a_slice_of_a_storage_is_the_same_memory_and_keeps_it(self):
        x = tenon.arange(6.)
        part = x.untyped_storage()[8:16]
        y = tenon.zeros(0).set_(part)
        y[0] = 9
        self.assertEqual(x.tolist(), [0, 1, 9, 3, 4, 5])
        self.assertEqual((len(part), y.tolist()), (8, [9, 3]))
        del x
        gc.collect()
        tenon.zeros(6)
        self.assertEqual((y.tolist(), copy.deepcopy(part).tolist()), ([9, 3], part.tolist()))

    def test_bytes_of_a_storage_are_set_by_number_and_by_slice(self):
        s = tenon.arange(6, dtype=tenon.uint8).untyped_storage()
        s[1:3] = 9
        s[-1] = 300
        self.assertEqual(s.tolist(), [0, 9, 9, 3, 4, 44])

    def test_what_reaches_beyond_is_refused(self):
        x = tenon.arange(6.)
        y = tenon.ones(1)
        for args in ((5, (2,), (1,)), (0, (7,), (1,)), (-1, (1,), (1,)), (0, (2,), (1 << 60,)),
                     (0, (1 << 40, 1 << 40), (1, 1))):
            with self.assertRaises(Exception):
                y.set_(x.untyped_storage(), *args)
        self.assertEqual(y.tolist(), [1])

    def test_shared_memory_is_seen_by_forked_processes(self):
        import os

        x = tenon.zeros(3)
        self.assertFalse(x.is_shared())
        self.assertIs(x.share_memory_(), x)
        self.assertTrue(x.is_shared() and x.untyped_storage().is_shared())
        child = os.fork()
        if child == 0:
            x[1] = 5
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(x.tolist(), [0, 5, 0])

    def test_a_storage_can_be_emptied_and_filled_again(self):
        x = tenon.arange(1000.)
        x.untyped_storage().resize_(0)
        self.assertEqual(x.untyped_storage().nbytes(), 0)
        x.untyped_storage().resize_(4000)
        self.assertEqual(x.untyped_storage().nbytes(), 4000)
        alone = tenon.UntypedStorage(4)
        alone.resize_(10)
        self.assertEqual(len(alone), 10)

    def test_typed_storages(self):
        s = tenon.FloatStorage([1, 2, 3])
        self.assertEqual((len(s), s.dtype, s.nbytes()), (3, tenon.float32, 12))
        s[1] = 5
        self.assertEqual(s.tolist(), [1, 5, 3])
        self.assertEqual(tenon.LongStorage(4).size(), 4)
        self.assertEqual(s.type(), "torch.FloatStorage")


class Copies(unittest.TestCase):
    def test_pickles_keep_bytes_strides_and_requires_grad(self):
        for t in (tenon.arange(12.).reshape(3, 4).t(), tenon.tensor(2.5), tenon.zeros(0, 3),
                  tenon.tensor([1.5, float("nan")], dtype=tenon.bfloat16), tenon.tensor([True, False]),
                  tenon.tensor([1 + 2j]), tenon.ones(2, requires_grad=True),
                  tenon.arange(10)[3:7:2]):
            for protocol in (0, 2, 4):
                u = pickle.loads(pickle.dumps(t, protocol))
                self.assertEqual((u.dtype, u.shape, u.stride(), u.requires_grad),
                                 (t.dtype, t.shape, t.stride(), t.requires_grad))
                self.assertEqual(repr(u), repr(t))

    def test_attributes_travel_with_a_pickle(self):
        t = tenon.ones(2)
        t.note = "kept"
        self.assertEqual(pickle.loads(pickle.dumps(t)).note, "kept")
        self.assertEqual(copy.deepcopy(t).note, "kept")

    def test_deepcopy_has_memory_of_its_own_and_keeps_sharing(self):
        x = tenon.arange(6.)
        pair = copy.deepcopy([x, x[2:], x])
        pair[1][0] = 9
        self.assertEqual(pair[0].tolist(), [0, 1, 9, 3, 4, 5])
        self.assertEqual(x.tolist(), [0, 1, 2, 3, 4, 5])
        self.assertIs(pair[0], pair[2])

    def test_deepcopy_takes_the_gradient_along_and_refuses_results(self):
        x = tenon.ones(2, requires_grad=True)
        (x * x).sum().backward()
        y = copy.deepcopy(x)
        self.assertEqual(y.grad.tolist(), [2, 2])
        self.assertIsNot(y.grad, x.grad)
        self.assertTrue(y.requires_grad and y.is_leaf)
        with self.assertRaisesRegex(RuntimeError, "Only Tensors created explicitly by the user"):
            copy.deepcopy(x * 2)

    def test_copy_is_another_object_over_the_same_memory(self):
        x = tenon.arange(3.)
        y = copy.copy(x)
        self.assertIsNot(x, y)
        self.assertEqual(x.tolist(), y.tolist())

    def test_subclasses_stay_subclasses(self):
        class Mine(tenon.Tensor):
            pass

        t = tenon.arange(3.).as_subclass(Mine)
        self.assertIs(type(copy.deepcopy(t)), Mine)
        self.assertEqual(copy.deepcopy(t).tolist(), [0, 1, 2])


class Life(unittest.TestCase):
    def test_wrong_pickles_are_refused(self):
        from tenon import _utils

        storage = tenon.arange(4.).storage()
        with self.assertRaises(Exception):
            _utils._rebuild_tensor_v2(storage, 0, (100,), (1,), False, None)
        with self.assertRaises(Exception):
            _utils._rebuild_tensor_v2(storage, 0, (2,), (-1,), False, None)

    def test_weak_references_end_with_the_tensor(self):
        x = tenon.ones(3)
        r = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNone(r())


if __name__ == "__main__":
    harness.main()
