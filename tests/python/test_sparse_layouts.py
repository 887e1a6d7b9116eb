# SPDX-License-Identifier: MIT
"""Sparse matrices by compressed rows and columns: what PyTorch says about each expression of sparse_layouts_cases.py, and
what goes beyond it."""
import copy
import io
import json
import os
import pickle
import unittest
import warnings

import harness
import tenon
from sparse_layouts_cases import results

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
A = tenon.tensor([[0.0, 2, 0, 0], [3, 0, 0, 4], [0, 0, 0, 0], [0, 0, 5, 0]])


def layouts():
    return [A.to_sparse_csr(), A.to_sparse_csc(), A.to_sparse_bsr((2, 2)), A.to_sparse_bsc((2, 2))]


class Expressions(unittest.TestCase):
    def test_each_gives_what_pytorch_gives(self):
        with open(os.path.join(GOLDEN, "sparse_layouts.json")) as file:
            wanted = json.load(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = results(tenon)
        self.assertEqual(len(got), len(wanted))
        for ours, theirs in zip(got, wanted):
            with self.subTest(expression=theirs[0]):
                self.assertEqual(ours, theirs)


class Layouts(unittest.TestCase):
    def test_files_of_pytorch_are_read_and_ours_are_read_again(self):
        back = io.BytesIO()
        tenon.save(layouts(), back)
        back.seek(0)
        for read in (tenon.load(os.path.join(GOLDEN, "sparse_layouts.pt")), tenon.load(back)):
            self.assertEqual([s.layout for s in read], [s.layout for s in layouts()])
            for s, mine in zip(read, layouts()):
                self.assertEqual(s.to_dense().tolist(), A.tolist())
                self.assertEqual([p.tolist() for p in s._parts], [p.tolist() for p in mine._parts])

    def test_old_files_whose_places_come_after_the_objects(self):
        file = io.BytesIO()
        tenon.save([A.to_sparse()] + layouts(), file, _use_new_zipfile_serialization=False)
        for restricted in (True, False):
            file.seek(0)
            for s in tenon.load(file, weights_only=restricted):
                self.assertEqual(s.to_dense().tolist(), A.tolist())
        self.assertEqual(tenon._utils._unchecked, {})
        data = file.getvalue()
        place = data.rindex(tenon.tensor([0, 1, 2, 3, 4]).numpy().tobytes())  # the columns of the CSC one
        with self.assertRaises(RuntimeError):
            tenon.load(io.BytesIO(data[:place] + bytes([9]) + data[place + 1:]))
        self.assertEqual(tenon._utils._unchecked, {})

    def test_pickles_and_copies(self):
        for s in layouts():
            for made in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), s.clone()):
                self.assertEqual((made.layout, made.to_dense().tolist()), (s.layout, A.tolist()))
            made.values().zero_()
            self.assertEqual(s.to_dense().tolist(), A.tolist())

    def test_products_of_every_layout(self):
        x = tenon.arange(8.0).reshape(4, 2)
        for s in layouts():
            self.assertEqual((s @ x).tolist(), (A @ x).tolist())
            self.assertEqual((x.t() @ s).tolist(), (x.t() @ A).tolist())
            self.assertEqual((s.t() @ x).tolist(), (A.t() @ x).tolist())
            self.assertEqual((s * A).to_dense().tolist(), (A * A).tolist())
            self.assertEqual((s @ s).to_dense().tolist(), (A @ A).tolist())

    def test_every_layout_becomes_every_other(self):
        for s in layouts():
            for layout in (tenon.sparse_bsr, tenon.sparse_bsc):
                for block in ((1, 1), (2, 1), (4, 2), 2):
                    made = s.to_sparse(layout=layout, blocksize=block)
                    self.assertEqual((made.layout, made.to_dense().tolist()), (layout, A.tolist()))
            if not s._blocks:
                for layout in (tenon.sparse_csr, tenon.sparse_csc, tenon.sparse_coo, tenon.strided):
                    self.assertEqual(s.to_sparse(layout=layout).to_dense().tolist(), A.tolist())

    def test_gradients_reach_the_values_whatever_the_layout(self):
        x = tenon.arange(8.0).reshape(4, 2)
        dense = A.clone().requires_grad_()
        (dense @ x).pow(2).sum().backward()
        for s in layouts():
            s.requires_grad_()
            (s @ x).pow(2).sum().backward()
            there = s.grad.detach().clone()
            there.values().fill_(1)
            self.assertEqual((s.grad.layout, s.grad.to_dense().tolist()), (s.layout, (dense.grad * there.to_dense()).tolist()))
            s.grad = None
            self.assertIsNone(s.values().grad)

    def test_no_places_and_no_rows(self):
        for size in ((0, 3), (3, 0), (2, 2)):
            x = tenon.zeros(size)
            for s in (x.to_sparse_csr(), x.to_sparse_csc()):
                self.assertEqual((s._nnz(), tuple(s.to_dense().shape)), (0, size))
                self.assertEqual(tuple((s @ tenon.ones(size[1], 2)).shape), (size[0], 2))
                self.assertEqual(tuple(s.t().to_sparse().shape), size[::-1])

    def test_places_are_always_checked(self):
        for crow, col in (([0, 1, 3], [0, 0, 2]), ([0, 1, 3], [0, -1, 1]), ([0, 4, 3], [0, 0, 1]), ([0, 1, 4], [0, 0, 1]),
                          ([-1, 1, 3], [0, 0, 1])):
            with self.assertRaises(RuntimeError):
                tenon.sparse_csr_tensor(crow, col, [1.0, 2, 3], (2, 2))
            with self.assertRaises(RuntimeError):
                tenon.sparse_csc_tensor(crow, col, [1.0, 2, 3], (2, 2))


class Writes(unittest.TestCase):
    WRITES = (("mul_", 3), ("div_", 4), ("neg_",), ("sin_",), ("relu_",), ("zero_",), ("__imul__", 2))

    def test_each_reaches_the_tensor_whatever_its_layout(self):
        for at in range(4):
            for name, *rest in self.WRITES:
                s, dense = layouts()[at], A.clone()
                with self.subTest(layout=s.layout, write=name):
                    version = s._version
                    self.assertIs(getattr(s, name)(*rest), s)
                    getattr(dense, name)(*rest)
                    self.assertEqual(s.to_dense().tolist(), dense.tolist())
                    self.assertGreater(s._version, version)

    def test_with_another_tensor(self):
        for s, other in zip(layouts(), layouts()):
            s += other
            self.assertEqual(s.to_dense().tolist(), (A + A).tolist())
            s.sub_(other).mul_(other)
            self.assertEqual(s.to_dense().tolist(), (A * A).tolist())

    def test_values_alone_are_filled(self):
        s = A.to_sparse_csr()
        self.assertIs(s.fill_(7), s)
        self.assertEqual(s.to_dense().tolist(), (7 * (A != 0)).float().tolist())

    def test_history(self):
        leaf = A.to_sparse_csr().requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"):
            leaf.mul_(2)
        self.assertEqual(leaf.to_dense().tolist(), A.tolist())
        s = leaf * 2
        s.mul_(3)
        s.to_dense().sum().backward()
        self.assertEqual(leaf.grad.values().tolist(), [6.0] * 4)
        with tenon.no_grad():
            leaf.mul_(2)
        self.assertTrue(leaf.requires_grad)
        self.assertEqual(leaf.to_dense().tolist(), (A * 2).tolist())

    def test_a_result_that_does_not_fit_is_refused(self):
        s = A.to_sparse_csr().to(tenon.int64)
        with self.assertRaisesRegex(RuntimeError, "Can't convert result type Float to output Long"):
            s.mul_(0.5)
        self.assertEqual(s.to_dense().tolist(), A.long().tolist())


class WithoutElements(unittest.TestCase):
    """`zeros` and its kind with a sparse layout, and tensors that get other sizes: results and texts are PyTorch 2.11's."""

    def test_makers_take_a_sparse_layout(self):
        like = tenon.eye(2, dtype=tenon.float64)
        for made, sizes in ((tenon.zeros(2, 3, layout=tenon.sparse_coo), (2, 3)), (tenon.empty((2, 3), layout=tenon.sparse_coo), (2, 3)),
                            (tenon.zeros_like(like, layout=tenon.sparse_coo), (2, 2)), (like.new_zeros(3, layout=tenon.sparse_coo), (3,)),
                            (like.to_sparse().new_zeros(3), (3,)), (like.to_sparse().new_empty((3, 1)), (3, 1))):
            self.assertEqual((made.layout, tuple(made.shape), made._nnz(), made.is_coalesced()), (tenon.sparse_coo, sizes, 0, True))
        self.assertEqual(tenon.zeros_like(like, layout=tenon.sparse_coo).dtype, tenon.float64)
        self.assertTrue(tenon.zeros(2, layout=tenon.sparse_coo, requires_grad=True).requires_grad)
        rows = tenon.zeros(2, 3, 4, layout=tenon.sparse_csr, dtype=tenon.int32)
        self.assertEqual((rows.crow_indices().tolist(), tuple(rows.values().shape), rows.dtype), ([[0] * 4] * 2, (2, 0), tenon.int32))
        self.assertEqual(tenon.zeros(2, 3, layout=tenon.sparse_csc).ccol_indices().tolist(), [0] * 4)
        self.assertIs(tenon.zeros(2, layout=tenon.strided).layout, tenon.strided)

    def test_what_has_elements_has_no_sparse_layout(self):
        for text, call in (("full(...) is not implemented for sparse layout", lambda: tenon.ones(2, layout=tenon.sparse_coo)),
                           ("torch.zeros: Only batched sparse compressed (non-block) tensors are supported, but got size [3]",
                            lambda: tenon.zeros(3, layout=tenon.sparse_csr)),
                           ("zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got SparseBsr",
                            lambda: tenon.zeros(3, 4, layout=tenon.sparse_bsr)),
                           ("layout Sparse does not match layout of out parameter (Strided)",
                            lambda: tenon.zeros(2, layout=tenon.sparse_coo, out=tenon.zeros(2)))):
            with self.assertRaises(RuntimeError) as caught:
                call()
            self.assertEqual(str(caught.exception), text)
        with self.assertRaises(NotImplementedError):
            tenon.arange(3, layout=tenon.sparse_coo)

    def test_sizes_grow_in_place(self):
        x = tenon.eye(3).to_sparse()
        self.assertIs(x.sparse_resize_((4, 5), 2, 0), x)
        self.assertEqual((tuple(x.shape), x._nnz(), x.is_coalesced()), ((4, 5), 3, True))
        self.assertEqual(x.to_dense()[:3, :3].tolist(), tenon.eye(3).tolist())
        rows = tenon.eye(2).to_sparse(1).sparse_resize_((3, 4), 1, 1)
        self.assertEqual(rows.to_dense().tolist(), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
        x.sparse_resize_and_clear_((3, 2), 1, 1)
        self.assertEqual((tuple(x.shape), x.sparse_dim(), x.dense_dim(), x._nnz()), ((3, 2), 1, 1, 0))
        self.assertEqual(tuple(tenon.sparse_coo_tensor((2, 3)).sparse_resize_((4, 5, 1), 2, 1).values().shape), (0, 1))

    def test_elements_are_not_lost_by_other_sizes(self):
        for text, sizes in (("shrinking the size of sparse dimensions (from [3, 3] to [2, 2]) on a non-empty sparse tensor is not supported.", ((2, 2), 2, 0)),
                            ("changing the number of dense dimensions (from 0 to 1) on a non-empty sparse tensor is not supported.", ((3, 3, 2), 2, 1)),
                            ("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = 3, sparse_dim = 2, dense_dim = 0", ((3, 3, 2), 2, 0))):
            x = tenon.eye(3).to_sparse()
            with self.assertRaises(RuntimeError) as caught:
                x.sparse_resize_(*sizes)
            self.assertEqual(str(caught.exception).split("\n")[0], text)
            self.assertEqual(x.to_dense().tolist(), tenon.eye(3).tolist())


if __name__ == "__main__":
    harness.main()
