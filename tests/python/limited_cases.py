# SPDX-License-Identifier: MIT
"""What is asked about tensors of uint16, uint32, uint64 and float8: expressions, of which make_limited.py writes down what
PyTorch says and test_limited.py sees that Tenon says the same. `L` is the library, `x` a tensor of the dtype `d`."""

UNSIGNED = """
x; x + 1; x + 1.5; x + True; x + x.to(L.int32); x + x.float(); x + L.tensor(1, dtype=L.int32); x * 2; x * x; x == 1; x != x
x < 2; -x; x // 2; x / 2; x % 2; x & 3; x | 8; x ^ x; x << 1; ~x; x ** 2; x.sum(); x.prod(); x.max(); x.float(); x.double()
x.half(); x.int(); x.to(L.int8); x[0]; x[0].item(); x[[1, 0]]; x[x == 2]; x[1:3]; L.cat([x, x]); L.stack([x, x])
L.cat([x, x.float()]); L.cat([x, x.int()]); x.tolist(); L.arange(3, dtype=d); L.ones(2, dtype=d); L.zeros(2, 3, dtype=d)
L.linspace(0, 3, 4, dtype=d); x.any(); x.all(); x.mean(); x.unique(); x.sort(); x.sort(descending=True); x.argmax()
x.clamp(0, 1); x.abs(); x.cumsum(0); L.equal(x, x); L.nonzero(x); x.bool(); x.numpy(); L.from_numpy(x.numpy())
L.full((2,), -1, dtype=d); L.full((2,), 70000, dtype=d); x.clone().fill_(70000); x.new_tensor(3)
L.zeros(2, dtype=d, requires_grad=True); x.view(L.uint8); x.view(2, 2).t(); x.view(2, 2).t().contiguous(); x.roll(1)
x.repeat(2); L.nn.functional.pad(x, (1, 1)); x.sin(); x.floor(); x.isnan(); x.element_size(); d.itemsize; d.is_signed
d.is_floating_point; x.type(); x.min(); x.amax(); x.median(); x.masked_fill(x == 1, 0); x.expand(2, 4); x.to(L.uint16)
x.to(L.float8_e5m2); L.iinfo(d); L.from_dlpack(x); x.sum(0, keepdim=True); x.clone().copy_(L.tensor([1.0, 2, 3, 4]))
x.clone().mul_(2); L.zeros_like(x); x.topk(2); L.promote_types(d, L.int32); L.promote_types(d, L.float32); L.result_type(x, 1.5)
list(x); x @ x; x.long(); L.tensor([True]).to(d); L.tensor([1 + 2j]).to(d); x.to(L.complex64)
L.tensor(numpy.array([1, 2], dtype=str(d)[6:])); x.scatter(0, L.tensor([0]), x)
x.round(); x.clone().round_(); x.logsumexp(0); x.view(2, 2).logsumexp(1); x.view(2, 2).t().logsumexp((0, 1)); x.clamp(0.5); x.clamp(1.5, 3)
x.clamp(0); x.clamp(max=2); x.clamp(x, x); x.clamp(x); x.clamp(L.ones(4) * 1.5); L.clamp(x, 1.5, out=L.zeros(4))
L.div(x, 1.5, rounding_mode="trunc"); L.div(x, L.ones(4) * 1.5, rounding_mode="floor"); L.div(x, 2, rounding_mode="trunc"); x // 1.5
L.div(x, 2, rounding_mode=None); L.div(L.ones(4), x, rounding_mode="floor"); x.is_signed(); x.view(2, 2).count_nonzero(0)
L.searchsorted(x.float().sort()[0], x); L.searchsorted(x.sort()[0], L.ones(4) * 1.5); L.bucketize(x, L.ones(2)); L.searchsorted(x, x)
L.searchsorted(x, x.long()); L.nn.functional.mse_loss(x, L.ones(4)); L.nn.functional.smooth_l1_loss(L.ones(4), x)
L.nn.functional.mse_loss(x, x)
"""

LARGE = """
x; x[0].item(); x.tolist(); x.float(); x.double(); x.sort(); x.unique(); x.bool(); x.long(); x.int(); x * x; x == 2 ** 64 - 1
L.full((2,), 2 ** 64 - 1, dtype=d); L.tensor([1e19]).to(d); L.tensor([-1.0]).to(d); L.tensor([1e19], dtype=L.float64).to(d)
x.round(); x.logsumexp(0); x.clamp(1.5); L.div(x, 1.5, rounding_mode="trunc")
x.half(); x.bfloat16(); x.to(L.complex64); L.tensor(2 ** 63, dtype=d); L.tensor([2 ** 64], dtype=d); L.tensor([-1], dtype=d)
x.clone().fill_(2 ** 63)
"""

FLOAT8 = """
x; x.float(); x.tolist(); x.view(L.uint8); x == x; x != x; x + x; x.abs(); x < x; x.half(); x.double().to(d); x[:2].int()
L.tensor([1.5], dtype=d); L.full((2,), 1.3, dtype=d); L.zeros(2, dtype=d); x.clone(); x[0]; x[0].item(); x[[1, 2]]
L.cat([x, x]); x.numpy(); x.isnan(); x.sum(); x.max(); y.clone().requires_grad_().to(d); x.clone().fill_(3); -x; L.stack([x, x])
x.view(L.int8); x[0] == x[0]; L.where(y > 0, x, x); x.masked_fill(y > 0, 1); x.sort(); x.clone().copy_(y); L.rand(3, dtype=d)
x.element_size(); d.itemsize; x.is_floating_point(); x.type(); L.promote_types(d, L.float32); x + 1.0; L.finfo(d)
x.reshape(2, 4).t().contiguous(); x.view(2, 4)[:, 1]; x.to(L.bfloat16); x[:2].bool(); L.ones(2, dtype=d); L.eye(2, dtype=d)
x.index_select(0, L.tensor([1])); x.cumsum(0); x.mean(); all_bytes.float().tolist()
all_bytes.float().to(d).view(L.uint8).tolist(); digest(many.to(d)); digest(many.double().to(d)); digest(many.half().to(d))
digest(many.bfloat16().to(d)); x * x; x.clone().mul_(x); L.mul(x, x, out=L.zeros(8)); L.tensor(2.3) * x; L.tensor(2.3).to(d) * x
x * x.float(); L.outer(x, x); x.view(2, 4) @ x.view(4, 2); x.view(4, 2).t() @ x.view(4, 2); x[:4] @ x.view(4, 2)
a @ a.t(); L.mm(a, a.t(), out=L.zeros(3, 3).to(d)); L.mm(a, a.t(), out=L.zeros(3, 3)); L.addmm(a[:, :3], a, a.t(), beta=2, alpha=0.5)
L.addmm(a[0, :3], a, a.t()); a[:, :3].clone().addmm_(a, a.t()); L.mm(a[:, :0], a[:, :0].t()); L.nn.functional.linear(a, a)
L.nn.functional.linear(a, a, a[0, :3]); L.tensordot(a, a.t(), 1); a @ a[0]; a[0].dot(a[0]); a[None] @ a.t()[None]; a @ a.t().float()
x.sum(dtype=L.float32); a.sum(0, dtype=L.float64); a.sum(1, dtype=d); L.sum(a, 1, out=L.zeros(3)); x.mean(dtype=L.float32)
L.mean(a, 1, out=L.zeros(3)); L.mean(a, 1, out=L.zeros(3).to(d)); a.prod(dtype=L.float32); a.prod(1, dtype=L.float64); x.prod()
a.cumsum(1, dtype=L.float32); a.cumprod(1, dtype=L.float32); a.nansum(dtype=L.float32); a.count_nonzero(1); x.is_signed(); a.round()
a.logsumexp(0); L.zeros(3).to(d).index_put_((L.tensor([1, 1, 2]),), a[0, :3], accumulate=True)
L.zeros(2, 20).to(d).index_put_((L.tensor([1, 1, 0]),), a.repeat(1, 4), accumulate=True)
"""


def results(L, numpy):
    """(dtype, expression, what it gives as text) for each, with the library `L`."""
    import hashlib

    def digest(t):
        return hashlib.sha256(bytes(t.view(L.uint8).tolist())).hexdigest()

    def say(names, expressions):
        for text in expressions.replace("\n", ";").split(";"):
            text = text.strip()
            if not text:
                continue
            try:
                answer = repr(eval(text, dict(names, L=L, numpy=numpy, digest=digest)))
            except Exception as error:
                answer = "%s: %s" % (type(error).__name__, str(error).splitlines()[0])
            yield str(names["d"]).rsplit(".", 1)[-1], text, answer.replace("tenon.", "torch.")

    for name in ("uint16", "uint32", "uint64"):
        d = getattr(L, name)
        yield from say({"x": L.tensor([1, 2, 40000, 7], dtype=d), "d": d}, UNSIGNED)
    yield from say({"x": L.tensor([2 ** 64 - 1, 2 ** 63, 5], dtype=L.uint64), "d": L.uint64}, LARGE)
    y = L.tensor([1.1, 2, -500, 1e9, float("nan"), float("inf"), 0.001, -0.0])
    many = L.cat([L.linspace(-2, 2, 4001, dtype=L.float64) * scale for scale in (1e-4, 0.01, 0.3, 7, 100, 300, 1e5)]).float()
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        d = getattr(L, name)
        a = (L.arange(15.0).view(3, 5) * 0.3 - 1).to(d)
        yield from say({"x": y.to(d), "y": y, "d": d, "many": many, "a": a, "all_bytes": L.arange(256, dtype=L.uint8).view(d)}, FLOAT8)
