# SPDX-License-Identifier: MIT
"""Tensors of uint16, uint32, uint64 and float8: what PyTorch says about each expression of limited_cases.py, files, exchange,
and that operators which do not know these dtypes refuse them."""
import copy
import io
import json
import os
import pickle
import unittest

import harness
import numpy
import tenon
from limited_cases import results
from tenon import safetensors

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
DTYPES = [getattr(tenon, name) for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                                            "float8_e5m2fnuz")]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.contiguous().view(tenon.uint8).tolist() == b.view(tenon.uint8).tolist()


class Expressions(unittest.TestCase):
    def test_each_gives_what_pytorch_gives(self):
        with open(os.path.join(GOLDEN, "limited.json")) as file:
            wanted = json.load(file)
        got = list(results(tenon, numpy))
        self.assertEqual(len(got), len(wanted))
        for ours, theirs in zip(got, wanted):
            with self.subTest(dtype=theirs[0], expression=theirs[1]):
                self.assertEqual(list(ours), theirs)


class Exchange(unittest.TestCase):
    def test_a_file_of_pytorch_is_read(self):
        state = tenon.load(os.path.join(GOLDEN, "limited.pt"))
        self.assertTrue(same(state["a"], tenon.tensor([1, 2], dtype=tenon.uint16)))
        self.assertTrue(same(state["b"], tenon.tensor([1.5, -3]).to(tenon.float8_e4m3fn)))
        self.assertEqual(state["c"].tolist(), [2 ** 63 + 1])

    def test_files_pickles_and_copies_keep_every_bit(self):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype):
                x = tenon.tensor([[1, 2, 3], [4, 5, 6]]).to(dtype)[:, 1:]
                file = io.BytesIO()
                tenon.save({"x": x}, file)
                file.seek(0)
                for y in (tenon.load(file)["x"], pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
                    self.assertTrue(same(y.contiguous(), x))
        names = {str(d): tenon.ones(3).to(d) for d in DTYPES[:5]}
        for name, x in safetensors.load(safetensors.save(names)).items():
            self.assertTrue(same(x, names[name]))

    def test_numpy_and_dlpack_share_memory(self):
        for dtype in DTYPES[:3]:
            x = tenon.tensor([1, 2, 3], dtype=dtype)
            a = x.numpy()
            a[1] = 9
            self.assertEqual((str(a.dtype), x.tolist()), (str(dtype).rsplit(".", 1)[-1], [1, 9, 3]))
            self.assertEqual(tenon.from_numpy(a).data_ptr(), x.data_ptr())
        for dtype in DTYPES:
            x = tenon.tensor([1, 2, 3]).to(dtype)
            y = tenon.from_dlpack(x)
            self.assertEqual((y.dtype, y.data_ptr()), (dtype, x.data_ptr()))


class Refusals(unittest.TestCase):
    def test_what_does_not_take_the_dtype_names_it(self):
        for dtype in DTYPES:
            x = tenon.ones(2, 2).to(dtype)
            for call in (lambda: x[0] @ x[0], lambda: x.cummax(0), lambda: x.norm(), lambda: tenon.linalg.inv(x),
                         lambda: tenon.nn.functional.avg_pool2d(x[None], 2), lambda: x.argmin(), lambda: x.tril(),
                         lambda: tenon.ones(2, 2).softmax(0, dtype=dtype), lambda: x.index_add(0, tenon.tensor([0]), x[:1])):
                with self.assertRaises((NotImplementedError, RuntimeError)):
                    call()

    def test_the_same_is_refused_without_data(self):
        for dtype in DTYPES:
            x = tenon.empty(2, 2, dtype=dtype, device="meta")
            self.assertEqual(x.t().contiguous().dtype, dtype)
            self.assertEqual((x == x).dtype, tenon.bool)
            for call in (lambda: x[0] @ x[0], lambda: x + x, lambda: x.cummax(0)):
                with self.assertRaises((NotImplementedError, RuntimeError)):
                    call()

    def test_a_gradient_goes_through_the_conversion(self):
        x = tenon.tensor([1.0, -2.0], requires_grad=True)
        (x.to(tenon.float8_e5m2).float() * tenon.tensor([3.0, 4.0])).sum().backward()
        self.assertEqual(x.grad.tolist(), [3.0, 4.0])

    def test_a_gradient_goes_through_products_of_float8(self):
        for dtype in DTYPES[3:]:
            x = tenon.tensor([[1.0, -2.0], [0.5, 3.0]]).to(dtype).requires_grad_()
            y = tenon.tensor([[1.5, 2.0], [1.0, -4.0]]).to(dtype)
            (x @ y).float().sum().backward()
            self.assertEqual((x.grad.dtype, x.grad.float().tolist()), (dtype, [[3.5, -3], [3.5, -3]]))
            x.grad = None
            (x * y).float().sum().backward()
            self.assertTrue(same(x.grad, y))
            made = tenon.mm(tenon.empty(2, 3, dtype=dtype, device="meta"), tenon.empty(3, 4, dtype=dtype, device="meta"))
            self.assertEqual((made.dtype, made.shape), (dtype, (2, 4)))

    def test_a_product_with_a_number_is_rounded_once(self):
        x = tenon.tensor([1.5, -2.0, 0.25])
        for dtype in DTYPES[3:]:
            wanted = (x * 2.3).to(dtype)
            for made in (x.to(dtype) * 2.3, x.to(dtype) * tenon.tensor(2.3), x.to(dtype).mul_(2.3), tenon._foreach_mul([x.to(dtype)], 2.3)[0]):
                self.assertTrue(same(made, wanted))
            self.assertEqual((tenon.empty(2, dtype=dtype, device="meta") * 2).dtype, dtype)

    def test_numbers_that_go_to_one_place_are_added(self):
        for dtype in DTYPES:
            for n in (1, 40):
                x, index = tenon.zeros(3, n, dtype=dtype), tenon.tensor([1, 1, 2])
                values = tenon.tensor([2.0, 1.5 if dtype.is_floating_point else 1, 3]).to(dtype)[:, None].expand(3, n)
                total = 3.5 if dtype.is_floating_point else 3
                self.assertEqual(x.index_put((index,), values, accumulate=True).float()[:, -1].tolist(), [0, total, 3])
                self.assertEqual(x[:, -1].clone().put_(index, values[:, 0], accumulate=True).float().tolist(), [0, total, 3])

    def test_data_may_change_its_dtype(self):
        x = tenon.ones(2)
        x.data = tenon.tensor([1, 2], dtype=tenon.uint16)
        with self.assertRaises(NotImplementedError):
            x + x
        x.data = tenon.ones(2)
        self.assertEqual((x + x).tolist(), [2.0, 2.0])


if __name__ == "__main__":
    harness.main()
