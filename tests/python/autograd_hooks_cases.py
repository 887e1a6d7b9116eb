# SPDX-License-Identifier: MIT
"""Hooks of tensors, nodes and modules; checkpoints. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, module, scenario, text


# ---- hooks ----


@scenario
def order_of_hooks(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: log.add("y tensor 1"))
    y.register_hook(lambda g: log.add("y tensor 2", y.grad))
    y.grad_fn.register_prehook(lambda g: log.add("y pre", y.grad))
    y.grad_fn.register_hook(lambda r, g: log.add("y post"))
    x.register_hook(lambda g: log.add("x tensor", x.grad))
    x.register_post_accumulate_grad_hook(lambda t: log.add("x accumulated", t.grad))
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(lambda g: log.add("x pre", x.grad))
    acc.register_hook(lambda r, g: log.add("x post", r, g))
    y.sum().backward(retain_graph=True)
    log.add("again")
    log.add(torch.autograd.grad(y.sum(), x, retain_graph=True))
    log.add(torch.autograd.grad(y.sum(), [x, y], retain_graph=True))
    y.sum().backward(inputs=[x])


@scenario
def hooks_add_and_remove_hooks(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 2
    handles = []

    def first(g):
        log.add("first")
        y.register_hook(lambda g: log.add("late"))

    handles.append(y.register_hook(first))
    handles.append(y.register_hook(lambda g: log.add("second")))
    handles.append(y.register_hook(lambda g: log.add("third")))
    y.sum().backward(retain_graph=True)
    log.add("again")
    handles[0].remove()
    handles[0].remove()
    y.sum().backward(retain_graph=True)
    with y.register_hook(lambda g: log.add("inside")) if False else handles[2]:
        pass
    y.sum().backward()


@scenario
def hooks_replace_gradients(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: -g)
    y.sum().backward()
    log.add(x.grad)
    x = leaf(torch, 1, 2)
    y = x * x

    def writes(g):
        g.mul_(2)

    y.register_hook(writes)
    log.tries(lambda: y.sum().backward())
    log.add(x.grad)
    x = leaf(torch, 1, 2)
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 2).sum().backward()
    log.add(x.grad)
    log.tries(lambda: (x * 2).register_post_accumulate_grad_hook(lambda t: None))
    log.tries(lambda: torch.ones(2).register_post_accumulate_grad_hook(lambda t: None))
    x = leaf(torch, 1, 2)
    x.register_post_accumulate_grad_hook(lambda t: 5)
    log.tries(lambda: (x * 2).sum().backward())
    log.add(isinstance(x.register_hook(lambda g: None), module(torch, "utils.hooks").RemovableHandle))
    x = leaf(torch, 1, 2)
    z = x * x
    z.register_hook(lambda g: g * z)
    g, = torch.autograd.grad(z.sum(), x, create_graph=True)
    log.add(g, torch.autograd.grad(g.sum(), x))


@scenario
def exceptions_in_hooks(torch, log):
    class Refused(Exception):
        pass

    def refuse(*args):
        raise Refused("no")

    for kind in ("tensor", "leaf", "pre", "post", "accumulated", "unpack", "callback"):
        x = leaf(torch, 1, 2)
        if kind == "unpack":
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, refuse):
                y = x * x
        else:
            y = x * x
        if kind == "tensor":
            y.register_hook(refuse)
        if kind == "leaf":
            x.register_hook(refuse)
        if kind == "pre":
            y.grad_fn.register_prehook(refuse)
        if kind == "post":
            y.grad_fn.register_hook(refuse)
        if kind == "accumulated":
            x.register_post_accumulate_grad_hook(refuse)
        if kind == "callback":
            y.register_hook(lambda g: torch.autograd.Variable._execution_engine.queue_callback(refuse))
        log.add(kind)
        log.tries(lambda: y.sum().backward())
        log.add(x.grad, torch.is_grad_enabled())
        # the same inside another pass, whose caller goes on
        outer = leaf(torch, 3) * 1
        caught = []

        def nested(g):
            try:
                with torch.enable_grad():
                    w = leaf(torch, 1)
                    v = w * 2
                    v.register_hook(refuse)
                    v.sum().backward()
            except Refused as e:
                caught.append(str(e))

        outer.register_hook(nested)
        outer.sum().backward()
        log.add(caught)


@scenario
def passes_inside_hooks(torch, log):
    x = leaf(torch, 1, 2)

    def hook(g):
        log.add(torch.is_grad_enabled())
        with torch.enable_grad():
            a = leaf(torch, 5)
            b = (a * a).sum()
            b.backward()
            (x * 7).sum().backward()
            log.add(a.grad, x.grad)
        return g * 2

    y = x * 3
    y.register_hook(hook)
    y.sum().backward()
    log.add(x.grad)
    z = (x * x)
    z.register_hook(lambda g: torch.autograd.grad((x ** 3).sum(), x)[0] if torch.is_grad_enabled() else None)
    g, = torch.autograd.grad(z.sum(), x, create_graph=True)
    log.add(g)


@scenario
def callbacks_at_the_end(torch, log):
    engine = torch.autograd.Variable._execution_engine
    x = leaf(torch, 1, 2)

    def end():
        log.add("end", x.grad)
        engine.queue_callback(lambda: log.add("after the end"))

    y = x * 2
    y.register_hook(lambda g: engine.queue_callback(end))
    y.sum().backward()
    log.tries(lambda: engine.queue_callback(end))


# ---- checkpoint ----


@scenario
def checkpoints(torch, log):
    ck = module(torch, "utils.checkpoint").checkpoint
    x = leaf(torch, 1, 2)
    for reentrant in (True, False):
        calls = []

        def f(a, b, n, *, k=1):
            calls.append(torch.is_grad_enabled())
            return (a.sin() * b).exp() * n * k, n

        if reentrant:
            log.tries(lambda: ck(f, x, x * 2, 3, use_reentrant=True, k=2))
            out, n = ck(f, x, x * 2, 3, use_reentrant=True)
        else:
            out, n = ck(f, x, x * 2, 3, use_reentrant=False, k=2)
        log.add(out, n, calls)
        out.sum().backward()
        log.add(x.grad, calls)
        x.grad = None
        out = ck(lambda a: a * 2, x.detach(), use_reentrant=reentrant)
        log.add(out.requires_grad)
        out = ck(lambda a: a.sin().sin(), x, use_reentrant=reentrant)
        log.tries(lambda: torch.autograd.grad(out.sum(), x))
        log.tries(lambda: out.sum().backward())
        log.tries(lambda: out.sum().backward())
        x.grad = None


@scenario
def checkpoints_that_differ(torch, log):
    ck = module(torch, "utils.checkpoint").checkpoint
    x = leaf(torch, 1, 2)
    state = [0]

    def more(a):
        state[0] += 1
        return a.sin().cos() if state[0] == 1 else a.sin().cos().exp()

    def less(a):
        state[0] += 1
        return a.sin().cos() if state[0] == 1 else a * 1

    def shape(a):
        state[0] += 1
        b = a if state[0] == 1 else a[:1]
        return (b * b).sin()

    def dtype(a):
        state[0] += 1
        b = a if state[0] == 1 else a.float()
        return (b * b).sin()

    def raises(a):
        state[0] += 1
        if state[0] > 1:
            raise KeyError("second time")
        return a.sin()

    for f in more, less, shape, dtype, raises:
        for check in "default", "none":
            state[0] = 0
            out = ck(f, x, use_reentrant=False, determinism_check=check)
            log.add(f.__name__, check)
            log.tries(lambda: out.sum().backward())
            x.grad = None
    log.tries(lambda: ck(more, x, use_reentrant=False, determinism_check="what"))


@scenario
def checkpoints_nest_and_keep_random_numbers(torch, log):
    C = module(torch, "utils.checkpoint")
    ck = C.checkpoint
    x = leaf(torch, 1, 2)

    def inner(a):
        return a.sin().exp()

    def outer(a):
        b = ck(inner, a * 2, use_reentrant=False)
        return ck(inner, b, use_reentrant=False).cos()

    ck(outer, x, use_reentrant=False).sum().backward()
    got = x.grad.clone()
    x.grad = None
    inner(inner(x * 2)).cos().sum().backward()
    log.add((got - x.grad).abs().max() < 1e-12, got)
    for keep in True, False:
        for reentrant in True, False:
            masks = []

            def drop(a):
                m = torch.rand(2, dtype=torch.float64)
                masks.append(m)
                return a * m

            x.grad = None
            out = ck(drop, x, use_reentrant=reentrant, preserve_rng_state=keep)
            before = torch.rand(1)
            out.sum().backward()
            log.add(keep, reentrant, len(masks), bool((masks[0] == masks[-1]).all()), bool((x.grad == masks[0]).all()))
    counts = []

    def counted(a):
        b = a.sin()
        counts.append(1)
        c = b * 3.0
        counts.append(2)
        return c

    for early in True, False:
        del counts[:]
        with C.set_checkpoint_early_stop(early):
            out = ck(counted, x, use_reentrant=False)
            out.sum().backward()
        log.add(early, counts)
    log.tries(lambda: C.checkpoint_sequential([torch.sin, torch.cos, torch.exp], 2, x, use_reentrant=False).sum().backward())
    log.tries(lambda: ck(lambda a: a, x))
    log.tries(lambda: ck(lambda a: a, x, use_reentrant=False, wrong=1))
    g, = torch.autograd.grad(ck(lambda a: (a ** 3).sum(), x, use_reentrant=False), x, create_graph=True)
    log.add(torch.autograd.grad(g.sum(), x))
    with torch.no_grad():
        log.add(ck(lambda a: a * 2, x, use_reentrant=False).requires_grad)


@scenario
def checkpoints_with_containers(torch, log):
    ck = module(torch, "utils.checkpoint").checkpoint
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)

    def f(d, pair):
        return {"out": d["a"] * pair[0], "n": 5}

    out = ck(f, {"a": x}, (y, None), use_reentrant=False)
    out["out"].sum().backward()
    log.add(x.grad, y.grad)
    log.tries(lambda: ck(f, {"a": x}, (y, None), use_reentrant=True)["out"].sum().backward())

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a, a * 2)
            return a * 3

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b

    x.grad = None
    ck(F.apply, x, use_reentrant=False).sum().backward()
    log.add(x.grad)
    x.grad = None

    def writes(a):
        b = a * 1
        c = b.exp()
        b.mul_(2)
        return c * b

    ck(writes, x, use_reentrant=False).sum().backward()
    log.add(x.grad)
    x.grad = None
    t = x * 1
    out = ck(lambda a: a.sin().sin(), t, use_reentrant=False)
    t.add_(1)
    log.tries(lambda: out.sum().backward())


# ---- more of saved tensors and checkpoints ----


@scenario
def saved_hooks_and_functions(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y, x * 2)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, z = ctx.saved_tensors
            return g * y * z

    x = leaf(torch, 1, 2)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(text(t)) or len(packed) - 1 or t, lambda p: p):
        pass
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.add("pack", t), t.clone())[1], lambda t: (log.add("unpack", t), t)[1]):
        y = F.apply(x)
    y.sum().backward()
    log.add(x.grad)
    log.tries(lambda: y.grad_fn.saved_tensors)


@scenario
def saved_hooks_and_writes(torch, log):
    x = leaf(torch, 1, 2)
    t = x * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = t * t
    t.add_(1)
    log.tries(lambda: y.sum().backward())
    log.add(x.grad)
    t = x * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = t * t
        z = t.exp()
    t.add_(1)
    z.mul_(2)
    log.tries(lambda: (y.sum() + z.sum()).backward())
    log.add(x.grad)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i].float()):
        y = x * x
    log.tries(lambda: y.sum().backward())
    log.add(x.grad)


@scenario
def saved_hooks_are_of_their_thread(torch, log):
    import threading
    x = leaf(torch, 1, 2)
    calls = []
    results = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: calls.append(1) or t, lambda t: t):
        t = threading.Thread(target=lambda: results.append(x * x))
        t.start()
        t.join()
        log.add(len(calls))
        y = x * x
        log.add(len(calls))
    (results[0] + y).sum().backward()
    log.add(x.grad)


@scenario
def checkpoint_contexts(torch, log):
    import contextlib
    C = module(torch, "utils.checkpoint")
    x = leaf(torch, 1, 2)

    @contextlib.contextmanager
    def note(name):
        log.add("enter", name)
        yield
        log.add("leave", name)

    out = C.checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False, context_fn=lambda: (note("first"), note("again")))
    out.sum().backward()
    log.add(x.grad)
    log.tries(lambda: C.checkpoint(lambda a: a, x, use_reentrant=True, context_fn=lambda: (note("a"), note("b"))))
    log.tries(lambda: C.checkpoint(lambda a: a.sin(), x, use_reentrant=False, debug=True).sum().backward())
    m = torch.nn.Sequential(*[torch.nn.Tanh() for _ in range(4)])
    x.grad = None
    C.checkpoint_sequential(m, 2, x, use_reentrant=False).sum().backward()
    log.add(x.grad)
    x.grad = None
    C.checkpoint_sequential(m, 2, x, use_reentrant=True).sum().backward()
    log.add(x.grad)


@scenario
def checkpoints_under_hooks(torch, log):
    C = module(torch, "utils.checkpoint")
    x = leaf(torch, 1, 2)
    calls = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: calls.append("pack") or t, lambda t: calls.append("unpack") or t):
        y = C.checkpoint(lambda a: (a * a).sin(), x, use_reentrant=False)
    y.sum().backward()
    log.add(x.grad)
    x.grad = None
    z = C.checkpoint(lambda a: (a * a).sin(), x, use_reentrant=False)
    z.register_hook(lambda g: log.add("hook", g))
    x.register_hook(lambda g: log.add("leaf", g))
    x.register_post_accumulate_grad_hook(lambda t: log.add("accumulated", t.grad))
    z.sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("none of that"):
        log.tries(lambda: C.checkpoint(lambda a: a.sin(), x, use_reentrant=False))
