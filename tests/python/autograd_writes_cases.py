# SPDX-License-Identifier: MIT
"""Views, writes in place, version counters. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, scenario, text


# ---- version counters ----


@scenario
def written_saved_values_are_named(torch, log):
    def x():
        return leaf(torch, 1, 2)

    def one(make):
        try:
            make()
            log.add("ok")
        except RuntimeError as e:
            log.add(str(e).split("\n")[0])

    def a():
        t = x() * 1
        y = t * t
        t.add_(1)
        y.sum().backward()

    def b():
        t = x().exp()
        t += 1
        t.sum().backward()

    def c():
        t = x() * 1
        y = t[0] * t[1]
        t[0] = 5
        y.backward()

    def d():
        w = x()
        y = (w * w).sum()
        with torch.no_grad():
            w.add_(1)
        y.backward()

    def e():
        t = (x() * 1).reshape(2, 1)
        y = t @ t.t()
        t.detach().zero_()
        y.sum().backward()

    def f():
        t = x() * 1
        y = t.sigmoid()
        z = y * 2
        y.data.add_(5)
        z.sum().backward()

    def g():
        w = torch.ones(2, dtype=torch.float64)
        y = x() * w
        w.fill_(7)
        w.fill_(8)
        y.sum().backward()

    def h():
        w = torch.ones(2, 2, dtype=torch.float64)
        y = w @ x()
        w.t_()
        y.sum().backward()

    def i():
        idx = torch.tensor([0, 1])
        y = (x() * 1)[idx]
        idx.add_(0)
        y.sum().backward()

    def j():
        t = x() * 1
        y = torch.relu(t)
        y.mul_(2)
        y.sum().backward()

    def k():
        t = x().float() * 1
        y = torch.softmax(t, 0)
        y[0] = 1
        y.sum().backward()

    for make in (a, b, c, d, e, f, g, h, i, j, k):
        one(make)


@scenario
def version_counters(torch, log):
    x = torch.ones(4)
    log.add(x._version)
    x.add_(1)
    v = x[:2]
    v.mul_(2)
    log.add(x._version, v._version)
    d = x.detach()
    d.zero_()
    log.add(x._version)
    x.data.zero_()
    log.add(x._version, x.data._version)
    torch.add(x, x, out=x)
    log.add(x._version)
    x[0] = 1
    x[torch.tensor([0])] = 1
    log.add(x._version)
    x.copy_(torch.ones(4))
    x.set_(torch.zeros(4))
    log.add(x._version)
    x.resize_(4)
    x.resize_(6)
    log.add(x._version)
    x.requires_grad_()
    x.detach_()
    log.add(x._version)
    x.unsqueeze_(0).squeeze_(0).t_()
    log.add(x._version)
    with torch.inference_mode():
        i = torch.ones(2)
    log.tries(lambda: i._version)
    x.normal_()
    x.bernoulli_(0.5)
    log.add(x._version)
    torch._foreach_add_([x, x], 1)
    log.add(x._version)
    x.swapaxes_(0, 0) if x.dim() else None
    log.add(x._version)
    torch.autograd.graph.increment_version(x)
    log.add(x._version)
    log.tries(lambda: torch.autograd.graph.increment_version(i))


# ---- views and writes ----


@scenario
def writes_to_leaves(torch, log):
    x = leaf(torch, 1, 2, 3, 4)

    def item(i):
        x[i] = 1.0

    log.tries(lambda: x.add_(1))
    log.tries(lambda: x.view(2, 2).add_(1))
    log.tries(lambda: item(0))
    log.tries(lambda: item(torch.tensor([0])))
    log.tries(lambda: x.zero_())
    log.tries(lambda: x.copy_(torch.ones(4, dtype=torch.float64)))
    log.tries(lambda: torch.add(x, 1, out=x))
    log.tries(lambda: torch.add(torch.ones(4), 1, out=x))
    log.tries(lambda: torch.add(x, 1, out=torch.ones(4, dtype=torch.float64)))
    log.tries(lambda: x.unsqueeze_(0))
    log.tries(lambda: x.t_())
    log.tries(lambda: x.detach().add_(1))
    with torch.no_grad():
        log.tries(lambda: x.add_(1))
        log.tries(lambda: torch.add(x, 1, out=x).requires_grad)
        log.tries(lambda: x.view(2, 2).mul_(2).requires_grad)
    log.add(x)
    log.tries(lambda: x.resize_(2))
    log.tries(lambda: x.expand(2, 4).add_(1))
    log.tries(lambda: torch._foreach_add_([x], 1))
    log.tries(lambda: x.unbind()[0].add_(1))
    log.tries(lambda: x.chunk(2)[0].add_(1))
    log.tries(lambda: x.set_(torch.ones(2, dtype=torch.float64)))
    x.data = torch.zeros(2, dtype=torch.float64)
    log.add(x, x.requires_grad, x.is_leaf)


@scenario
def writes_to_views_of_several_results(torch, log):
    for name, make in {
        "split": lambda t: t.split(1), "chunk": lambda t: t.chunk(2), "unbind": lambda t: t.unbind(), "tensor_split": lambda t: t.tensor_split(2),
        "split_with_sizes": lambda t: t.split([1, 1]), "hsplit": lambda t: t.hsplit(2), "unsafe_split": lambda t: t.unsafe_split(1),
        "unsafe_chunk": lambda t: t.unsafe_chunk(2), "iter": lambda t: tuple(t), "dsplit": lambda t: t.reshape(1, 1, 2).dsplit(2),
        "broadcast": lambda t: torch.broadcast_tensors(t, torch.ones(2, 2, dtype=torch.float64)), "meshgrid": lambda t: torch.meshgrid(t, t, indexing="ij"),
        "atleast_2d": lambda t: torch.atleast_2d(t, t), "real": lambda t: (torch.view_as_real(torch.complex(t, t)),),
    }.items():
        x = leaf(torch, 1, 2)
        t = x * 1
        a = make(t)[0]
        log.add(name, a.grad_fn.name(), a._base is t, a._is_view())
        log.tries(lambda: a.mul_(3))
        log.tries(lambda: (a.sum() * 1).backward(retain_graph=True))
        log.tries(lambda: t.sum().backward())
        log.add(x.grad)


@scenario
def base_is_written_after_views_of_several_results(torch, log):
    x = leaf(torch, 1, 2)
    t = x * 1
    a, b = t.split(1)
    t.mul_(2)
    log.tries(lambda: a.grad_fn.name())
    log.tries(lambda: a.sum().backward())
    log.tries(lambda: (a * 2))
    log.tries(lambda: a.view(1, 1))
    log.tries(lambda: a.detach())
    log.tries(lambda: a.requires_grad)
    t.sum().backward()
    log.add(x.grad)


@scenario
def views_made_without_recording(torch, log):
    x = leaf(torch, 1, 2, 3, 4)
    t = x * 1
    with torch.no_grad():
        v = t[:2]
    log.add(v.requires_grad, v.grad_fn, v.is_leaf)
    log.tries(lambda: v.mul_(2))
    log.tries(lambda: v.view(2, 1).mul_(2))
    with torch.no_grad():
        v.mul_(2)
        log.add(t)
        w = v.view(2, 1)
        w.add_(1)
    log.add(t)
    log.tries(lambda: w.grad_fn)
    log.tries(lambda: w.add_(1))
    t.mul_(3)
    log.tries(lambda: v.grad_fn)
    log.tries(lambda: v + 1)
    t.sum().backward()
    log.add(x.grad)
    with torch.inference_mode():
        i = t[:2]
    log.tries(lambda: i.mul_(2))
    log.tries(lambda: i.view(2, 1).mul_(2))
    log.tries(lambda: i * 2)
    with torch.inference_mode():
        log.tries(lambda: i.mul_(2))
        log.tries(lambda: t.mul_(2))
    log.tries(lambda: t.sum().backward())


@scenario
def a_view_is_written_and_its_base_follows(torch, log):
    x = leaf(torch, 1, 2, 3, 4)
    t = x * 1
    v = t[:2]
    w = t.view(2, 2)
    log.add(v.grad_fn.name(), w.grad_fn.name())
    v.mul_(10)
    log.add(t.grad_fn.name(), v.grad_fn.name(), w.grad_fn.name())
    log.add([f.name() if f else None for f, _ in t.grad_fn.next_functions])
    (w ** 2).sum().backward()
    log.add(x.grad)
    x.grad = None
    t = x * 1
    v = t.view(2, 2)[0]
    y = v * 3
    v.copy_(torch.ones(2, dtype=torch.float64) * 7)
    (t.sum() + y.sum()).backward()
    log.add(x.grad)
    x.grad = None
    t = torch.zeros(4, dtype=torch.float64)
    t[1:3] = x[:2] * 2
    t[torch.tensor([0])] = x[3]
    log.add(t.grad_fn.name(), t.requires_grad, t.is_leaf)
    (t * t).sum().backward()
    log.add(x.grad)


@scenario
def hooks_and_kept_gradients_when_written(torch, log):
    x = leaf(torch, 1, 2)
    t = x * 3
    t.retain_grad()
    t.register_hook(lambda g: log.add("first", g))
    t.mul_(2)
    t.register_hook(lambda g: log.add("second", g))
    t.mul_(5)
    t.register_hook(lambda g: log.add("third", g))
    t.sum().backward()
    log.add(t.grad, x.grad)
    x.grad = None
    t = x * 3
    v = t[:1]
    v.retain_grad()
    v.register_hook(lambda g: log.add("view", g))
    t.mul_(2)
    (v.sum() + t.sum()).backward()
    log.add(v.grad, x.grad, v.retains_grad)
    w = x * 1
    w.retain_grad()
    w.retain_grad()
    w[0] = 5
    (w * w).sum().backward()
    log.add(w.grad)
    log.tries(lambda: torch.ones(2).retain_grad())
    x.retain_grad()
    log.add(x.retains_grad)


@scenario
def hooks_of_a_leaf_that_becomes_a_result(torch, log):
    a = torch.zeros(2, dtype=torch.float64)
    x = leaf(torch, 1, 2)
    log.tries(lambda: a.register_hook(lambda g: None))
    a.requires_grad_()
    a.register_hook(lambda g: log.add("leaf hook", g))
    with torch.no_grad():
        a.add_(1)
    (a * 2).sum().backward()
    b = torch.zeros(2, dtype=torch.float64)
    b.copy_(x)
    b.register_hook(lambda g: log.add("copy hook", g))
    (b * 3).sum().backward()
    log.add(x.grad, b.is_leaf, b.grad_fn.name())
    c = torch.zeros(2, dtype=torch.float64)
    c.add_(x)
    c.mul_(2)
    c.sum().backward()
    log.add(x.grad)


@scenario
def detach_in_place(torch, log):
    x = leaf(torch, 1, 2)
    t = x * 2
    v = t[:1]
    log.tries(lambda: v.detach_())
    u = t.exp()
    t.detach_()
    log.add(t.requires_grad, t.is_leaf)
    log.tries(lambda: u.sum().backward())
    log.add(x.grad)
    t = x * 2
    y = t * t
    t.detach_()
    log.tries(lambda: y.sum().backward())
    log.tries(lambda: v.requires_grad)
    with torch.no_grad():
        log.tries(lambda: x[:1].detach_())
    t = x * 2
    w = t.view(2, 1)
    t.detach_()
    log.tries(lambda: w.grad_fn)
    log.tries(lambda: w.sum().backward())


@scenario
def data_and_set(torch, log):
    x = leaf(torch, 1, 2)
    y = (x * x).sum()
    x.data = torch.tensor([5.0, 6.0], dtype=torch.float64)
    y.backward()
    log.add(x.grad, x)
    log.tries(lambda: setattr(x, "data", torch.ones(2)))
    log.tries(lambda: setattr(x, "data", torch.ones(2, dtype=torch.int64)))
    log.tries(lambda: setattr(x, "data", 5))
    log.tries(lambda: setattr(x, "data", torch.ones(2, device="meta")))
    log.add(x.dtype)
    z = leaf(torch, 1, 2)
    with torch.no_grad():
        log.tries(lambda: z.set_(torch.ones(3, dtype=torch.float64)))
    log.add(z.shape, z.requires_grad)
    d = z.data
    d.fill_(9)
    log.add(z, d.requires_grad, d._version, z._version)


@scenario
def real_and_imaginary_parts_are_assigned(torch, log):
    x = leaf(torch, 1, 2)
    z = torch.zeros(2, dtype=torch.complex128)
    z.imag = x
    log.add(z, z.requires_grad, z.grad_fn.name())
    z.real = x * 3
    log.add(z)
    (z * z.conj()).real.sum().backward()
    log.add(x.grad)
    r = torch.ones(2, dtype=torch.float64)
    log.tries(lambda: setattr(r, "real", x.detach()))
    log.add(r)
    log.tries(lambda: setattr(r, "imag", x.detach()))
    log.tries(lambda: setattr(z, "imag", torch.ones(3)))
    log.tries(lambda: setattr(z, "imag", 5.0))
    c = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
    log.tries(lambda: setattr(c, "imag", x))
    with torch.no_grad():
        c.imag = torch.ones(2, dtype=torch.float64)
        c.real = torch.ones(1, dtype=torch.float64)
    log.add(c, c.requires_grad, c._version)


# ---- more of writes and views ----


@scenario
def writes_under_every_mode(torch, log):
    for outer in "grad", "no_grad", "inference":
        for inner in "grad", "no_grad", "inference":
            x = leaf(torch, 1, 2, 3, 4)
            t = x * 1
            modes = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}
            with modes[outer]():
                v = t[1:3]
            log.add(outer, inner)

            def write():
                with modes[inner]():
                    v.mul_(2)

            log.tries(write)
            log.tries(lambda: t.sum().backward())
            log.add(x.grad, t._version)


@scenario
def views_of_views_are_written(torch, log):
    x = leaf(torch, *range(1, 13))
    t = x * 1
    a = t.view(3, 4)
    b = a.t()
    c = b[1:3]
    d = c.unsqueeze(0)
    d.mul_(2)
    c.add_(1)
    b[0].exp_()
    log.add([n.grad_fn.name() for n in (t, a, b, c, d)])
    (a * b.t()).sum().backward()
    log.add(x.grad)
    x.grad = None
    t = x * 1
    e = t.view(3, 4).expand(2, 3, 4)
    log.tries(lambda: e.mul_(2))
    log.tries(lambda: e[0].mul_(2))
    log.tries(lambda: t.as_strided((3,), (0,)).mul_(2))
    z = torch.view_as_complex(t.view(6, 2))
    z.mul_(1j)
    log.add(t.grad_fn.name())
    t.sum().backward()
    log.add(x.grad)


@scenario
def diagonals_and_selections_are_written(torch, log):
    x = leaf(torch, *range(1, 10))
    t = (x * 1).view(3, 3)
    t.diagonal().fill_(0)
    t[:, 1].mul_(x[0])
    t[0, 0] = x[8]
    t.select(0, 2).copy_(x[:3])
    t.narrow(1, 2, 1).zero_()
    t.transpose(0, 1)[0].neg_()
    t[torch.tensor([0, 1]), torch.tensor([1, 2])] = x[4:6]
    t[t.detach() > 5] *= 2
    log.add(t)
    (t ** 2).sum().backward()
    log.add(x.grad)
    x.grad = None
    s = torch.zeros(3, 3, dtype=torch.float64)
    s.index_add_(0, torch.tensor([0, 0]), x.view(3, 3)[:2])
    s.index_copy_(1, torch.tensor([2]), x.view(3, 3)[:, :1])
    s.index_fill_(0, torch.tensor([1]), 3.0)
    s.scatter_(0, torch.tensor([[0, 1, 2]]), x[:3].view(1, 3))
    s.scatter_add_(1, torch.tensor([[0], [1], [2]]), x[3:6].view(3, 1))
    s.masked_fill_(torch.eye(3, dtype=torch.bool), 1.0)
    s.masked_scatter_(torch.eye(3, dtype=torch.bool), x[6:])
    s.put_(torch.tensor([0]), x[8:])
    log.add(s)
    (s * s).sum().backward()
    log.add(x.grad)


@scenario
def in_place_operators_and_what_they_save(torch, log):
    for name, args in (("sigmoid_", ()), ("tanh_", ()), ("exp_", ()), ("relu_", ()), ("sqrt_", ()), ("pow_", (2,)), ("sin_", ()), ("cos_", ()),
                       ("log_", ()), ("abs_", ()), ("reciprocal_", ()), ("rsqrt_", ()), ("clamp_", (0.5, 1.5)), ("neg_", ()), ("square_", ()),
                       ("floor_", ()), ("round_", ()), ("erf_", ()), ("sign_", ()), ("cumsum_", (0,)), ("tril_", ()), ("zero_", ()), ("fill_", (3,))):
        x = leaf(torch, 0.7, 1.3)
        t = (x * 1).view(1, 2)
        log.tries(lambda: getattr(t, name)(*args).grad_fn.name())
        log.tries(lambda: (t * t.detach()).sum().backward())
        log.add(name, x.grad)


@scenario
def a_saved_view_notices_writes_of_its_base(torch, log):
    def one(write):
        x = leaf(torch, 1, 2, 3, 4)
        t = x * 1
        v = t[:2]
        y = v * v
        w = t[2:]
        write(t, v, w)
        try:
            (y.sum() + t.sum()).backward()
            log.add("ok", x.grad)
        except RuntimeError as e:
            log.add(str(e).split(". Hint")[0])

    one(lambda t, v, w: None)
    one(lambda t, v, w: t.add_(1))
    one(lambda t, v, w: w.add_(1))
    one(lambda t, v, w: t.detach().add_(1))
    one(lambda t, v, w: t.data.add_(1))
    one(lambda t, v, w: w.detach().zero_())
    one(lambda t, v, w: torch._foreach_add_([w], 1))
    one(lambda t, v, w: torch.add(w.detach(), 1, out=w.detach()))
    one(lambda t, v, w: w.resize_(2) if not w.requires_grad else None)


@scenario
def leaves_are_views(torch, log):
    base = torch.zeros(4, dtype=torch.float64)
    v = base[:2]
    v.requires_grad_()
    log.add(v.is_leaf, v._is_view(), base.requires_grad)
    (v * 3).sum().backward()
    log.add(v.grad, base.grad)
    log.tries(lambda: v.add_(1))
    log.tries(lambda: base.add_(1))
    log.add(v, v.grad_fn)
    log.tries(lambda: (v * v).sum().backward())
    log.add(v.grad)
    x = leaf(torch, 5, 6)
    log.tries(lambda: base[:2].copy_(x))
    log.tries(lambda: v.grad_fn)
    log.tries(lambda: (v * 2).sum().backward())
    d = x.detach()
    d.requires_grad_()
    (d * x).sum().backward()
    log.add(d.grad, x.grad, d._is_view())
    with torch.no_grad():
        n = x[:1]
    log.add(n.requires_grad, n.is_leaf)
    log.tries(lambda: (n * 2).sum().backward())
    log.add(x.grad, n.grad)


@scenario
def split_results_are_used_after_their_base_was_written(torch, log):
    for name in "unbind", "split", "chunk", "tensor_split":
        x = leaf(torch, 1, 2, 3, 4)
        t = x * 1
        parts = getattr(t, name)(*([] if name == "unbind" else [2]))
        with torch.no_grad():
            t.mul_(2)
        log.add(name)
        log.tries(lambda: parts[0].grad_fn.name())
        log.tries(lambda: parts[0].sum().backward())
        x = leaf(torch, 1, 2, 3, 4)
        with torch.no_grad():
            t = x.clone()
            parts = getattr(t, name)(*([] if name == "unbind" else [2]))
        log.tries(lambda: parts[0].copy_(x[0]))
        log.tries(lambda: parts[0].mul_(2))
        log.add(t.requires_grad, x.grad)


@scenario
def assignments_through_properties(torch, log):
    x = leaf(torch, 1, 2, 3, 4)
    t = (x * 1).view(2, 2)
    t.T[0] = x[:2]
    t.mT[1].mul_(2)
    t.H.add_(1)
    t[...] += x[0]
    t[None][0, 0] *= 3
    t[:, -1:] -= x[2]
    t[True][0] /= 2
    log.add(t, t.grad_fn.name())
    t.prod().backward()
    log.add(x.grad)

    def put(i, v):
        t[i] = v

    log.tries(put, (0, 0, 0), 1.0)
    log.tries(put, 5, 1.0)
    log.tries(put, slice(0, 1), torch.ones(3))
    log.tries(put, torch.tensor([True]), 1.0)
    log.tries(put, 0, "text")
    log.tries(put, 0, x[:3])


@scenario
def out_arguments(torch, log):
    x = leaf(torch, 1, 2)
    plain = torch.zeros(2, dtype=torch.float64)
    log.tries(lambda: torch.mul(x, 2, out=plain))
    log.tries(lambda: torch.mul(plain, 2, out=x))
    log.tries(lambda: torch.mul(plain, 2, out=(x * 1)))
    log.tries(lambda: torch.cat([x, x], out=torch.zeros(4, dtype=torch.float64)))
    log.tries(lambda: torch.sum(x, 0, out=torch.zeros((), dtype=torch.float64)))
    log.tries(lambda: torch.mm(x.view(1, 2), x.view(2, 1), out=torch.zeros(1, 1, dtype=torch.float64)))
    with torch.no_grad():
        log.tries(lambda: torch.mul(x, 2, out=plain))
        t = x * 1
        log.tries(lambda: torch.mul(x, 3, out=t))
    y = plain * 2
    log.tries(lambda: torch.mul(plain, 5, out=y).requires_grad)
    z = x * x
    with torch.no_grad():
        torch.add(z, 1, out=z)
    log.tries(lambda: z.sum().backward())
    w = x.exp()
    with torch.no_grad():
        torch.add(w, 1, out=w)
    log.tries(lambda: w.sum().backward())
