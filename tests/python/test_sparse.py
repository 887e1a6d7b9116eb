# SPDX-License-Identifier: MIT
"""Sparse tensors. Values are those of dense arithmetic; texts and forms were seen to be those of PyTorch 2.11."""
import copy
import functools
import io
import pickle
import unittest
import warnings

import harness
import tenon

I = tenon.tensor([[0, 1, 1], [2, 0, 2]])
V = tenon.tensor([3.0, 4.0, 5.0])
DENSE = tenon.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
D = tenon.arange(12.0).reshape(3, 4)
E = tenon.arange(6.0).reshape(2, 3)


def sample(**options):
    return tenon.sparse_coo_tensor(I, V, (2, 3), **options)


class Case(unittest.TestCase):
    def same(self, a, b):
        a = a.to_dense() if a.is_sparse or a.is_sparse_csr else a
        self.assertEqual(a.tolist(), b.tolist())


class Making(Case):
    def test_a_gradient_that_is_summed_does_not_grow_for_ever(self):
        w = tenon.zeros(20, 4, requires_grad=True)
        counts = []
        for _ in range(6):
            tenon.nn.functional.embedding(tenon.arange(20), w, sparse=True).sum().backward()
            counts.append(w.grad._nnz())
        self.assertEqual(counts, [20, 40, 60, 80, 20, 40])  # as PyTorch's
        self.assertFalse(w.grad.is_coalesced())
        self.assertEqual(w.grad.to_dense().unique().tolist(), [6])

    def test_parts_and_metadata(self):
        s = sample()
        self.assertEqual((tuple(s.shape), s.dtype, s.layout, s.is_sparse, s.is_coalesced(), s._nnz(), s.sparse_dim(),
                          s.dense_dim(), s.type()),
                         ((2, 3), tenon.float32, tenon.sparse_coo, True, False, 3, 2, 0, "torch.sparse.FloatTensor"))
        with self.assertRaisesRegex(RuntimeError, "Cannot get indices on an uncoalesced tensor"):
            s.indices()
        self.assertEqual(s.coalesce().indices().tolist(), I.tolist())
        self.assertTrue(isinstance(s, tenon.Tensor) and tenon.is_tensor(s))
        self.same(s, DENSE)

    def test_sizes_values_and_dtypes_are_inferred(self):
        self.assertEqual(tuple(tenon.sparse_coo_tensor([[0, 2], [1, 3]], [1.0, 2.0]).shape), (3, 4))
        self.assertEqual(tenon.sparse_coo_tensor([[0], [1]], tenon.ones(1), (2, 2), dtype=tenon.int64).dtype, tenon.int64)
        self.assertEqual(tenon.sparse_coo_tensor(size=(2, 3))._nnz(), 0)
        mixed = tenon.sparse_coo_tensor([[0, 2]], tenon.ones(2, 2), (3, 2))
        self.assertEqual((mixed.sparse_dim(), mixed.dense_dim()), (1, 1))
        self.same(mixed, tenon.tensor([[1.0, 1], [0, 0], [1, 1]]))
        self.same(tenon.sparse.FloatTensor(I, V, tenon.Size([2, 3])), DENSE)
        self.assertEqual(tenon.sparse.LongTensor(2, 3).dtype, tenon.int64)

    def test_each_form_of_the_older_constructors_warns_once(self):
        tenon.sparse._deprecated.cache_clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                tenon.sparse.FloatTensor(I, V, tenon.Size([2, 3]))
                tenon.sparse.FloatTensor(I, V)
                tenon.sparse.FloatTensor(2, 3)
                tenon.sparse.DoubleTensor()
        text = "torch.sparse.SparseTensor(%s) is deprecated.  Please use torch.sparse_coo_tensor(%s)."
        self.assertEqual([str(w.message) for w in told], [
            text % ("indices, values, shape, *, device=", "indices, values, shape, dtype=, device="),
            text % ("indices, values, *, device=", "indices, values, dtype=, device="),
            text % ("shape, *, device=", "shape, dtype=, device="), text % ("", "(0,), dtype=")])
        self.assertEqual({w.filename for w in told}, {__file__})

    def test_what_makes_no_tensor_is_refused(self):
        for text, args in (("same nnz, but got nnz from indices: 2, nnz from values: 3", ([[0, 1], [1, 3]], [1.0] * 3, (3, 4))),
                           ("len\\(size\\) = 1, sparse_dim = 2, dense_dim = 0", ([[0, 1], [1, 3]], [1.0, 2], (3,))),
                           ("for dim 0, size is 3 but found index 5", ([[0, 5], [1, 3]], [1.0, 2], (3, 4))),
                           ("found negative index -1 for dim 0", ([[0, -1], [1, 3]], [1.0, 2], (3, 4))),
                           ("0 <= crow_indices.* is not satisfied", None)):
            with self.assertRaisesRegex(RuntimeError, text):
                tenon.sparse_coo_tensor(*args) if args else tenon.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2))

    def test_new_makes_sparse_tensors_of_sparse_ones(self):
        given = tenon.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (4,))
        places, values = tenon.tensor([[1, 3]]), tenon.tensor([5.0, 6.0], dtype=tenon.float64)
        for made, size in ((given.new(places, values, given.size()), 4), (given.new(places, values, [6]), 6),
                           (given.new(places, values), 4)):
            self.assertEqual((made.layout, made.dtype, made.to_dense().tolist()),
                             (tenon.sparse_coo, tenon.float64, [0.0, 5.0, 0.0, 6.0, 0.0, 0.0][:size]))
        for made, size in ((given.new(), (0,)), (given.new(3, 2), (3, 2)), (given.new(given.size()), (4,)),
                           (given.new().resize_as_(given), (4,))):
            self.assertEqual((made.layout, made.dtype, tuple(made.shape), made._nnz()), (tenon.sparse_coo, tenon.float32, size, 0))
        self.assertRaisesRegex(TypeError, "SparseTensor.new\\(sequence\\) only accepts sizes", given.new, [1, 2])
        self.assertRaisesRegex(RuntimeError, "indices must be an int64 tensor", given.new, places.int(), values)
        self.assertRaisesRegex(TypeError, "invalid combination", given.new, places)

    def test_places_that_are_named_twice_are_added(self):
        s = tenon.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
        self.same(s, tenon.tensor([[0.0, 3], [3, 0]]))
        self.assertEqual((s.coalesce().values().tolist(), s.coalesce()._nnz()), ([3, 3], 2))

    def test_dense_tensors_become_sparse(self):
        s = DENSE.to_sparse()
        self.assertTrue(s.is_coalesced())
        self.assertEqual((s.indices().tolist(), s.values().tolist()), (I.tolist(), V.tolist()))
        self.same(tenon.ones(2, 2, 2).to_sparse(1), tenon.ones(2, 2, 2))
        with self.assertRaisesRegex(RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"):
            D.coalesce()

    def test_text(self):
        self.assertEqual(repr(sample()), "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n"
                         "       values=tensor([3., 4., 5.]),\n       size=(2, 3), nnz=3, layout=tenon.sparse_coo)")
        self.assertEqual(repr(tenon.sparse_coo_tensor(size=(2, 3))), "tensor(indices=tensor([], size=(2, 0)),\n"
                         "       values=tensor([], size=(0,)),\n       size=(2, 3), nnz=0, layout=tenon.sparse_coo)")

    def test_rows_compressed(self):
        c = tenon.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], size=(2, 3))
        self.same(c, DENSE)
        self.same(c @ D, DENSE @ D)
        again = c.to_sparse().to_sparse_csr()
        self.assertEqual((again.crow_indices().tolist(), again.col_indices().tolist()), ([0, 1, 3], [2, 0, 2]))
        self.assertEqual((c.layout, c.is_sparse_csr, c.is_sparse, c._nnz()), (tenon.sparse_csr, True, False, 3))


class Arithmetic(Case):
    def test_products_are_reduced_otherwise_as_the_reference_does(self):
        # Made by PyTorch 2.11 with the same calls.
        a = tenon.tensor([[1.0, 0, 2], [0, 0, 0], [0, -3, 0], [4, 5, 6]])
        weight = tenon.arange(8.0).reshape(4, 2)
        for reduce, values, dense, sparse in (
                ("mean", [[5.5, 7], [0, 0], [-9, 12], [49 / 3, 8]],
                 [[8, 59 / 6], [-2, -10 / 3], [12, 15]], [1, 3, -8, 20 / 3, -10 / 3, 24]),
                ("amax", [[10, 12], [0, 0], [-9, 12], [30, 36]],
                 [[0, 0], [-12, -15], [36, 44]], [0, 6, -8, 0, 0, 72]),
                ("amin", [[1, 2], [0, 0], [-9, 12], [4, -20]],
                 [[24, 1], [-12, 20], [0, 0]], [2, 0, -8, 6, -28, 0])):
            s = a.to_sparse_csr().requires_grad_()
            d = tenon.tensor([[1.0, 2], [3, -4], [5, 6]], requires_grad=True)
            made = tenon.sparse.mm(s, d, reduce)
            (made * weight).sum().backward()
            for got, wanted in ((made, values), (d.grad, dense), (s.grad.values(), sparse)):
                self.assertTrue(tenon.allclose(got, tenon.tensor(wanted, dtype=tenon.float32), atol=1e-5), reduce)
        with self.assertRaisesRegex(RuntimeError, "reduce type of prod has not been enabled"):
            tenon.sparse.mm(a.to_sparse_csr(), a.t(), "prod")
        with self.assertRaisesRegex(NotImplementedError, "takes a CSR matrix"):
            tenon.sparse.mm(a.to_sparse(), a.t(), "mean")

    def test_quotients_are_rounded_down(self):
        d = tenon.tensor([[0., 5.], [-3., 0.]])
        self.same(d.to_sparse() // 2, tenon.tensor([[0., 2.], [-2., 0.]]))
        s = d.to_sparse()
        s //= 2
        self.same(s, tenon.tensor([[0., 2.], [-2., 0.]]))
        with self.assertRaisesRegex(RuntimeError, "Sparse division requires a scalar or zero-dim dense tensor divisor"):
            s // s

    def test_products(self):
        s = sample()
        for made in (tenon.mm(s, D), s @ D, tenon.spmm(s, D), tenon.dsmm(s, D), tenon.sparse.mm(s, D), tenon.matmul(s, D)):
            self.same(made, DENSE @ D)
        self.same(s @ tenon.ones(3), DENSE.sum(1))
        self.same(tenon.ones(4, 2) @ s, tenon.ones(4, 2) @ DENSE)
        self.same(tenon.addmm(tenon.ones(2, 4), s, D), DENSE @ D + 1)
        self.same(tenon.sparse.addmm(tenon.ones(2, 4), s, D, beta=2, alpha=3), 2 + 3 * (DENSE @ D))
        both = tenon.sparse.mm(s, s.t())
        self.assertTrue(both.is_sparse and both.is_coalesced())
        self.same(both, DENSE @ DENSE.t())
        with self.assertRaisesRegex(RuntimeError, r"Argument #3 \(dense\): Expected dim 0 size 3, got 2"):
            tenon.mm(s, E)

    def test_elements(self):
        s = sample()
        for made, wanted in ((s + s, DENSE * 2), (s - s, DENSE * 0), (s * 2, DENSE * 2), (2 * s, DENSE * 2), (-s, -DENSE),
                             (s / 2, DENSE / 2), (s * E, DENSE * E), (E * s, DENSE * E), (s * s, DENSE * DENSE),
                             (s ** 2, DENSE ** 2), (tenon.abs(-s), DENSE), (s.sqrt(), DENSE.sqrt()), (s.relu(), DENSE)):
            self.assertTrue(made.is_sparse)
            self.same(made, wanted)
        self.assertFalse((E + s).is_sparse)
        self.same(E + s, E + DENSE)
        self.same(tenon.zeros(2, 3).add_(s, alpha=2), DENSE * 2)
        for call in (lambda: s + E, lambda: s + 1):
            with self.assertRaisesRegex(RuntimeError, r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\)"):
                call()
        with self.assertRaisesRegex(NotImplementedError, "Could not run 'aten::exp' with arguments from the 'SparseCPU'"):
            s.exp()

    def test_sums_and_shapes(self):
        s = sample()
        self.assertEqual((s.sum().item(), tenon.sparse.sum(s).item()), (12.0, 12.0))
        self.same(tenon.sum(s, 0), DENSE.sum(0))
        self.same(tenon.sparse.sum(s, dim=1), DENSE.sum(1))
        self.assertAlmostEqual(s.norm().item(), 50 ** 0.5, 5)
        for made, wanted in ((s.t(), DENSE.t()), (s.T, DENSE.t()), (s.transpose(0, 1), DENSE.t()), (s[1], DENSE[1]),
                             (s.unsqueeze(0), DENSE.unsqueeze(0)), (tenon.cat([s, s], 1), tenon.cat([DENSE, DENSE], 1)),
                             (tenon.stack([s, s]), tenon.stack([DENSE, DENSE])), (s.select(1, 2), DENSE.select(1, 2)),
                             (s.index_select(0, tenon.tensor([1, 1])), DENSE[[1, 1]]),
                             (s.narrow_copy(1, 1, 2), DENSE[:, 1:])):
            self.same(made, wanted)
        self.assertEqual(s[1, 2].item(), 5.0)
        self.assertEqual([row._nnz() for row in s], [1, 2])
        soft = tenon.sparse.softmax(s, 1).to_dense()
        self.assertAlmostEqual(soft[1, 0].item(), 0.2689, 4)
        self.assertEqual(soft[0].tolist(), [0, 0, 1])

    def test_conversions_and_writes(self):
        s = sample()
        self.assertIs(s.float(), s)
        self.assertIs(s.to("cpu"), s)
        self.assertEqual(s.double().dtype, tenon.float64)
        t = s.clone()
        t.mul_(2)
        self.same(t, DENSE * 2)
        self.same(s, DENSE)
        self.assertEqual(t.zero_()._nnz(), 0)
        self.assertFalse(s.is_contiguous())
        with self.assertRaisesRegex(TypeError, "Cannot assign to a sparse tensor"):
            s[0, 0] = 1
        with self.assertRaisesRegex(RuntimeError, "expected scalar type Float but found Double"):
            s @ D.double()
        tenon.testing.assert_close(s, s.coalesce())
        with self.assertRaisesRegex(AssertionError, "Mismatched elements: 3 / 3"):
            tenon.testing.assert_close(s, s * 2)
        twice, once = (tenon.sparse_coo_tensor([at], values, (4,)) for at, values in (([0, 0], [1.0, 2.0]), ([0], [3.0])))
        with self.assertRaisesRegex(AssertionError, "^The number of specified values in sparse COO tensors does not match: 2 != 1$"):
            tenon.testing.assert_close(twice, once)
        tenon.testing.assert_close(twice, once.coalesce())
        eye = tenon.eye(3)
        tenon.testing.assert_close(eye.to_sparse_csr(), eye.to_sparse(), check_layout=False)
        with self.assertRaisesRegex(AssertionError, "^The values for attribute 'layout' do not match: .*sparse_csr != .*sparse_coo"):
            tenon.testing.assert_close(eye.to_sparse_csr(), eye.to_sparse())
        self.same(tenon.bmm(tenon.stack([s, s]), tenon.stack([D, D])), tenon.stack([DENSE @ D, DENSE @ D]))
        with self.assertRaisesRegex(TypeError, "can't convert Sparse layout tensor to numpy"):
            s.numpy()


class Files(Case):
    def test_copies_and_pickles(self):
        s = sample(requires_grad=True)
        self.same(pickle.loads(pickle.dumps(s)), DENSE)
        self.assertTrue(copy.deepcopy(s).requires_grad)
        for layout in (s, s.detach().to_sparse_csr()):
            file = io.BytesIO()
            tenon.save({"s": layout}, file)
            file.seek(0)
            self.same(tenon.load(file)["s"], DENSE)


class Gradients(Case):
    def test_of_values_and_dense_operands(self):
        v, d = V.clone().requires_grad_(), D.clone().requires_grad_()
        s = tenon.sparse_coo_tensor(I, v, (2, 3))
        self.assertTrue(s.requires_grad)
        tenon.sparse.mm(s, d).sum().backward()
        self.assertEqual((v.grad.tolist(), d.grad.tolist()), ([38, 6, 38], [[4] * 4, [0] * 4, [8] * 4]))

    def test_of_a_sparse_leaf_is_sparse(self):
        s = sample(requires_grad=True)
        (s.t() @ tenon.ones(2, 2)).sum().backward()
        self.assertEqual((s.grad.is_sparse, s.grad._values().tolist(), s.grad._indices().tolist()),
                         (True, [2, 2, 2], I.tolist()))

    def test_of_a_place_that_is_named_twice_counts_once(self):
        d, w = tenon.arange(1.0, 7.0).reshape(3, 2), tenon.arange(1.0, 7.0).reshape(2, 3)
        other = tenon.sparse_coo_tensor([[0, 1, 0, 0], [1, 0, 1, 2]], [3.0, 4.0, 5.0, -2.0], (2, 3))
        for name, fn, first, second, third in (  # those at (0, 1), (0, 2), (1, 0) in PyTorch
                ("to_dense", lambda s: s.to_dense(), 2, 3, 4), ("coalesce", lambda s: s.coalesce(), 2, 3, 4),
                ("values", lambda s: s.coalesce().values(), 1, 2, 3), ("sum", lambda s: tenon.sparse.sum(s), 1, 1, 1),
                ("sum of rows", lambda s: tenon.sparse.sum(s, 0), 2, 3, 1), ("mm", lambda s: tenon.sparse.mm(s, d), 11, 17, 11),
                ("dense factor", lambda s: s * w, 4, 9, 16), ("number", lambda s: s * 2, 4, 6, 8),
                ("sparse factor", lambda s: s * other, 16, -6, 16), ("square", lambda s: s * s, 32, -12, 32),
                ("add", lambda s: s + s, 4, 6, 8), ("t", lambda s: s.t(), 3, 5, 2), ("clone", lambda s: s.clone(), 2, 3, 4),
                ("sparse.mm", lambda s: tenon.sparse.mm(s, s.t()), 16, -4, 32), ("pow", lambda s: s ** 2, 32, -12, 32),
                ("csr", lambda s: s.to_sparse_csr(), 2, 3, 4)):
            with self.subTest(name):
                s = other.detach().requires_grad_()
                made = fn(s)
                made = made.to_dense() if made.layout is not tenon.strided else made
                loss = (made * tenon.arange(1.0, 1 + made.numel()).reshape(made.shape)).sum()
                by_s, = tenon.autograd.grad(loss, s, retain_graph=True)
                loss.backward()
                for grad in (by_s, s.grad):
                    self.assertEqual(grad.to_dense().tolist(), [[0, first, second], [third, 0, 0]])

    def test_of_entries_of_a_leaf_that_names_a_place_twice_is_none(self):
        s = tenon.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).requires_grad_()
        self.assertFalse(s._values().requires_grad)

    def test_that_is_assigned_goes_by_places(self):
        s = tenon.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], (3,)).requires_grad_()
        s.grad = tenon.sparse_coo_tensor([[2]], [7.0], (3,))
        self.same(s.grad, tenon.tensor([0.0, 0.0, 7.0]))
        (s.to_dense() * 2).sum().backward()
        self.same(s.grad, tenon.tensor([2.0, 0.0, 9.0]))
        with self.assertRaisesRegex(RuntimeError, "assigned grad has places that the tensor has not"):
            s.grad = tenon.sparse_coo_tensor([[1]], [7.0], (3,))
        with self.assertRaisesRegex(RuntimeError, "assigned grad has data of a different size"):
            s.grad = tenon.sparse_coo_tensor([[1]], [7.0], (4,))
        csr = DENSE.to_sparse_csr().requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "assigned grad has other places than the tensor"):
            csr.grad = E.to_sparse_csr()

    def test_that_is_written_is_the_leafs(self):
        two = tenon.sparse_coo_tensor([[1]], [2.0], (2,))
        for leaf in (tenon.sparse_coo_tensor([[0, 1, 1]], [3.0, 4.0, 5.0], (2,)), tenon.tensor([3.0, 9.0]).to_sparse()):
            s = leaf.requires_grad_()
            for write, wanted in ((lambda g: g.zero_(), [0, 0]), (lambda g: g.mul_(2), [6, 8]), (lambda g: g.div_(2), [1.5, 2]),
                                  (lambda g: g.add_(two), [3, 6]), (lambda g: g.copy_(two), [0, 2])):
                s.grad = None
                s.to_dense().backward(tenon.tensor([3.0, 4.0]))
                old = s.grad
                write(old)
                self.assertEqual(s.grad.to_dense().tolist(), wanted)
                s.grad = None
                s.to_dense().backward(tenon.tensor([3.0, 4.0]))
                write(old)  # no longer its gradient
                self.assertEqual(s.grad.to_dense().tolist(), [3, 4])

    def test_twice(self):
        v = V.double().requires_grad_()
        tenon.autograd.gradgradcheck(lambda v: (tenon.sparse_coo_tensor(I, v, (2, 3)) @ D.double()).pow(2), (v,))

    def test_gradients_are_not_lost_below_autograd(self):
        s, again = sample(requires_grad=True), sample(requires_grad=True)
        with self.assertRaisesRegex(NotImplementedError, "not differentiable"), tenon._C.DisableTorchFunction():
            tenon.ops.aten.mm(s, D)
        tenon.ops.aten.mm(s, D).sum().backward()
        (again @ D).sum().backward()
        self.assertEqual(s.grad.to_dense().tolist(), again.grad.to_dense().tolist())


class Modules(Case):
    def test_a_graph_is_a_buffer(self):
        class Net(tenon.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = tenon.nn.Linear(4, 2)
                self.register_buffer("graph", sample())

            def forward(self, x):
                return self.linear(tenon.spmm(self.graph, x))
        net = Net()
        self.assertEqual(net(D).shape, (2, 2))
        self.assertEqual(copy.deepcopy(net).double().graph.dtype, tenon.float64)
        file = io.BytesIO()
        tenon.save(net.state_dict(), file)
        file.seek(0)
        other = Net()
        other.graph.mul_(0)
        other.load_state_dict(tenon.load(file))
        self.same(other.graph, DENSE)
        net(D).sum().backward()
        self.assertIsNotNone(net.linear.weight.grad)


class Embeddings(Case):
    def trained(self, make, **options):
        m = tenon.nn.Embedding(5, 2, sparse=True, **options)
        with tenon.no_grad():
            m.weight.copy_(tenon.arange(10.0).reshape(5, 2))
        optimizer = make(list(m.parameters()))
        for _ in range(2):
            optimizer.zero_grad()
            m(tenon.tensor([1, 3, 1])).pow(2).sum().backward()
            optimizer.step()
        self.assertTrue(m.weight.grad.is_sparse)
        return m.weight.detach()

    def close(self, weight, rows):
        wanted = tenon.arange(10.0).reshape(5, 2)
        wanted[1], wanted[3] = tenon.tensor(rows[0]), tenon.tensor(rows[1])
        self.assertTrue(tenon.allclose(weight, wanted, atol=1e-3), weight)

    def test_optimizers_move_the_rows_that_were_looked_up(self):
        self.close(self.trained(lambda p: tenon.optim.SGD(p, lr=0.1)), ([0.72, 1.08], [3.84, 4.48]))
        self.close(self.trained(lambda p: tenon.optim.SGD(p, lr=0.1, momentum=0.9)), ([0.0, 0.0], [2.76, 3.22]))
        self.close(self.trained(lambda p: tenon.optim.SparseAdam(p, lr=0.1)), ([1.8002, 2.8001], [5.8, 6.8]))
        self.close(self.trained(lambda p: tenon.optim.Adagrad(p, lr=0.1)), ([1.8311, 2.8305], [5.8299, 6.8298]))
        with self.assertRaisesRegex(RuntimeError, "Adam does not support sparse gradients, please consider SparseAdam"):
            self.trained(lambda p: tenon.optim.Adam(p))

    def test_bags_have_sparse_gradients(self):
        bags, flat = tenon.tensor([[0, 1], [3, 1]]), tenon.tensor([4, 1, 1, 0])
        starts = tenon.tensor([0, 1, 1])
        none = [0., 0.]
        for ids, offsets, mode, padding, weighted, expected in (  # by PyTorch 2.11
                (bags, None, "sum", None, False, [[1., 2.], [4., 6.], none, [3., 4.], none]),
                (bags, None, "sum", None, True, [[1., 2.], [14., 20.], none, [9., 12.], none]),
                (bags, None, "sum", 1, False, [[1., 2.], none, none, [3., 4.], none]),
                (flat, starts, "mean", None, False, [[5 / 3, 2.], [10 / 3, 4.], none, none, [1., 2.]])):
            w = tenon.arange(10.).view(5, 2).requires_grad_()
            factors = tenon.arange(1., 5.).view(ids.shape).requires_grad_() if weighted else None
            out = tenon.nn.functional.embedding_bag(ids, w, offsets, mode=mode, sparse=True, padding_idx=padding,
                                                    per_sample_weights=factors)
            (out * tenon.arange(1., 1. + out.numel()).view(out.shape)).sum().backward()
            self.assertTrue(w.grad.is_sparse)
            self.assertTrue(tenon.allclose(w.grad.to_dense(), tenon.tensor(expected)), w.grad)
            if weighted:
                self.assertEqual(factors.grad.tolist(), [[2., 8.], [46., 18.]])
        with self.assertRaisesRegex(RuntimeError, "scale_grad_by_freq not supported with sparse gradients"):
            tenon.nn.functional.embedding_bag(bags, w, mode="sum", sparse=True, scale_grad_by_freq=True)
        with self.assertRaisesRegex(RuntimeError, r"Index 1 of input takes value 7 which is not in the valid range"):
            tenon.nn.functional.embedding_bag(tenon.tensor([[0, 7]]), w, mode="sum", sparse=True)

    def test_gradients_that_are_recorded_stay_sparse(self):
        w = tenon.ones(4, 2, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the cycle that it may make
            for rows in ([1, 2, 1], [3, 1]):
                tenon.nn.functional.embedding(tenon.tensor(rows), w, sparse=True).sum().backward(create_graph=True)
                self.assertEqual(w.grad.layout, tenon.sparse_coo)
        self.assertEqual(w.grad.to_dense().tolist(), [[0, 0], [3, 3], [1, 1], [1, 1]])

    def test_a_pass_for_some_inputs_knows_sparse_ones(self):
        for layout in (tenon.sparse_coo, tenon.sparse_csr, tenon.sparse_csc):
            with self.subTest(layout):
                x = tenon.tensor([[2.0, 0.0], [0.0, 5.0]]).to_sparse(layout=layout).requires_grad_()
                unused = tenon.eye(2).to_sparse(layout=layout).requires_grad_()
                w = tenon.ones(2, 2, requires_grad=True)
                y = (x.to_dense() ** 2 * w).sum()
                by_x, by_unused, by_w = tenon.autograd.grad(y, (x, unused, w), allow_unused=True, create_graph=True)
                self.assertIs(by_x.layout, layout)
                self.assertEqual(by_x.to_dense().tolist(), [[4.0, 0.0], [0.0, 10.0]])
                self.assertIsNone(by_unused)
                self.assertEqual((type(by_w), by_w.tolist()), (tenon.Tensor, [[4.0, 0.0], [0.0, 25.0]]))
                twice = tenon.autograd.grad(by_x.to_dense().sum(), x)[0]
                self.assertEqual(twice.to_dense().tolist(), [[2.0, 0.0], [0.0, 2.0]])
                (x.to_dense() * w).sum().backward(inputs=[x])
                self.assertEqual(x.grad.to_dense().tolist(), [[1.0, 0.0], [0.0, 1.0]])
                self.assertIsNone(w.grad)
        with self.assertRaisesRegex(RuntimeError, "One of the differentiated Tensors does not require grad"):
            tenon.autograd.grad(w.sum(), x.detach())

    def test_gradients_add_up(self):
        m = tenon.nn.Embedding(5, 2, sparse=True, padding_idx=0)
        m(tenon.tensor([1, 3, 0])).sum().backward()
        m(tenon.tensor([1])).sum().backward()
        grad = m.weight.grad.coalesce()
        self.assertEqual((grad.indices().tolist(), grad.values().tolist()), ([[1, 3]], [[2, 2], [1, 1]]))
        m(tenon.tensor([1])).sum().backward(create_graph=True)
        self.assertTrue(m.weight.grad.is_sparse)
        m.weight.grad = None
        m(tenon.tensor([1, 3, 0])).sum().backward()
        (m.weight * 2).sum().backward()  # an ordinary gradient: the sum is one
        self.assertFalse(m.weight.grad.is_sparse)
        self.assertEqual(m.weight.grad.tolist(), [[2, 2], [3, 3], [2, 2], [3, 3], [2, 2]])
        m(tenon.tensor([1])).sum().backward()
        self.assertEqual(m.weight.grad.tolist(), [[2, 2], [4, 4], [2, 2], [3, 3], [2, 2]])
        with self.assertRaisesRegex(RuntimeError, "SparseAdam does not support dense gradients"):
            w = tenon.ones(2, requires_grad=True)
            w.sum().backward()
            tenon.optim.SparseAdam([w]).step()


    def test_gradients_meet_dense_ones_in_either_order(self):
        index = tenon.tensor([1, 2, 2])
        for sparse_first in (False, True):
            w = tenon.ones(4, 2, requires_grad=True)
            rows = tenon.nn.functional.embedding(index, w, sparse=True) if not sparse_first else None
            dense = (w * 2).sum()
            if rows is None:  # recorded last: its gradient comes first
                rows = tenon.nn.functional.embedding(index, w, sparse=True)
            (rows.sum() + dense).backward()
            self.assertEqual(w.grad.tolist(), [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0], [2.0, 2.0]])


class Outputs(unittest.TestCase):
    """A pass may begin at a sparse tensor, with a gradient that is sparse or not."""

    def test_the_gradient_enters_at_the_places_of_the_tensor(self):
        for make in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
            for given in (E + 1, getattr(E + 1, make)(), (E + 1).to_sparse()):
                x = DENSE.clone().requires_grad_()
                (getattr(x, make)() * 2).backward(given)
                self.assertEqual(x.grad.tolist(), [[0.0, 0.0, 6.0], [8.0, 0.0, 12.0]])

    def test_entries_of_one_place_have_its_gradient_each(self):
        i, v = tenon.tensor([[0, 1, 1]]), tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
        for s in (tenon.sparse_coo_tensor(i, v, (3,)), tenon.sparse_coo_tensor(i, v, (3,)).coalesce()):
            grad, = tenon.autograd.grad(s, v, tenon.tensor([5.0, 7.0, 9.0]).to_sparse())
            self.assertEqual(grad.tolist(), [5.0, 7.0, 7.0])

    def test_places_that_a_sparse_gradient_leaves_out_are_zero(self):
        x = DENSE.clone().requires_grad_()
        x.to_sparse().backward(tenon.sparse_coo_tensor([[1], [2]], [4.0], (2, 3)))
        self.assertEqual(x.grad.tolist(), [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]])

    def test_the_pass_can_be_differentiated(self):
        v, g = V.clone().requires_grad_(), (E + 1).requires_grad_()
        s = tenon.sparse_coo_tensor(I, v ** 2, (2, 3))
        first, = tenon.autograd.grad(s, v, g, create_graph=True)
        found = tenon.autograd.grad(first.sum(), (v, g))
        self.assertEqual(found[0].tolist(), [6.0, 8.0, 12.0])
        self.assertEqual(found[1].tolist(), [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]])

    def test_a_gradient_is_wanted_and_has_the_shape(self):
        s = DENSE.clone().requires_grad_().to_sparse()
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            s.backward()
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            tenon.tensor([0.0, 1.0], requires_grad=True).to_sparse().backward()  # of one element, of two places
        with self.assertRaisesRegex(RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of .*\[3\].* and output\[0\]"):
            s.backward(tenon.ones(3))
        with self.assertRaisesRegex(RuntimeError, "does not require grad and does not have a grad_fn"):
            DENSE.to_sparse().backward(DENSE)


class Checks(unittest.TestCase):
    """gradcheck and gradgradcheck of sparse inputs: of their stored elements."""

    def test_stored_elements_are_checked_in_every_layout(self):
        dense = tenon.tensor([[1.0, 0, 2], [0, 3, 0]], dtype=tenon.float64)
        other = (tenon.arange(6.0, dtype=tenon.float64).reshape(3, 2) + 0.5).requires_grad_()

        class Wrong(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g * 2

        for make in (dense.to_sparse, dense.to_sparse_csr, dense.to_sparse_csc):
            x = make().requires_grad_()
            for fast in (False, True):
                check = functools.partial(tenon.autograd.gradcheck, masked=True, fast_mode=fast)
                self.assertTrue(check(lambda a, b: a @ b, (x, other)))
                self.assertTrue(check(lambda a: a.to_dense() ** 2, (x,)))
                self.assertTrue(tenon.autograd.gradgradcheck(lambda a: a.to_dense() ** 2, (x,), masked=True, fast_mode=fast))
                with self.assertRaisesRegex(RuntimeError, "Jacobian mismatch"):
                    check(lambda a: Wrong.apply(a.to_dense()), (x,))
                with self.assertRaisesRegex(ValueError, "Sparse output is not supported at gradcheck yet"):
                    check(lambda a: a * 2, (x,))
            with self.assertRaisesRegex(ValueError, "wants masked=True"):
                tenon.autograd.gradcheck(lambda a: a.to_dense(), (x,))


class WrittenInPlace(unittest.TestCase):
    def test_a_write_keeps_the_dtype_or_is_refused(self):
        for name in ("add_", "sub_", "mul_"):
            s = tenon.eye(2, dtype=tenon.uint8).to_sparse()
            getattr(s, name)(tenon.eye(2, dtype=tenon.int8).to_sparse())
            self.assertIs(s.to_dense().dtype, tenon.uint8)
            with self.assertRaisesRegex(RuntimeError, "Can't convert result type Float to output Byte in (add|mul) operation"):
                getattr(s, name)(tenon.eye(2).to_sparse())

    def test_one_value_without_dimensions_and_views_of_complex_values(self):
        s = tenon.sparse_coo_tensor(tenon.tensor([[0], [1]]), tenon.tensor(2 + 3j), (2, 2))
        self.assertEqual(s.to_dense().tolist(), [[0, 2 + 3j], [0, 0]])
        pairs = tenon.view_as_real(s)
        self.assertEqual((pairs.shape, pairs.to_dense()[0, 1].tolist()), ((2, 2, 2), [2, 3]))
        self.assertEqual(tenon.view_as_complex(pairs).to_dense().tolist(), s.to_dense().tolist())


if __name__ == "__main__":
    harness.main()
