# SPDX-License-Identifier: MIT
"""Operands that were expanded, or lie at odd places, do what those that were written out do, to the bit; the values of the latter are
compared with PyTorch's elsewhere."""
import itertools
import unittest

import harness
import tenon


def same(a, b):
    return a.dtype is b.dtype and a.shape == b.shape and tenon.equal(a, b)


class Indices(unittest.TestCase):
    """An index that changes along one dimension alone moves whole slices."""

    def each(self):
        tenon.manual_seed(0)
        for dim, rows, dtype in itertools.product((0, 1, 2), (1, 3, 40), (tenon.float32, tenon.bfloat16, tenon.float64, tenon.int64, tenon.int8)):
            sizes = [5, 7, 33]
            taken = [n - 1 if d % 2 else n for d, n in enumerate(sizes)]
            taken[dim] = rows
            column = tenon.randint(0, sizes[dim], (rows,))
            index = column.view([rows if d == dim else 1 for d in range(3)]).expand(taken)
            x = tenon.randint(-9, 9, sizes).to(dtype)
            source = tenon.randint(-9, 9, [max(a, b) for a, b in zip(sizes, taken)]).to(dtype)
            yield dim, index, x, source

    def test_gather(self):
        for dim, index, x, _ in self.each():
            self.assertTrue(same(x.gather(dim, index), x.gather(dim, index.contiguous())))
            turned = x.transpose(0, 2).contiguous().transpose(0, 2)
            self.assertTrue(same(turned.gather(dim, index), x.gather(dim, index.contiguous())))

    def test_scatter(self):
        for dim, index, x, source in self.each():
            whole = index.contiguous()
            self.assertTrue(same(x.scatter(dim, index, source), x.scatter(dim, whole, source)))
            self.assertTrue(same(x.scatter(dim, index, 3), x.scatter(dim, whole, 3)))
            self.assertTrue(same(x.scatter_add(dim, index, source), x.scatter_add(dim, whole, source)))
            for reduce, own in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
                self.assertTrue(same(x.scatter_reduce(dim, index, source, reduce, include_self=own),
                                     x.scatter_reduce(dim, whole, source, reduce, include_self=own)), (dim, reduce, own, x.dtype))
            y = x.clone()
            y.scatter_add_(dim, index, source)
            self.assertTrue(same(y, x.scatter_add(dim, whole, source)))

    def test_order_of_sums(self):
        """Numbers whose sum depends on the order, many to the same place, with any number of threads."""
        tenon.manual_seed(1)
        column = tenon.randint(0, 4, (500,))
        index, source = column.unsqueeze(1).expand(500, 300), tenon.randn(500, 300) * tenon.randn(500, 300).exp()
        wanted, before = tenon.zeros(4, 300).scatter_add(0, index.contiguous(), source), tenon.get_num_threads()
        try:
            for threads in (1, 2, 3):
                tenon.set_num_threads(threads)
                self.assertTrue(same(tenon.zeros(4, 300).scatter_add(0, index, source), wanted))
        finally:
            tenon.set_num_threads(before)

    def test_out_of_range(self):
        x = tenon.zeros(3, 4)
        for bad in (-1, 3, 2**62, -2**63):
            index = tenon.tensor([0, bad]).unsqueeze(1).expand(2, 4)
            for i in (index, index.contiguous()):
                for call in (lambda: x.gather(0, i), lambda: x.scatter_(0, i, tenon.ones(2, 4)), lambda: x.scatter_add_(0, i, tenon.ones(2, 4))):
                    with self.assertRaisesRegex(RuntimeError, f"index {bad} is out of bounds for dimension 0 with size 3"):
                        call()
        self.assertEqual(x.sum().item(), 0)


class Memory(unittest.TestCase):
    def test_filled_at_any_place(self):
        for dtype, first, n in itertools.product((tenon.bfloat16, tenon.int16, tenon.float32, tenon.uint8, tenon.float64), range(4), (0, 1, 2, 3, 31, 100)):
            x = tenon.zeros(120, dtype=dtype)
            x[first:first + n].fill_(3)
            self.assertEqual(x.tolist(), [0] * first + [3] * n + [0] * (120 - first - n))

    def test_gradients_of_fills_and_copies_of_themselves(self):
        views = (lambda r: r[:3].unfold(0, 2, 1), lambda r: r[:3].as_strided((2, 2), (1, 1)), lambda r: r[:3].expand(2, 3),
                 lambda r: r[:3].unfold(0, 2, 1).unfold(0, 2, 1), lambda r: r.view(2, 2)[:, :1].expand(2, 2))
        for view in views:
            x = tenon.tensor([1.0, 2, 3, 4], dtype=tenon.float64, requires_grad=True)
            for write in (lambda v: v.fill_(5), lambda v: v.zero_()):
                r = x * x
                write(view(r))
                kept = tenon.ones(4, dtype=tenon.float64)
                view(kept).zero_()
                grad = tenon.autograd.grad((r * r).sum(), x, create_graph=True)[0]
                self.assertEqual(grad.tolist(), (kept * 4 * x**3).tolist())
                self.assertEqual(tenon.autograd.grad(grad.sum(), x)[0].tolist(), (kept * 12 * x**2).tolist())
            r = x * x
            v = view(r)
            v.copy_(v)
            self.assertEqual(tenon.autograd.grad((r * r).sum(), x)[0].tolist(), (4 * x**3).tolist())

    def test_rows_of_many_dimensions(self):
        x = tenon.arange(2 * 3 * 4 * 5 * 40).view(2, 3, 4, 5, 40)
        for order in itertools.permutations(range(4)):
            y = x.permute(*order, 4)
            wanted = [x[tuple(dict(zip(order, at))[d] for d in range(4))].tolist() for at in itertools.product(*map(range, y.shape[:4]))]
            self.assertEqual(y.contiguous().view(-1, 40).tolist(), wanted)

    def test_given_statistics_in_any_layout(self):
        tenon.manual_seed(2)
        for dtype, shape in itertools.product((tenon.float32, tenon.float64, tenon.bfloat16), ((3, 5, 4, 7), (2, 3, 200), (1, 2, 2, 3, 4), (4, 6))):
            x = tenon.randn(shape).to(dtype)
            statistics = [tenon.rand(shape[1]).to(dtype) for _ in range(4)]
            for weight, bias in itertools.product((None, statistics[2]), (None, statistics[3])):
                call = lambda t: tenon.nn.functional.batch_norm(t, statistics[0], statistics[1], weight, bias, False)
                turned = x.transpose(0, -1).contiguous().transpose(0, -1)
                self.assertTrue(same(call(x), call(turned)))

    def test_first_power(self):
        for dtype in (tenon.float32, tenon.float64, tenon.bfloat16, tenon.complex64):
            x = tenon.tensor([-2.5, -0.0, 3.25, float("inf"), float("-inf"), float("nan")]).to(dtype)
            self.assertEqual(repr((x**1).tolist()), repr(x.tolist()))
        self.assertTrue(same(tenon.tensor([2, -3])**1.0, tenon.tensor([2.0, -3.0])))


if __name__ == "__main__":
    harness.main()
