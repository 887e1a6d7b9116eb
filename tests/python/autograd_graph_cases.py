# SPDX-License-Identifier: MIT
"""Nodes, edges, saved values, backward passes and what they leave. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, scenario, text


# ---- nodes and edges ----


@scenario
def saved_values_are_attributes_of_nodes(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    z = x * y
    log.add(sorted(n for n in dir(z.grad_fn) if n.startswith(("_saved", "_raw"))))
    log.add(z.grad_fn._saved_self, z.grad_fn._saved_other)
    log.add(z.grad_fn._saved_self is x, type(z.grad_fn._raw_saved_self).__name__)
    e = x.exp()
    log.add(e.grad_fn._saved_result, e.grad_fn._saved_result is e)
    z.sum().backward()
    log.tries(lambda: z.grad_fn._saved_self)
    log.tries(lambda: z.grad_fn._raw_saved_self)


@scenario
def raw_saved_values_take_hooks(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    z = x * y
    raw = z.grad_fn._raw_saved_self
    log.tries(lambda: raw.register_hooks(lambda t: t * 10, lambda t: t))
    log.add(z.grad_fn._saved_self)
    log.tries(lambda: raw.register_hooks(lambda t: t, lambda t: t))
    z.sum().backward()
    log.add(x.grad, y.grad)
    log.tries(lambda: raw.register_hooks(lambda t: t, lambda t: t))
    e = (x * 2).exp()
    e.grad_fn._raw_saved_result.register_hooks(lambda t: (t,), lambda t: t[0] * 3)
    e.sum().backward()
    log.add(x.grad)


@scenario
def raw_saved_values_refuse_wrong_hooks(torch, log):
    x = leaf(torch, 1, 2)
    z = x * x.detach()
    log.add(z.grad_fn._saved_self, z.grad_fn._saved_other)
    log.tries(lambda: z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t))
    w = x * x
    log.tries(lambda: w.grad_fn._raw_saved_self.register_hooks(lambda t: t))
    log.tries(lambda: w.grad_fn._raw_saved_self.register_hooks(1, 2))

    def writes(t):
        t.add_(1)
        return t

    w = x.clone() ** 2
    log.tries(lambda: w.grad_fn._raw_saved_self.register_hooks(writes, lambda t: t))
    w = x * x
    w.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: "no")
    log.tries(lambda: w.sum().backward())


@scenario
def functions_have_raw_saved_tensors(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    z = F.apply(x, y)
    raw = z.grad_fn._raw_saved_tensors
    log.add(len(raw), type(raw[0]).__name__)
    raw[1].register_hooks(lambda t: t, lambda t: t * 100)
    z.sum().backward()
    log.add(x.grad, y.grad)
    log.tries(lambda: z.grad_fn.saved_tensors)
    log.tries(lambda: z.grad_fn._raw_saved_tensors)


@scenario
def nodes_say_what_they_are(torch, log):
    x = leaf(torch, 1, 2)
    z = (x * 2).sum()
    n = z.grad_fn
    log.add(n.name(), type(n).__name__, n.metadata, n.metadata is n.metadata)
    n.metadata["a"] = 5
    log.add(z.grad_fn.metadata)
    log.add([(f.name(), i) for f, i in n.next_functions])
    acc = n.next_functions[0][0].next_functions[0][0]
    log.add(acc.name(), acc.variable is x, acc.next_functions)
    log.add(acc._sequence_nr() == 2**64 - 1, n._sequence_nr() > n.next_functions[0][0]._sequence_nr())
    log.add([(m.shape, m.dtype, m.device) for m in n._input_metadata])
    log.add(isinstance(n, torch.autograd.graph.Node))
    log.tries(lambda: n.nothing)
    log.tries(lambda: type(n)())


@scenario
def node_hooks(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 3
    z = y.exp()

    def pre(grads):
        log.add("pre", grads)
        return (grads[0] * 2,)

    def post(results, grads):
        log.add("post", results, grads)
        return (results[0] * 5,)

    a = z.grad_fn.register_prehook(pre)
    b = z.grad_fn.register_hook(post)
    z.sum().backward(retain_graph=True)
    log.add(x.grad)
    a.remove()
    b.remove()
    x.grad = None
    z.sum().backward(retain_graph=True)
    log.add(x.grad)
    z.grad_fn.register_prehook(lambda g: (g[0], g[0]))
    log.tries(lambda: z.sum().backward(retain_graph=True))


@scenario
def node_hooks_that_return_nonsense(torch, log):
    for what in ("text", 5, None, (), (None,), (1,), [None], (1, 2)):
        x = leaf(torch, 1, 2)
        y = x * 3
        y.grad_fn.register_prehook(lambda g: what)
        log.tries(lambda: y.sum().backward())
        x = leaf(torch, 1, 2)
        y = x * 3
        y.grad_fn.register_hook(lambda r, g: what)
        log.tries(lambda: y.sum().backward())
        log.add(x.grad)


@scenario
def tensor_hooks_that_return_nonsense(torch, log):
    for what in ("text", 5, (), torch.ones(3, dtype=torch.float64), torch.ones(2), torch.ones(2, dtype=torch.int64),
                 torch.ones(2, dtype=torch.complex128), torch.ones(1, 2, dtype=torch.float64)):
        for on in "leaf", "result":
            x = leaf(torch, 1, 2)
            y = x * 3
            (x if on == "leaf" else y).register_hook(lambda g: what)
            log.tries(lambda: y.sum().backward())
            log.add(on, x.grad, None if x.grad is None else x.grad.dtype)


@scenario
def gradient_edges(torch, log):
    graph = torch.autograd.graph
    x = leaf(torch, 1, 2)
    y = x * 2
    e = graph.get_gradient_edge(y)
    log.add(type(e).__name__, e.node.name(), e.output_nr, len(e))
    a = graph.get_gradient_edge(x)
    log.add(a.node.name(), a.output_nr)
    z = (y * y).sum()
    log.add(torch.autograd.grad(z, [e, a, x], retain_graph=True))
    log.tries(lambda: torch.autograd.backward(z, inputs=[e], retain_graph=True))
    log.tries(lambda: torch.autograd.backward(z, inputs=[a], retain_graph=True))
    log.add(x.grad)
    o = graph.get_gradient_edge(z)
    del z
    log.add(torch.autograd.grad(o, x, retain_graph=True))
    log.tries(lambda: torch.autograd.grad(o, x, torch.tensor(3.0, dtype=torch.float64), retain_graph=True))
    torch.autograd.backward(o, retain_graph=True)
    log.add(x.grad)
    log.tries(lambda: graph.get_gradient_edge(torch.ones(2)))
    log.tries(lambda: graph.get_gradient_edge(5))
    log.tries(lambda: torch.autograd.grad(e, x))
    log.tries(lambda: torch.autograd.grad(e, x, torch.ones(2, dtype=torch.float64)))


@scenario
def edges_of_functions_with_several_results(torch, log):
    a = leaf(torch, 1, 2, 3, 4)
    u, w = a.split(2)
    e = torch.autograd.graph.get_gradient_edge(w)
    log.add(e.node.name(), e.output_nr)
    log.add(torch.autograd.grad((u * w).sum(), [e, torch.autograd.graph.get_gradient_edge(u)]))


@scenario
def multi_grad_hooks(torch, log):
    graph = torch.autograd.graph
    a, b, c = leaf(torch, 1), leaf(torch, 2), leaf(torch, 3)
    seen = []
    h = graph.register_multi_grad_hook((a, b, c), lambda gs: seen.append(gs))
    (a * b).sum().backward()
    log.add(seen)
    del seen[:]
    (a * b * c).sum().backward()
    log.add(seen)
    h.remove()
    (a * b * c).sum().backward()
    log.add(len(seen))
    del seen[:]
    h = graph.register_multi_grad_hook((a, b), lambda g: seen.append(g), mode="any")
    (a * b * c).sum().backward()
    (a * b * c).sum().backward()
    log.add(len(seen), seen)
    h.remove()
    log.tries(lambda: graph.register_multi_grad_hook((a, b), lambda g: None, mode="some"))
    log.tries(lambda: graph.register_multi_grad_hook((a, torch.ones(1)), lambda g: None))


@scenario
def multi_grad_hooks_in_nested_passes(torch, log):
    graph = torch.autograd.graph
    a, b = leaf(torch, 1), leaf(torch, 2)
    seen = []
    graph.register_multi_grad_hook((a, b), lambda gs: seen.append([None if g is None else float(g) for g in gs]))

    def inner(g):
        (a * 7).sum().backward()

    y = a * b
    y.register_hook(inner)
    y.sum().backward()
    log.add(seen)


@scenario
def multi_grad_hooks_of_tensors_that_are_written(torch, log):
    graph = torch.autograd.graph
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    a, b = x * 2, y * 3
    seen = []
    graph.register_multi_grad_hook((a, b), lambda gs: seen.append(list(gs)))
    a.mul_(10)
    b[0] = x[0]
    (a * b).sum().backward()
    log.add(seen)
    del seen[:]
    p, q = (x * 1), (y * 1)
    graph.register_multi_grad_hook((p, torch.ones(2), q), lambda g: seen.append(g), mode="any")
    (p * q).sum().backward()
    log.add(len(seen))


@scenario
def functions_with_arguments_that_are_no_tensors(torch, log):
    def make(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, n, x, text, y, z):
                return x * n + y

            @staticmethod
            def backward(ctx, g):
                log.add(ctx.needs_input_grad)
                return result(g)

        return F

    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    plain = torch.ones(2, dtype=torch.float64)
    for result in (lambda g: (None, g * 3, None, g, None), lambda g: (g, g, None, g, None), lambda g: (None, g, None, g),
                   lambda g: (None, g, None, g, None, None), lambda g: (None, g, 5, g, None)):
        z = make(result).apply(3, x, "s", y, plain)
        log.add([f.name() if f else None for f, _ in z.grad_fn.next_functions])
        z.grad_fn.register_hook(lambda r, g: log.add("post", r, g))
        log.tries(lambda: z.sum().backward())
        log.add(x.grad, y.grad)
    z = make(lambda g: (None, None, None, g, None)).apply(3, plain, "s", y, None)
    log.add([f.name() if f else None for f, _ in z.grad_fn.next_functions])
    log.tries(lambda: z.sum().backward())


# ---- saved-tensor hooks ----


@scenario
def saved_hooks_nest(torch, log):
    x = leaf(torch, 1, 2)
    graph = torch.autograd.graph
    with graph.saved_tensors_hooks(lambda t: ("outer", t), lambda p: (log.add("unpack", p[0]), p[1])[1]):
        with graph.saved_tensors_hooks(lambda t: ("inner", t), lambda p: (log.add("unpack", p[0]), p[1] * 10)[1]):
            y = x * x
        z = y.exp()
    w = z * z
    w.sum().backward()
    log.add(x.grad)


@scenario
def saved_hooks_that_fail(torch, log):
    x = leaf(torch, 1, 2)
    graph = torch.autograd.graph

    def bad(t):
        raise KeyError("pack")

    with graph.saved_tensors_hooks(bad, lambda t: t):
        log.tries(lambda: x * x)
        log.tries(lambda: x + x)
        log.tries(lambda: x.exp())
    log.tries(lambda: (x * x).sum())

    def bad2(t):
        raise KeyError("unpack")

    with graph.saved_tensors_hooks(lambda t: t, bad2):
        y = x * x
    log.tries(lambda: y.grad_fn._saved_self)
    log.tries(lambda: y.sum().backward())
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x * x
    log.tries(lambda: y.sum().backward())
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = x * x
    log.tries(lambda: y.sum().backward())

    def write(t):
        t.mul_(2)
        return t

    with graph.saved_tensors_hooks(write, lambda t: t):
        log.tries(lambda: x.clone() * x)
    log.tries(lambda: graph.saved_tensors_hooks(1, 2))
    log.tries(lambda: graph.saved_tensors_hooks(lambda t: t))


@scenario
def saved_hooks_see_no_grad_mode_and_results(torch, log):
    x = leaf(torch, 1, 2)

    def pack(t):
        log.add("pack", t, torch.is_grad_enabled())
        return t

    def unpack(t):
        log.add("unpack", t, torch.is_grad_enabled())
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * 2).exp() * 3.0
        z = y.pow(2).sum()
    g, = torch.autograd.grad(z, x, create_graph=True)
    log.add(g)
    log.tries(lambda: torch.autograd.grad(g.sum(), x))


@scenario
def saved_hooks_can_be_forbidden(torch, log):
    graph = torch.autograd.graph
    x = leaf(torch, 1, 2)
    with graph.disable_saved_tensors_hooks("not here"):
        log.tries(lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__())
        with graph.disable_saved_tensors_hooks("nor there"):
            log.tries(lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__())
        log.tries(lambda: graph.save_on_cpu().__enter__())
        log.add((x * x).grad_fn.name())
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        log.tries(lambda: graph.disable_saved_tensors_hooks("late").__enter__())
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    log.add("after", y.grad_fn._saved_self)


@scenario
def saving_on_the_cpu(torch, log):
    x = leaf(torch, 1, 2)
    for pin in (False,):
        with torch.autograd.graph.save_on_cpu(pin_memory=pin):
            y = (x.sin() * x).exp()
        y.sum().backward()
        log.add(x.grad, y.grad_fn.name())


@scenario
def mutation_of_saved_tensors_may_be_allowed(torch, log):
    x = leaf(torch, 1, 2)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        a = x.clone()
        b = a ** 2
        a.sin_()
        a.mul_(2)
        c = a * b
        c.sum().backward()
        log.add(x.grad, a)
    x.grad = None
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        a = x.clone()
        b = a * a
        a.zero_()
        log.add(len(ctx.cloned))
        b.sum().backward()
        log.add(x.grad, len(ctx.cloned))
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = x.clone()
        b = a * a
        a.zero_()
    log.tries(lambda: b.sum().backward())
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        log.tries(lambda: torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__())
    v = x.clone()
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        w = v[:1] * v[1:]
        v[0] = 100.0
        torch.add(x.detach(), 1, out=torch.empty(2, dtype=torch.float64))
        w.sum().backward()
    log.add(x.grad)


# ---- passes ----


@scenario
def backward_for_chosen_inputs(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    m = x * y
    z = (m * m).sum()
    z.backward(inputs=[x], retain_graph=True)
    log.add(x.grad, y.grad, m.grad if m.retains_grad else "no")
    z.backward(inputs=m, retain_graph=True)
    log.add(m.grad, m.retains_grad)
    log.tries(lambda: z.backward(inputs=[], retain_graph=True))
    log.tries(lambda: z.backward(inputs=[torch.ones(2)], retain_graph=True))
    log.tries(lambda: z.backward(inputs=[5], retain_graph=True))
    log.tries(lambda: z.backward(inputs=[leaf(torch, 1)], retain_graph=True))
    log.tries(lambda: torch.autograd.backward([z], inputs=[y], grad_tensors=[torch.tensor(2.0, dtype=torch.float64)]))
    log.add(x.grad, y.grad)


@scenario
def grad_errors(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    grad = torch.autograd.grad
    z = (x * x).sum()
    log.tries(lambda: grad(z, y))
    log.tries(lambda: grad(z, [x, y], allow_unused=True, retain_graph=True))
    log.tries(lambda: grad(z, [x, y], materialize_grads=True, retain_graph=True))
    log.tries(lambda: grad(z, [x, y], materialize_grads=True, allow_unused=False, retain_graph=True))
    log.tries(lambda: grad(z, [], retain_graph=True))
    log.tries(lambda: grad([], x))
    log.tries(lambda: grad(z, torch.ones(2), retain_graph=True))
    log.tries(lambda: grad(x * x, x))
    log.tries(lambda: grad(x * x, x, torch.ones(3, dtype=torch.float64)))
    log.tries(lambda: grad(x * x, x, torch.ones(2, dtype=torch.complex128)))
    log.tries(lambda: grad(x * x, x, torch.ones(2, dtype=torch.int64)))
    log.tries(lambda: grad(x * x, x, torch.ones(2)))
    log.tries(lambda: grad(x * x, x, [1.0, 2.0]))
    log.tries(lambda: grad([x * x, x.sum()], x, [None, None]))
    log.tries(lambda: grad([x * x, x.sum()], x, [torch.ones(2, dtype=torch.float64)]))
    log.tries(lambda: grad([(x * x).sum(), x.sum()], x))
    log.tries(lambda: grad(torch.ones(()), x))
    log.tries(lambda: grad(5, x))
    log.tries(lambda: grad(z, 5, retain_graph=True))
    log.tries(lambda: grad(torch.complex(x, y).sum(), x))
    log.tries(lambda: z.backward(torch.ones(2)))
    log.tries(lambda: z.backward())
    log.tries(lambda: z.backward())
    log.tries(lambda: grad(z, x))
    with torch.no_grad():
        w = (x * 2).sum()
    log.tries(lambda: w.backward())
    log.tries(lambda: grad(w, x))


@scenario
def batched_gradients(torch, log):
    x = leaf(torch, 1, 2, 3)
    y = x ** 2
    eye = torch.eye(3, dtype=torch.float64)
    log.tries(lambda: torch.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True))
    log.tries(lambda: torch.autograd.grad(y, x, None, is_grads_batched=True, retain_graph=True))
    z = y.sum()
    log.tries(lambda: torch.autograd.grad([y, z], x, [eye, torch.ones(3, dtype=torch.float64)], is_grads_batched=True,
                                          retain_graph=True))
    log.tries(lambda: torch.autograd.grad([y, z], x, [eye, torch.ones(2, dtype=torch.float64)], is_grads_batched=True,
                                          retain_graph=True))
    g, = torch.autograd.grad(y, x, eye, is_grads_batched=True, create_graph=True)
    log.add(torch.autograd.grad(g.sum(), x))


@scenario
def multithreading_switch(torch, log):
    x = leaf(torch, 1, 2)
    log.add(torch.autograd.is_multithreading_enabled())
    with torch.autograd.set_multithreading_enabled(False):
        log.add(torch.autograd.is_multithreading_enabled())
        (x * x).sum().backward()
    log.add(torch.autograd.is_multithreading_enabled(), x.grad)
    torch.autograd.set_multithreading_enabled(False)
    log.add(torch.autograd.is_multithreading_enabled())
    torch.autograd.set_multithreading_enabled(True)


@scenario
def gradients_with_a_history(torch, log):
    x = leaf(torch, 1, 2)
    (x * x).sum().backward(create_graph=True)
    log.add(x.grad, x.grad.requires_grad)
    g = x.grad
    (x * x).sum().backward()
    log.add(x.grad is g, g, x.grad.requires_grad)
    x.grad = None


@scenario
def accumulation_keeps_or_replaces(torch, log):
    x = leaf(torch, 1, 2)
    x.grad = torch.ones(2, dtype=torch.float64)
    g = x.grad
    (x * 2).sum().backward()
    log.add(x.grad is g, g)
    with torch.enable_grad():
        (x * x).sum().backward(create_graph=True)
    log.add(x.grad is g, g, x.grad)
    x.grad = None
    y = x.expand(3, 2)
    y.sum().backward()
    log.add(x.grad, x.grad.stride())


@scenario
def grad_assignment_errors(torch, log):
    x = leaf(torch, 1, 2)

    def put(v, t=None):
        (x if t is None else t).grad = v
        return x.grad

    log.tries(put, torch.ones(3, dtype=torch.float64))
    log.tries(put, torch.ones(2))
    log.tries(put, 5)
    log.tries(put, [1.0, 2.0])
    log.tries(put, x)
    log.tries(put, None)
    log.tries(put, torch.ones(2, dtype=torch.float64, device="meta"))
    log.tries(put, torch.ones(2, dtype=torch.int64))
    log.tries(put, torch.ones(1, 2, dtype=torch.float64))
    y = x * 2
    log.tries(put, torch.ones(2, dtype=torch.float64), y)
    log.tries(lambda: y.grad)
    del x.grad
    log.add(x.grad)
    z = torch.ones(2, dtype=torch.int64)
    log.tries(put, torch.ones(2, dtype=torch.int64), z)
    log.tries(lambda: z.grad)


@scenario
def requires_grad_errors(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 2

    def put(t, v):
        t.requires_grad = v
        return t.requires_grad

    log.tries(put, y, False)
    log.tries(put, y, True)
    log.tries(put, torch.ones(2, dtype=torch.int64), True)
    log.tries(put, torch.ones(2, dtype=torch.int64), False)
    log.tries(lambda: y.requires_grad_(False))
    log.tries(lambda: torch.ones(2, dtype=torch.bool).requires_grad_())
    log.tries(lambda: torch.ones(2, dtype=torch.int32, requires_grad=True))
    log.tries(put, x, 1)
    log.tries(put, x, "yes")
    log.tries(lambda: torch.tensor([1, 2], requires_grad=True))
    with torch.no_grad():
        v = x.view(2, 1)
    log.add(v.requires_grad, v.is_leaf)
    log.tries(put, v, False)
    w = torch.ones(4)[:2]
    log.tries(put, w, True)
    log.add(w.is_leaf)
    c = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    log.add(c.requires_grad)
    log.tries(lambda: x.detach_().requires_grad)
