# SPDX-License-Identifier: MIT
"""vmap: what a function gives for all slices at once is what it gives for each, and it is called once where that can be.
The oracle is the function itself, called on every slice."""
import unittest

import harness
import tenon
import tenon.nn.functional as F
from tenon.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

N = 5


def rand(*size, seed=0, dtype=tenon.float64):
    return tenon.randn(*size, generator=tenon.Generator().manual_seed(seed), dtype=dtype)


V, W = rand(N, 4), rand(N, 4, seed=1)
M, K = rand(N, 3, 4, seed=2), rand(N, 4, 2, seed=3)
S = rand(N, 3, 3, seed=4)
C = rand(N, 2, 3, 6, 6, seed=5)
I = tenon.tensor([[0, 2, 1], [1, 1, 0], [2, 0, 2], [0, 0, 1], [2, 2, 2]])
A, B = rand(4, 4, seed=6), rand(4, seed=7)
FILTER = rand(2, 3, 3, 3, seed=8)


def in_place(x):
    y = x.clone()
    y.mul_(2).add_(B)
    y[0] = 7.0
    y[1:3].zero_()
    return y


def viewed_in_place(x):
    y = x * 1
    y.unsqueeze_(0).transpose_(0, 1)
    return y.squeeze_(1)


AT_ONCE = [
    (lambda x: x.sin() * 2 + x ** 2, (V,)), (lambda x, y: x * y - x / y.abs(), (V, W)), (lambda x: x + B, (V,)),
    (lambda x: x + A, (V,)), (lambda x: tenon.where(x > 0, x, -B), (V,)), (lambda x: x.clamp(-1, 1).relu(), (V,)),
    (lambda x: F.gelu(x) + F.softplus(x) + F.silu(x), (V,)), (lambda x: x.sum() * x, (V,)),
    (lambda x: x.float().sum() * x, (V,)), (lambda x: x.sum(), (M,)), (lambda x: x.sum(0), (M,)), (lambda x: x.sum(-1), (M,)),
    (lambda x: x.sum((0, 1), keepdim=True), (M,)), (lambda x: x.mean(), (M,)), (lambda x: x.mean(1, keepdim=True), (M,)),
    (lambda x: x.max(), (M,)), (lambda x: x.min(), (M,)), (lambda x: x.amax(0), (M,)),
    (lambda x: x.max(dim=1), (M,)), (lambda x: x.std(), (M,)), (lambda x: x.var(0), (M,)), (lambda x: x.norm(), (M,)),
    (lambda x: tenon.linalg.vector_norm(x, dim=-1), (M,)), (lambda x: x.logsumexp(-1), (M,)), (lambda x: (x > 0).any(), (M,)),
    (lambda x: (x > 0).all(0), (M,)), (lambda x: x.softmax(0), (M,)), (lambda x: F.log_softmax(x, -1), (M,)),
    (lambda x: x.cumsum(1), (M,)), (lambda x: x.flip(0), (M,)), (lambda x: x.sort(-1), (M,)), (lambda x: x.topk(2), (M,)),
    (lambda x: x.reshape(-1), (M,)), (lambda x: x.view(2, 6), (M,)), (lambda x: x.t().reshape(12), (M,)),
    (lambda x: x.expand(2, 3, 4), (M,)), (lambda x: x.repeat(2, 1, 2), (M,)), (lambda x: x.permute(1, 0), (M,)),
    (lambda x: x.permute(-1, -2), (M,)), (lambda x: x.unsqueeze(0).squeeze(0).unsqueeze(-1), (M,)), (lambda x: x.squeeze(), (M,)),
    (lambda x: x.mT, (M,)), (lambda x: x[0], (M,)), (lambda x: x[-1, 1:], (M,)), (lambda x: x[..., None, 0], (M,)),
    (lambda x: x[:, tenon.tensor([0, 2])], (M,)), (lambda x: x[tenon.tensor([0, 2]), tenon.tensor([1, 3])], (M,)),
    (lambda x, i: x[i], (V, I)), (lambda x, i: x.gather(0, i), (V, I)), (lambda i: A[i], (I,)),
    (lambda x: tenon.cat([x, x[:1], A[:2]]), (M,)), (lambda x: tenon.stack([x, A[:3]], -1), (M,)), (lambda x: x.split(2, 1), (M,)),
    (lambda x: x.unbind(0), (M,)), (lambda x: x.chunk(2, -1), (M,)), (lambda x: x.diagonal(), (S,)), (lambda x: x.tril(), (S,)),
    (lambda x: tenon.zeros_like(x) + x.new_ones(4), (M,)), (lambda x: x.double().to(tenon.float32), (M,)),
    (lambda x: x @ A, (M,)), (lambda x: A @ x, (K,)), (lambda x, y: x @ y, (M, K)), (lambda x: A @ x, (V,)),
    (lambda x: x @ A, (V,)), (lambda x: x @ B, (M,)), (lambda x, y: x @ y, (M, V)), (lambda x, y: x @ y, (V, W)),
    (lambda x: x @ B, (V,)), (lambda x: tenon.outer(x, B), (V,)), (lambda x, y: tenon.einsum("i,j->ij", x, y), (V, W)),
    (lambda x, y: tenon.einsum("ij,jk->ki", x, y), (M, K)), (lambda x: F.linear(x, A, B), (M,)), (lambda x: F.linear(x, A, B), (V,)),
    (lambda x, w: F.linear(B, x, w[:3]), (M, V)), (lambda x: tenon.addmm(x[:1], x, A, beta=2, alpha=3), (M,)),
    (lambda x: tenon.bmm(x[None], A[None]), (M,)), (lambda x: tenon.addmv(B[:3], x, B), (M,)),
    (lambda x: F.conv2d(x, FILTER), (C,)), (lambda x: F.max_pool2d(x, 2), (C,)), (lambda x: F.avg_pool2d(x, 2), (C,)),
    (lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), (C,)), (lambda x: F.max_pool2d(x[0], 2), (C,)),
    (lambda x: F.layer_norm(x, (4,)), (M,)), (lambda x: F.layer_norm(x, (4,), B, B), (M,)), (lambda x, y: F.mse_loss(x, y), (V, W)),
    (lambda x: F.mse_loss(x, B, reduction="sum"), (V,)), (lambda i: F.embedding(i, A), (I,)),
    (lambda x: F.cross_entropy(x, tenon.tensor([0, 1, 3])), (M,)), (lambda x, i: F.nll_loss(x, i), (M, I)),
    (lambda x: tenon.linalg.inv(x + 5 * tenon.eye(3, dtype=x.dtype)), (S,)), (lambda x: tenon.linalg.det(x), (S,)),
    (lambda x: tenon.linalg.solve(x, x.sum(0)), (S,)), (lambda x: tenon.linalg.eigvalsh(x + x.mT), (S,)),
    (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), (M,)), (lambda x: tenon.fft.fft(x).abs(), (M,)),
    (lambda x: F.pad(x, (1, 1)), (M,)), (lambda x: F.normalize(x, dim=-1), (M,)), (lambda x: F.cosine_similarity(x, B, dim=0), (V,)),
    (viewed_in_place, (V,)), (lambda x: x.index_select(1, tenon.tensor([2, 0])), (M,)),
    (lambda x: tenon.cdist(x, A), (M,)), (lambda x: x.roll(1, 0), (M,)), (lambda x: x.median(), (M,)), (lambda x: x.trace(), (S,)),
    (lambda x: x.prod(), (V,)),
]

# Backward passes of these look into views that were written.
FORWARD_AT_ONCE = [(in_place, (V,))]


def flat(made):
    return made if isinstance(made, (tuple, list)) else (made,)


class Slices(unittest.TestCase):
    def same(self, a, b, what=""):
        self.assertEqual((tuple(a.shape), a.dtype), (tuple(b.shape), b.dtype), what)
        self.assertTrue(tenon.allclose(a, b, equal_nan=True), "%s: %s is not %s" % (what, a, b))

    def check(self, i, f, args, calls=1):
        count = [0]

        def counted(*a):
            count[0] += 1
            return f(*a)

        made = flat(vmap(counted)(*args))
        rows = [flat(f(*(a[k] for a in args))) for k in range(N)]
        self.assertEqual(count[0], calls, "function %d: calls" % i)
        for m, column in zip(made, zip(*rows)):
            self.assertIs(type(m), tenon.Tensor)
            self.same(m, tenon.stack(column), "function %d" % i)

    def test_indices_of_a_slice_are_not_looked_at_where_none_lies(self):
        i = I[:, :2]
        for f, args in ((lambda x, i: x.index_fill(0, i, 9.0), (V, i)), (lambda x, i: x.index_fill(0, i, B[0]), (V, i)),
                        (lambda x, i: x.index_copy(0, i, B[:2]), (V, tenon.tensor([[0, 1], [1, 2], [3, 0], [2, 1], [1, 0]]))),
                        (lambda x, i: x.index_reduce(0, i, B[:2], "prod"), (V, i)),
                        (lambda x, i: tenon.tensor_split(x, i)[0].sum(), (V, tenon.ones(N, 2, dtype=tenon.int64)))):
            rows = [f(*(a[k] for a in args)) for k in range(N)]
            self.same(vmap(f)(*args), tenon.stack(rows))
        with self.assertRaisesRegex(IndexError, "index 5 is out of bounds"):
            vmap(lambda x, i: x.index_fill(0, i, 9.0))(V, i + 5)

    def test_what_looks_at_numbers_sees_those_of_the_slice(self):
        big = 8 * S
        for f, x in ((tenon.linalg.matrix_exp, big), (lambda x: tenon.histogram(x, 3)[0], V), (tenon.combinations, V)):
            for _ in range(3):  # of memory that others have written before
                self.same(vmap(f)(x), tenon.stack([f(row) for row in x]))
        tall = tenon.cat([S, S], 1)
        tall[1] = 0
        solved = tenon.linalg.lstsq
        self.same(vmap(lambda a, b: solved(a, b).solution)(tall, tall), tenon.stack([solved(a, a).solution for a in tall]))

    def test_the_same_numbers_are_the_same_in_all_chunks(self):
        generator = tenon.Generator()
        for call in (lambda x: x + tenon.rand(3), lambda x: x + tenon.rand(3, generator=generator)):
            rows = tenon.func.vmap(call, randomness="same", chunk_size=2)(tenon.zeros(5, 3))
            self.assertTrue(all(tenon.equal(rows[0], row) for row in rows), rows)

    def test_all_slices_at_once_give_what_each_gives(self):
        for i, (f, args) in enumerate(AT_ONCE + FORWARD_AT_ONCE):
            self.check(i, f, args)

    def test_gradients_inside_are_those_of_each_slice(self):
        for i, (f, args) in enumerate(AT_ONCE + FORWARD_AT_ONCE):
            floating = all(a.is_floating_point() for a in args)
            if floating and flat(f(*(a[0] for a in args)))[0].is_floating_point():
                square = lambda *a, f=f: flat(f(*a))[0].double().pow(2).sum()
                self.check(i, grad(square, tuple(range(len(args)))), args, 1 if i < len(AT_ONCE) else N + 1)

    def test_gradients_of_the_whole_go_through(self):
        shared = A.clone().requires_grad_()
        inner = shared * 2  # made before, and no leaf
        for f, args in [(lambda x: (x @ shared).tanh(), (V,)), (lambda x: (x @ inner).sin() * shared[0], (V,)),
                        (lambda x: x * x, (V,)), (lambda x, s: (s @ x).exp(), (V, None))]:
            def total(run):
                x = V.clone().requires_grad_()
                given = (x,) if len(args) == 1 else (x, shared)
                out = run(given)
                return tenon.autograd.grad(out.cos().sum(), [x, shared], allow_unused=True, retain_graph=True)
            dims = (0,) if len(args) == 1 else (0, None)
            at_once = total(lambda g: vmap(f, in_dims=dims)(*g))
            each = total(lambda g: tenon.stack([f(g[0][k], *g[1:]) for k in range(N)]))
            for a, b in zip(at_once, each):
                self.assertEqual(a is None, b is None)
                if a is not None:
                    self.assertIs(type(a), tenon.Tensor)
                    self.same(a, b)

    def test_second_derivatives_go_through(self):
        x = V.clone().requires_grad_()
        w = A.clone().requires_grad_()
        f = lambda x: (x @ w).tanh().pow(2).sum()
        (g,) = tenon.autograd.grad(vmap(f)(x).sum(), x, create_graph=True)
        (h,) = tenon.autograd.grad(g.sin().sum(), w)
        x2 = V.clone().requires_grad_()
        (g2,) = tenon.autograd.grad(sum(f(r) for r in x2), x2, create_graph=True)
        (h2,) = tenon.autograd.grad(g2.sin().sum(), w)
        self.same(g, g2)
        self.same(h, h2)

    def test_transforms_inside(self):
        f = lambda x: (x @ A).tanh() * x.sum()
        each = lambda t: tenon.stack([t(r) for r in V])
        for t in (jacrev(f), jacfwd(f), hessian(lambda x: f(x).sum()), hessian(f), jacfwd(jacrev(f)), jacrev(jacfwd(f)),
                  lambda x: jvp(f, (x,), (B,))[1], lambda x: vjp(f, x)[1](B)[0], vmap(lambda y: y * y)):
            self.same(vmap(t)(V), each(t))

    def test_jacobians_of_many_rows_are_those_of_few(self):
        x = rand(40)
        f = lambda x: (x.sin() * x.sum())
        want = tenon.autograd.functional.jacobian(f, x)
        self.same(jacrev(f)(x), want)
        self.same(jacfwd(f)(x), want)

    def test_maps_in_maps(self):
        f = vmap(vmap(lambda a, b: a * b.sum(), in_dims=(None, 0)), in_dims=(0, None))
        self.same(f(V, W), V[:, None, :] * W.sum(1)[None, :, None])
        g = vmap(vmap(grad(lambda a, b: (a @ b) ** 2), in_dims=(None, 0)), in_dims=(0, None))
        self.same(g(V, W), 2 * (V @ W.T)[..., None] * W[None])

    def test_places_of_the_mapped_dimension(self):
        self.same(vmap(lambda x: x + B, in_dims=1, out_dims=1)(V.T), (V + B).T)
        self.same(vmap(lambda x: x.sum(), in_dims=-1)(M), M.sum((0, 1)))
        self.same(vmap(lambda d, k: d["a"] * k, in_dims=({"a": 0}, None))({"a": V}, 3), V * 3)
        self.same(vmap(lambda x: B)(V), B.expand(N, 4))
        a, b = vmap(lambda x: (x, B), out_dims=(1, None))(V)
        self.same(a, V.T)
        self.same(b, B)
        with self.assertRaisesRegex(ValueError, "can not return a BatchedTensor when out_dim is None"):
            vmap(lambda x: x, out_dims=None)(V)

    def test_one_pass_serves_all_rows_of_a_graph(self):
        x = V.clone().requires_grad_()
        y = x.sin().sum(0)
        (rows,) = vmap(lambda v: tenon.autograd.grad(y, x, v))(tenon.eye(4, dtype=V.dtype))  # frees the graph, once
        self.same(rows, tenon.stack([x.detach().cos() * e for e in tenon.eye(4, dtype=V.dtype)]))

    def test_chunks(self):
        for size in (1, 2, 5, 9):
            self.same(vmap(lambda x: x @ A, chunk_size=size)(V), V @ A)
        self.same(vmap(lambda x: x @ A, out_dims=1, chunk_size=2)(V), (V @ A).T)

    def test_what_looks_into_a_slice_is_called_on_each(self):
        self.check(0, lambda x: x * 2 if x.sum() > 0 else -x, (V,), N + 1)
        self.check(1, lambda x: x * x[0].item(), (V,), N + 1)
        self.check(2, lambda x: tenon.tensor(x.tolist(), dtype=x.dtype), (V,), N + 1)

        def written(x):
            y = tenon.zeros(4, dtype=x.dtype)
            y[1] = x[0]
            return y
        self.check(3, written, (V,), N + 1)

    def test_mistakes_are_those_of_a_slice(self):
        with self.assertRaisesRegex(RuntimeError, "must match the size"):
            vmap(lambda x: x + tenon.ones(3))(V)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            vmap(lambda x: 1 // 0)(V)

    def test_dimensions_of_others_are_not_taken_for_slices(self):
        rows = rand(N, 4)  # as many as there are slices
        for func in (lambda x: x.clone().mul_(rows), lambda x: x.clone().copy_(rows), lambda x: x.clone().lerp_(rows, 0.5)):
            with self.assertRaisesRegex(RuntimeError, r"shape \[4\]|expanded size|number of dimensions"):
                vmap(func)(V)
        self.same(vmap(lambda x: x.clone().mul_(B.reshape(1, 4)))(V), V * B)  # nothing grows, as in PyTorch
        for func in (lambda x: tenon.mm(x, A), lambda x: tenon.mv(x, B), lambda x: tenon.dot(x, A[0, :1].expand(1, 4)),
                     lambda x: tenon.addmm(A, x, A), lambda x: tenon.addmv(rows, A, x), lambda x: tenon.bmm(x, x)):
            with self.assertRaises(RuntimeError):
                vmap(func)(V)
        with self.assertRaises(RuntimeError):
            vmap(lambda x: tenon.bmm(x, K[:1].expand(1, 4, 2)))(rand(N, 2, 3, 4))

    def test_slices_of_one_number_are_added(self):
        """What PyTorch 2.11 gives: in a vmap one number is a vector of one, where the index is not mapped."""
        add = lambda mine, index, source: mine.index_add(0, index, source)  # noqa: E731
        one, ones = tenon.tensor(1), tenon.ones(2)
        self.assertEqual(vmap(add, (0, None, 0))(tenon.zeros(2, 3), one, ones).tolist(), [[0.0, 1.0, 0.0]] * 2)
        self.assertEqual(vmap(add, (0, None, None))(tenon.zeros(2, 3), one, tenon.tensor(1.0)).tolist(), [[0.0, 1.0, 0.0]] * 2)
        self.assertEqual(vmap(add, (0, None, 0))(tenon.zeros(2), tenon.tensor([0]), tenon.ones(2, 1)).tolist(), [1.0, 1.0])
        for shape, index, source in (((2, 3), one, ones), ((2,), tenon.tensor([0]), ones), ((2, 3), tenon.tensor([1]), ones[:, None])):
            mine = tenon.zeros(shape)
            made = vmap(lambda m, i, s: m.index_add_(0, i, s), (0, None, 0))(mine, index, source)
            self.assertEqual(made.tolist(), vmap(add, (0, None, 0))(tenon.zeros(shape), index, source).tolist())
            self.assertEqual(mine.tolist(), made.tolist())
        with self.assertRaisesRegex(RuntimeError, "source tensor shape must match self tensor shape"):
            vmap(add, (0, 0, 0))(tenon.zeros(2, 3), tenon.tensor([1, 2]), ones)

    def test_hooks_of_what_is_saved_see_ordinary_tensors(self):
        from tenon.utils.checkpoint import checkpoint
        x = tenon.rand(3, 2, requires_grad=True)
        for stop in (True, False):
            y = checkpoint(lambda x: vmap(tenon.sin)(x).sum(), x, use_reentrant=False, early_stop=stop)
            made, = tenon.autograd.grad(y, x)
            self.same(made, x.detach().cos())
        seen = []
        with tenon.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(type(t)), t)[1], lambda t: t):
            made, = tenon.autograd.grad(vmap(tenon.sin)(x).sum(), x)
        self.assertEqual(set(seen), {tenon.Tensor})
        self.same(made, x.detach().cos())

    def test_the_same_numbers_come_from_a_generator_too(self):
        g = tenon.Generator().manual_seed(3)
        for draw in (lambda: tenon.rand(4, generator=g), lambda: tenon.zeros(4).bernoulli_(0.5, generator=g),
                     lambda: tenon.randperm(9, generator=g), lambda: tenon.rand(2, generator=g) + tenon.rand(2)):
            same = vmap(lambda x, draw=draw: draw(), randomness="same")(tenon.zeros(3, 2))
            self.assertTrue(tenon.equal(same[0], same[1]) and tenon.equal(same[0], same[2]))
            self.assertFalse(tenon.equal(same[0], draw()))  # it goes on
        other = vmap(lambda x: tenon.rand(4, generator=g), randomness="different")(tenon.zeros(3, 2))
        self.assertFalse(tenon.equal(other[0], other[1]))

    def test_random_numbers_are_refused_or_drawn(self):
        with self.assertRaisesRegex(RuntimeError, "called random operation"):
            vmap(lambda x: x + tenon.rand(4))(V)
        with self.assertRaisesRegex(RuntimeError, "called random operation"):
            vmap(lambda x: F.dropout(x, 0.5))(V)
        same = vmap(lambda x: x * 0 + tenon.rand(4), randomness="same")(V)
        self.assertTrue(tenon.equal(same[0], same[1]))

    def test_ensembles_and_gradients_of_samples(self):
        tenon.manual_seed(3)
        models = [tenon.nn.Sequential(tenon.nn.Linear(4, 6), tenon.nn.Tanh(), tenon.nn.Linear(6, 2)).double() for _ in range(3)]
        parameters, buffers = stack_module_state(models)
        made = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(parameters, buffers, V)
        self.same(made.detach(), tenon.stack([m(V) for m in models]).detach())
        made.sum().backward()
        grads = {k: p.grad for k, p in parameters.items()}
        for i, m in enumerate(models):
            m(V).sum().backward()
            for k, p in m.named_parameters():
                self.same(grads[k][i], p.grad)
        held = {k: p.detach() for k, p in models[0].named_parameters()}
        loss = lambda p, x, y: F.mse_loss(functional_call(models[0], p, (x,)), y)
        made = vmap(grad(loss), in_dims=(None, 0, 0))(held, V, W[:, :2])
        for i in range(N):
            for k, g in grad(loss)(held, V[i], W[i, :2]).items():
                self.same(made[k][i], g)


if __name__ == "__main__":
    harness.main()
