# SPDX-License-Identifier: MIT
"""What the engine promises: order, freeing, orders of derivatives, threads, shared memory. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, scenario


# ---- rules that the engine keeps ----


@scenario
def fan_in_and_fan_out(torch, log):
    x = leaf(torch, 2)
    calls = []
    y = x * 1
    y.register_hook(lambda g: calls.append(float(g)))
    (y * 2 + y * 3 + y * y + y.exp().detach() * y).sum().backward()
    log.add(calls, x.grad)
    a, b = leaf(torch, 1, 2), leaf(torch, 3, 4)
    s = torch.stack([a, b, a])
    s[0].sum().backward(retain_graph=True)
    log.add(a.grad, b.grad)
    torch.autograd.backward([s.sum(), s[1].sum()], retain_graph=True)
    log.add(a.grad, b.grad)
    torch.autograd.backward([s, s], [torch.ones(3, 2, dtype=torch.float64), None] if False else
                            [torch.ones(3, 2, dtype=torch.float64)] * 2)
    log.add(a.grad, b.grad)


@scenario
def broadcast_and_dtypes_of_gradients(torch, log):
    x = torch.ones(3, 1, requires_grad=True)
    y = torch.ones(1, 4, dtype=torch.float64, requires_grad=True)
    (x * y).sum().backward()
    log.add(x.grad, x.grad.dtype, y.grad, y.grad.dtype)
    h = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (h.float() * 3).sum().backward()
    log.add(h.grad, h.grad.dtype)
    c = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    r = torch.ones(2, requires_grad=True)
    (c * r).abs().sum().backward()
    log.add(c.grad, r.grad, r.grad.dtype)
    log.tries(lambda: (c * 2).sum().backward())
    z = torch.tensor(3.0, requires_grad=True)
    (torch.ones(5) * z).sum().backward()
    log.add(z.grad)
    s = torch.ones(2, requires_grad=True)
    (s * 2.0 + torch.tensor(1, dtype=torch.float64)).sum().backward()
    log.add(s.grad, s.grad.dtype)


@scenario
def parts_that_lead_nowhere(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    z = (x * y.detach()).sum() + (y.argmax() * 1.0)
    z.backward()
    log.add(x.grad, y.grad)
    w = torch.where(torch.tensor([True, False]), x, y)
    w.sum().backward()
    log.add(x.grad, y.grad)
    log.tries(lambda: x.round().sum().backward())
    log.tries(lambda: (x > 0).float().sum().backward())
    log.tries(lambda: x.long().sum().backward())
    log.tries(lambda: x.sign().sum().backward())
    log.add(x.grad)
    m = torch.zeros(2, dtype=torch.float64)
    m[x.detach() > 1] = y[1]
    m.sum().backward()
    log.add(y.grad)


@scenario
def strange_shapes(torch, log):
    x = torch.ones(0, 3, dtype=torch.float64, requires_grad=True)
    x.sum().backward()
    log.add(list(x.grad.shape))
    y = torch.ones((), dtype=torch.float64, requires_grad=True)
    y.expand(0).sum().backward()
    log.add(y.grad)
    z = torch.ones(1, 1, 1, dtype=torch.float64, requires_grad=True)
    z.backward()
    log.add(z.grad)
    log.tries(lambda: torch.ones(0, requires_grad=True).backward())
    e = torch.empty(2, 0, requires_grad=True)
    torch.cat([e, torch.ones(2, 1)], 1).sum().backward()
    log.add(list(e.grad.shape))


@scenario
def copies_and_pickles_of_tensors_with_histories(torch, log):
    import copy
    import pickle
    x = leaf(torch, 1, 2)
    (x * 2).sum().backward()
    c = copy.deepcopy(x)
    log.add(c.requires_grad, c.grad, c.is_leaf, c.grad is x.grad)
    log.tries(lambda: copy.deepcopy(x * 2))
    s = copy.copy(x)
    log.add(s.requires_grad, s.data_ptr() == x.data_ptr())
    p = pickle.loads(pickle.dumps(x))
    log.add(p.requires_grad, p.grad)
    log.tries(lambda: pickle.dumps(x * 2) and "fine")
    log.tries(lambda: pickle.dumps((x * 2).grad_fn))
    log.tries(lambda: (x * 2).numpy())
    log.tries(lambda: (x * 2).tolist())
    log.tries(lambda: torch.tensor(x * 2).requires_grad)
    log.tries(lambda: bool(x.sum()))


@scenario
def parameters(torch, log):
    nn = torch.nn
    p = nn.Parameter(torch.ones(2))
    log.add(p.requires_grad, p.is_leaf, p)
    log.tries(lambda: nn.Parameter(torch.ones(2, dtype=torch.int64)))
    log.tries(lambda: nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False))
    x = leaf(torch, 1, 2)
    q = nn.Parameter(x * 2)
    log.add(q.is_leaf, q.grad_fn)
    m = nn.Linear(2, 2)
    log.tries(lambda: setattr(m, "weight", torch.ones(2, 2)))
    m.requires_grad_(False)
    log.add(m(torch.ones(1, 2)).requires_grad)
    m.weight.requires_grad_()
    with torch.no_grad():
        m.weight.fill_(1)
        m.bias.fill_(0)
    out = m(torch.ones(1, 2))
    m.weight.data.zero_()
    out.sum().backward()
    log.add(m.weight.grad, m.bias.grad)
    out = (m(torch.ones(1, 2)) ** 2).sum()
    with torch.no_grad():
        m.weight.add_(1)
    log.tries(lambda: out.backward())
    m.zero_grad()
    log.add(m.weight.grad)
    m.weight.grad = torch.ones(2, 2)
    m.zero_grad(set_to_none=False)
    log.add(m.weight.grad)


@scenario
def module_hooks(torch, log):
    nn = torch.nn
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with torch.no_grad():
        m[0].weight.fill_(1)
        m[0].bias.fill_(0)
    m[0].register_full_backward_pre_hook(lambda mod, go: log.add("pre", go))
    m[0].register_full_backward_hook(lambda mod, gi, go: log.add("full", gi, go))
    m.register_full_backward_hook(lambda mod, gi, go: log.add("seq", gi, go))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    log.add(x.grad)
    m(torch.ones(1, 2)).sum().backward()
    b = nn.Linear(2, 2)
    with torch.no_grad():
        b.weight.fill_(1)
    b.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10,))
    x.grad = None
    b(x).sum().backward()
    log.add(x.grad)
    out = b(x)
    log.tries(lambda: out.add_(1))
    c = nn.Linear(2, 2)
    c.register_backward_hook(lambda mod, gi, go: log.add("old", len(gi), len(go)))
    c(x).sum().backward()
    log.tries(lambda: c.register_full_backward_hook(lambda *a: None))
    d = nn.Linear(2, 2)
    d.register_full_backward_hook(lambda mod, gi, go: (1, 2, 3))
    log.tries(lambda: d(x).sum().backward())


# ---- more of passes ----


@scenario
def graphs_are_freed_and_kept(torch, log):
    x = leaf(torch, 1, 2)
    a = x * x
    b, c = a.exp(), a.sin()
    b.sum().backward()
    log.tries(lambda: c.sum().backward())
    a = x * 2
    b, c = a + 1, a + 2
    b.sum().backward()
    log.tries(lambda: c.sum().backward())
    a = x * x
    b, c = a.exp(), a.sin()
    b.sum().backward(retain_graph=True)
    c.sum().backward()
    log.tries(lambda: b.sum().backward())
    log.add(x.grad)
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    log.tries(lambda: torch.autograd.grad(y, x))
    y = (x * x).sum()
    g, = torch.autograd.grad(y, x, create_graph=True)
    log.tries(lambda: torch.autograd.grad(y, x))
    log.tries(lambda: g.sum().backward())
    y = (x * x).sum()
    torch.autograd.grad(y, x, create_graph=True, retain_graph=False)
    log.tries(lambda: torch.autograd.grad(y, x))
    z = x.exp()
    z.sum().backward()
    log.tries(lambda: z.grad_fn._saved_result)
    log.tries(lambda: (z * 2).sum().backward())
    # only part of a graph
    a = x * x
    b = a * a
    torch.autograd.grad(b.sum(), a, retain_graph=False)
    log.tries(lambda: a.sum().backward())
    log.tries(lambda: b.sum().backward())


@scenario
def gradients_with_respect_to_results(torch, log):
    x = leaf(torch, 1, 2)
    a = x * 2
    b = a * a
    c = b.sum()
    log.add(torch.autograd.grad(c, [x, a, b, c], retain_graph=True))
    log.tries(lambda: torch.autograd.grad(a, b, torch.ones(2, dtype=torch.float64), retain_graph=True))
    log.tries(lambda: torch.autograd.grad(c, a.detach(), retain_graph=True))
    log.tries(lambda: torch.autograd.grad(c, a.view(2), retain_graph=True))
    log.tries(lambda: torch.autograd.grad(c, a.clone(), allow_unused=True, retain_graph=True))
    log.tries(lambda: torch.autograd.grad([b, c], [a, a], [torch.ones(2, dtype=torch.float64), None], retain_graph=True))
    u, v = a.unbind()
    log.tries(lambda: torch.autograd.grad(u * v, [u, v, a], retain_graph=True))
    log.tries(lambda: torch.autograd.grad(u, a, retain_graph=True))
    a.register_hook(lambda g: g * 100)
    log.add(torch.autograd.grad(c, a, retain_graph=True), torch.autograd.grad(c, x, retain_graph=True))
    c.backward(inputs=[a, x], retain_graph=True)
    log.add(a.grad, x.grad)


@scenario
def higher_orders(torch, log):
    x = leaf(torch, 0.5, 1.5)
    y = (x.exp() * x.sin()).sum()
    for i in range(5):
        g, = torch.autograd.grad(y, x, create_graph=True)
        log.add(g)
        y = g.sum()
    z = x ** 3
    log.add(torch.autograd.grad(torch.autograd.grad(torch.autograd.grad(z.sum(), x, create_graph=True)[0].sum(), x,
                                                    create_graph=True)[0].sum(), x, create_graph=True))
    w = x.relu()
    g, = torch.autograd.grad(w.sum(), x, create_graph=True)
    log.add(g.requires_grad)
    log.tries(lambda: torch.autograd.grad(g.sum(), x))
    log.tries(lambda: torch.autograd.grad(g.sum(), x, allow_unused=True))
    lin = (x * 3).sum()
    g, = torch.autograd.grad(lin, x, create_graph=True)
    log.add(g.requires_grad)
    log.tries(lambda: torch.autograd.grad(g.sum(), x, allow_unused=True))
    v = torch.ones(2, dtype=torch.float64, requires_grad=True)
    g, = torch.autograd.grad(x ** 2, x, v, create_graph=True)
    log.add(torch.autograd.grad(g.sum(), v))


@scenario
def penalties_on_gradients(torch, log):
    w = leaf(torch, 0.3, -0.7)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    out = torch.tanh((w * x).sum())
    g, = torch.autograd.grad(out, x, create_graph=True)
    loss = out + (g.norm() - 1) ** 2
    loss.backward()
    log.add(w.grad, x.grad)
    m = torch.nn.Linear(2, 3).double()
    with torch.no_grad():
        for i, p in enumerate(m.parameters()):
            p.copy_(torch.arange(p.numel(), dtype=torch.float64).view_as(p) / 10 + i)
    out = torch.nn.functional.softplus(m(x)).sum()
    g, = torch.autograd.grad(out, x, create_graph=True)
    (g ** 2).sum().backward()
    log.add(m.weight.grad, m.bias.grad)


@scenario
def complex_gradients(torch, log):
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    log.add(z.grad)
    z.grad = None
    (z.abs() ** 2).sum().backward()
    log.add(z.grad)
    z.grad = None
    log.tries(lambda: (z ** 2).sum().backward())
    log.tries(lambda: (z ** 2).sum().backward(torch.tensor(1j, dtype=torch.complex128)))
    log.tries(lambda: (z ** 2).sum().backward(torch.tensor(1.0, dtype=torch.float64)))
    log.add(z.grad)
    z.grad = None
    torch.view_as_real(z).pow(2).sum().backward()
    log.add(z.grad)
    x = leaf(torch, 1, 2)
    (x * z.detach()).abs().sum().backward()
    log.add(x.grad)
    z.grad = None
    (z.exp().imag + z.angle()).sum().backward()
    log.add(z.grad)
    log.tries(lambda: torch.autograd.gradcheck(lambda t: t * t.conj() + t.sin(), (z,)))
    log.tries(lambda: torch.autograd.gradgradcheck(lambda t: t ** 3, (z,)))


@scenario
def gradcheck_texts(torch, log):
    gradcheck = torch.autograd.gradcheck
    x = leaf(torch, 1, 2)
    log.tries(lambda: gradcheck(lambda t: t ** 2, (x,)))
    log.tries(lambda: gradcheck(lambda t: t ** 2, x))
    log.tries(lambda: gradcheck(lambda t: t.detach() * t, (x,)))
    log.tries(lambda: gradcheck(lambda t: t.detach() * t, (x,), raise_exception=False))
    log.tries(lambda: gradcheck(lambda t: t, (x.detach(),)))
    log.tries(lambda: gradcheck(lambda t: t * 2, (torch.ones(2, requires_grad=True),)))
    log.tries(lambda: gradcheck(lambda t: (t ** 2, t.sum()), (x,)))
    log.tries(lambda: gradcheck(lambda t: t ** 2, (x,), eps=1e-3, atol=1e-3))
    log.tries(lambda: gradcheck(lambda t: t ** 2, (x,), fast_mode=True))
    log.tries(lambda: gradcheck(lambda t: t ** 2, (x,), check_forward_ad=True))
    log.tries(lambda: torch.autograd.gradgradcheck(lambda t: t ** 3, (x,)))
    log.tries(lambda: torch.autograd.gradgradcheck(lambda t: (t.detach() * t) * t, (x,)))
    log.tries(lambda: gradcheck(lambda t, u: t * u, (x, leaf(torch, 3, 4))))
    log.tries(lambda: gradcheck(lambda t, n: t * n, (x, 5)))


@scenario
def gradcheck_in_one_direction(torch, log):
    gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    x, y = leaf(torch, 1, 2, 3), leaf(torch, 3, 4, 5)
    z = torch.tensor([1 + 2j, -1 + 1j], dtype=torch.complex128, requires_grad=True)

    class Conjugate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    log.tries(lambda: gradcheck(lambda t, u: (t * u, (t @ u).sin()), (x, y), fast_mode=True, check_forward_ad=True))
    log.tries(lambda: gradcheck(lambda t: t.detach() * t, (x,), fast_mode=True, raise_exception=False))
    log.tries(lambda: gradcheck(lambda t: t.detach(), (x,), fast_mode=True))
    log.tries(lambda: gradcheck(lambda t: t.argmax(), (x,), fast_mode=True))
    log.tries(lambda: gradcheck(lambda t: t * t.conj() + t.sin(), (z,), fast_mode=True))
    log.tries(lambda: gradcheck(lambda t: t.abs(), (z,), fast_mode=True))
    log.tries(lambda: gradcheck(lambda t: torch.view_as_complex(torch.stack([t, t * 2], -1)), (x,), fast_mode=True))
    log.tries(lambda: gradcheck(Conjugate.apply, (x,), fast_mode=True))
    log.tries(lambda: gradcheck(Conjugate.apply, (z,), fast_mode=True, raise_exception=False))
    log.tries(lambda: gradgradcheck(lambda t: t ** 3, (z,), fast_mode=True))
    log.tries(lambda: gradgradcheck(lambda t: (t.detach() * t) * t, (x,), fast_mode=True, raise_exception=False))
    log.add(x.detach(), z.detach())


@scenario
def gradients_in_a_sequence(torch, log):
    for give in (lambda g: [g], lambda g: (g,), lambda g: [None], lambda g: [], lambda g: [2.0], lambda g: iter([g])):
        for run in (lambda x, g: (x * x).backward(g), lambda x, g: torch.autograd.backward(x * x, g),
                    lambda x, g: torch.autograd.grad(x * x, x, g)):
            x = leaf(torch, 3.0).sum().detach().requires_grad_()
            log.tries(lambda: run(x, give(torch.tensor(2.0, dtype=x.dtype))))
            log.add(x.grad)
    log.tries(lambda: (x * x).backward(2.0))
    log.add(x._cdata == x._cdata, x._cdata == x.detach()._cdata)


@scenario
def gradients_of_shared_memory(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    (x + y).sum().backward()
    log.add(x.grad, y.grad, x.grad.data_ptr() == y.grad.data_ptr())
    x.grad.add_(5)
    log.add(y.grad)
    g = torch.ones(2, dtype=torch.float64)
    z = leaf(torch, 1, 2)
    z.backward(g)
    log.add(z.grad is g, z.grad.data_ptr() == g.data_ptr())
    z.backward(g)
    log.add(z.grad, g)
    a = leaf(torch, 1, 2, 3, 4)
    a.view(2, 2).t().backward(torch.arange(4, dtype=torch.float64).view(2, 2))
    log.add(a.grad, a.grad.stride())
    p = torch.ones(3, 2, dtype=torch.float64).t().requires_grad_()
    (p * 2).sum().backward()
    log.add(p.grad.stride(), p.stride())


@scenario
def threads_run_passes(torch, log):
    import threading
    x = leaf(torch, 1, 2)
    errors = []

    def work():
        try:
            for _ in range(20):
                (x * x).sum().backward()
        except Exception as e:
            errors.append(str(e))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    log.add(x.grad, errors)
    shared = (x * x).sum()
    results = []

    def once():
        try:
            shared.backward(retain_graph=True)
            results.append("ok")
        except Exception as e:
            results.append(str(e))

    x.grad = None
    threads = [threading.Thread(target=once) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    log.add(x.grad, results)


@scenario
def gradients_of_lists_and_nothing(torch, log):
    x = leaf(torch, 1, 2)
    log.tries(lambda: torch.autograd.backward([]))
    log.tries(lambda: torch.autograd.backward([(x * 2).sum(), (x * 3).sum()]))
    log.add(x.grad)
    log.tries(lambda: torch.autograd.backward([(x * 2), (x * 3).sum()], [torch.ones(2, dtype=torch.float64), None]))
    log.add(x.grad)
    log.tries(lambda: torch.autograd.backward([(x * 2), (x * 3).sum()], [torch.ones(2, dtype=torch.float64)]))
    log.tries(lambda: torch.autograd.backward((x * 2).sum(), grad_tensors=torch.tensor(3.0, dtype=torch.float64)))
    log.tries(lambda: torch.autograd.backward((x * 2).sum(), grad_tensors=(torch.tensor(3.0, dtype=torch.float64),),
                                              grad_variables=(None,)))
    log.tries(lambda: torch.autograd.backward(torch.ones(())))
    log.tries(lambda: (x * 2).backward("x"))
    log.tries(lambda: (x * 2).sum().backward(None, None, False, x))
    log.tries(lambda: (x * 2).sum().backward(wrong=1))
    log.add(x.grad)


@scenario
def accumulators_come_and_go(torch, log):
    import gc
    import weakref
    x = leaf(torch, 1, 2)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    log.add((x * 3).grad_fn.next_functions[0][0] is acc, acc.variable is x)
    acc.register_hook(lambda r, g: log.add("kept"))
    (x * 5).sum().backward()
    w = weakref.ref(acc)
    del acc, y
    gc.collect()
    (x * 5).sum().backward()
    log.add(x.grad)
    x.register_hook(lambda g: log.add("tensor hook"))
    (x * 5).sum().backward()
    log.add((x.view(2).grad_fn.next_functions[0][0]).variable is x)
    e = x.expand_as(x)
    log.add(e.grad_fn.next_functions[0][0].name())


@scenario
def objects_are_freed(torch, log):
    import gc
    import weakref

    class Watch:
        pass

    def alive(make):
        w = Watch()
        r = weakref.ref(w)
        keep = make(w)
        del w
        before = r() is not None
        del keep
        gc.collect()
        return before, r() is not None

    x = leaf(torch, 1, 2)

    def hook(w):
        y = x * 2
        y.register_hook(lambda g, w=w: None)
        return y

    def function(w):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.w = w
                return a * 2

            @staticmethod
            def backward(ctx, g):
                return g

        return F.apply(x)

    def saved(w):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, w), lambda p: p[0]):
            return x * x

    def metadata(w):
        y = x * 2
        y.grad_fn.metadata["w"] = w
        return y

    def ran(w):
        y = hook(w)
        y.sum().backward()
        return y

    def attribute(w):
        y = x * 2
        y.w = w
        return y

    for make in hook, function, saved, metadata, ran, attribute:
        log.add(make.__name__, alive(make))
