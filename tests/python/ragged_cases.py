# SPDX-License-Identifier: MIT
"""What is asked about nested and masked tensors: expressions, of which make_ragged.py writes down what PyTorch says and
test_ragged.py sees that Tenon says the same. `L` is the library, `F` its nn.functional."""
import re

NESTED = """
n
n.shape
n.size(0), n.size(2), n.dim(), n.numel(), len(n), n.is_nested, n.layout, n.dtype, n.device, n.requires_grad, n.is_contiguous()
n.size(3)
n.values()
n.offsets(), n.lengths()
n.unbind()
n.unbind(1)
list(n)
n[0], n[-1]
n.to_padded_tensor(0.0)
L.nested.to_padded_tensor(n, -1.0)
n.to_padded_tensor(0.0, output_size=(2, 4, 3))
n.sin().values()
(n + 1).values(), (2 * n).values(), (-n).values(), abs(n).values(), (n ** 2).values()
(n / n.exp()).values()
n + L.nested.nested_tensor([a, b], layout=L.jagged)
(n + L.ones(3)).values()
(n + L.ones(2, 1, 3)).values()
n + L.ones(2, 3)
(L.ones(3) + n).shape
(n > 3).values()
lin(n).values()
norm(n).values()
F.softmax(n, -1).values()
F.softmax(n, 1).values()
F.log_softmax(n, -1).values()
F.relu(n).values(), F.silu(n).values(), F.rms_norm(n, (3,)).values()
n.sum(), n.sum(1), n.sum(-1).values()
n.sum(0)
n.mean(1), n.mean(-1).values(), n.mean(), n.max(), n.amax(1), n.all(), n.any()
n.transpose(1, 2).shape, n.transpose(1, 2).values()
n.unsqueeze(-1).shape, n.unsqueeze(1).shape, n.unflatten(-1, [3, 1]).shape
n.unsqueeze(0)
n.squeeze(0)
n.flatten(-2)
n.reshape(2, -1, 3, 1).shape, n.view(2, -1, 3, 1).shape
n.clone().values(), n.detach().values(), n.contiguous().values(), n.to(L.float64).dtype, n.half().values()
n.chunk(3, -1)[0].values(), n.split([1, 2], -1)[1].values(), L.cat([n, n], -1).values()
n.select(2, 0).values()
(n @ L.ones(3, 2)).values(), n.matmul(L.ones(3, 2)).values(), F.linear(n, L.ones(2, 3)).values()
F.dropout(n, 0.0).values()
L.where(n > 3, n, 0.0).values(), n.masked_fill(n > 3, 0.0).values(), n.clamp(0, 3).values()
L.zeros_like(n).values(), L.ones_like(n).shape, L.empty_like(n).shape
L.nested.as_nested_tensor([a, b], layout=L.jagged).values()
L.nested.nested_tensor_from_jagged(L.arange(10.0).reshape(5, 2), L.tensor([0, 2, 5])).unbind()
L.nested.nested_tensor_from_jagged(L.arange(10.0).reshape(5, 2), lengths=L.tensor([2, 3])).unbind()
L.nested.nested_tensor_from_jagged(L.arange(12.0).reshape(6, 2), L.tensor([0, 3, 6]), L.tensor([2, 1])).unbind()
L.nested.narrow(L.arange(12.0).reshape(2, 6), 1, L.tensor([0, 1]), L.tensor([2, 3]), layout=L.jagged).unbind()
L.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=L.jagged).values()
L.nested.nested_tensor([], layout=L.jagged)
L.nested.nested_tensor([a, L.ones(2, 2)], layout=L.jagged)
L.nested.masked_select(L.arange(6.0).reshape(2, 3), L.tensor([[True, False, True], [False, True, True]])).unbind()
attend(q).shape, attend(q).transpose(1, 2).flatten(-2).values()
F.embedding(L.nested.nested_tensor([L.tensor([0, 1]), L.tensor([2])], layout=L.jagged), L.arange(6.0).reshape(3, 2)).values()
n.tolist()
n.numpy()
type(n).__name__, isinstance(n, L.Tensor)
s
s.shape
s.size(0)
s.size(1)
s.unbind(), s[0]
s.to_padded_tensor(0.0), s.layout, s.numel(), s.dim(), s.values()
(s + s).unbind(), s.relu().unbind(), lin(s).unbind(), F.softmax(s, -1).unbind(), s.transpose(1, 2).unbind()
through_linear()
through_padding()
through_parts()
"""

MASKED = """
x
none
whole
M.masked_tensor(L.tensor(3.0), L.tensor(True)), M.masked_tensor(L.tensor(3.0), L.tensor(False))
x.get_data(), x.get_mask(), x.to_tensor(0)
x.shape, x.dim(), x.dtype, x.device, x.layout, x.requires_grad, x.is_sparse, len(x), x.numel(), x.stride(), x.is_contiguous()
M.is_masked_tensor(x), M.is_masked_tensor(d)
x.sin(), x.exp(), -x, x.abs(), L.sqrt(x), x + x, x * x, x + 1, 2 * x, x / x, x + d, d + x, x > 2, x == x, x ** 2, x.clamp(0, 3)
x + M.masked_tensor(d, other)
x.sum(), x.sum(0), x.sum(1), x.sum(dim=1, keepdim=True), x.mean(), x.mean(1), x.prod(), x.prod(0), x.amax(), x.amax(1), x.amin(0)
x.argmax(), x.argmax(1), x.all(), whole.sum(), L.sum(x), L.mean(x, 1), L.amax(x, 1), x.var(), x.std()
x.softmax(-1), L.softmax(x, -1)
x.transpose(0, 1), x.t(), x[0], x[:, 1], x[0, 0], x.reshape(3, 2), x.view(6), x.expand(2, 2, 3), x.unsqueeze(0), x.flatten(), x.split(1)
x.clone(), x.detach(), x.contiguous(), x.to(L.float64), x.half(), x.int(), x.bool(), x.isnan(), L.maximum(x, x), L.ones_like(x)
L.where(m, x, x), L.cat([x, x]), L.stack([x, x])
x.clone().add_(1)
x.tolist()
x.numpy()
M.masked_tensor(d, m[0])
M.masked_tensor(d, m.float())
M.masked_tensor(d, [True])
M.masked_tensor([1.0], m)
M.masked_tensor(d, m, requires_grad=True), M.as_masked_tensor(d, m)
leaf_gradient()
choice()
L.where(m, x, d), L.where(m, d, x), L.where(m, x, 0.0)
L.where(x)
F.softmin(x, dim=-1)
M.masked_tensor(x, m)
M.masked_tensor(d.to_sparse(), m)
M.masked_tensor(L.tensor([123456.5, 2.0]), L.tensor([True, False]))
x.to_sparse(), x.to_sparse_coo(), x.to_sparse_csr(), x.is_sparse_coo(), x.is_sparse_csr(), x.to_sparse_csr().is_sparse_csr()
x.to_sparse().get_data().to_dense(), x.to_sparse().get_mask().to_dense(), x.to_sparse_csr().get_data().to_dense(), x.to_sparse().to_dense()
x.to_sparse().sin(), x.to_sparse() * x.to_sparse(), x.to_sparse_csr() + x.to_sparse_csr(), x.to_sparse_csr().pow(2.0), x.to_sparse().is_sparse
x.to_sparse() + x.to_sparse_csr()
x.to_sparse().amax(), x.to_sparse().prod(), x.to_sparse().sum()
M.masked_tensor(d.to_sparse(), m.to_sparse()), M.masked_tensor(d.to_sparse_csr(), m.to_sparse_csr())
M.masked_tensor(d.to_sparse(), (d == 2).to_sparse())
M.sum(x, 1), M.softmax(x, 1), M.amax(x, 0), M.prod(x), M.norm(x, 2.0, 1), M.logsumexp(x, 1), M.cumsum(x, 1), M.median(x, 1)
"""


def results(L, M):
    """(expression, what it gives as text) for each, with the library `L` and its module `masked`, `M`."""
    F = L.nn.functional
    a, b = L.arange(6.0).reshape(2, 3), L.arange(9.0).reshape(3, 3) + 10
    lin, norm = L.nn.Linear(3, 2), L.nn.LayerNorm(3)
    with L.no_grad():
        lin.weight.copy_(L.arange(6.0).reshape(2, 3) * 0.1 - 0.2)
        lin.bias.copy_(L.tensor([0.5, -0.5]))

    def nested(parts, **options):
        return L.nested.nested_tensor(parts, layout=L.jagged, **options)

    def attend(q):
        heads = q.unflatten(-1, [2, 2]).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads)

    def through_linear():
        x = [L.ones(2, 3, requires_grad=True), L.full((1, 3), 2.0, requires_grad=True)]
        y = lin(L.nested.as_nested_tensor(x, layout=L.jagged)) * 2
        (y * y).values().sum().backward()
        return x[0].grad, x[1].grad, lin.weight.grad, y.requires_grad

    def through_padding():
        n = nested([L.ones(2, 3), L.ones(1, 3)], requires_grad=True)
        (n * n).to_padded_tensor(0.0).sum().backward()
        return n.grad.values(), n.is_leaf, n.grad.shape

    def through_parts():
        v = L.arange(10.0).reshape(5, 2).requires_grad_()
        n = L.nested.nested_tensor_from_jagged(v, L.tensor([0, 2, 5]))
        sum(t.sum() * (i + 1) for i, t in enumerate(n.unbind())).backward()
        return v.grad

    def leaf_gradient():
        x = M.masked_tensor(L.tensor([1.0, 2.0, 3.0]), L.tensor([True, False, True]), requires_grad=True)
        x.exp().sum().backward()
        return x.grad

    def choice():
        x = L.tensor([[0.0, 1.0], [1.0, 2.0]])
        return L.where(x < 1, M.masked_tensor(x * 0 + 2, x < 1), M.masked_tensor(x * 3, x >= 1))

    d, m = L.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), L.tensor([[True, False, True], [False, False, True]])
    names = dict(locals(), n=nested([a, b]), s=L.nested.nested_tensor([a, b]),
                 q=nested([L.arange(8.0).reshape(2, 4) % 3, L.arange(12.0).reshape(3, 4) % 5]), x=M.masked_tensor(d, m),
                 other=L.tensor([[True, True, True], [False, False, True]]),
                 none=M.masked_tensor(L.tensor([1.0, 2.0]), L.tensor([False, False])),
                 whole=M.masked_tensor(L.arange(4), L.tensor([True, False, True, True])))
    for text in (NESTED + MASKED).strip().split("\n"):
        if not text:
            continue
        try:
            answer = repr(eval(text, names))
        except Exception as error:
            answer = "%s: %s" % (type(error).__name__, str(error).splitlines()[0])
        # Numbers of ragged sizes count what was made before; nodes of graphs differ, as do the libraries' names.
        answer = re.sub(r"\bj\d+\b", "j", re.sub(r",\s+grad_fn=<\w+>", "", answer))
        yield text, answer.replace("tenon.", "torch.")
