# SPDX-License-Identifier: MIT
"""Rules of autograd that programs meet: hooks, views, writes, functions, graphs, errors. A scenario runs on either library and
writes lines; golden/make_autograd.py keeps what PyTorch writes."""

import importlib
import re
import warnings

SCENARIOS = {}


def scenario(fn):
    assert fn.__name__ not in SCENARIOS, fn.__name__
    SCENARIOS[fn.__name__] = fn
    return fn


def text(value):
    """Tensors as numbers with five digits, addresses and the library's name taken out."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, complex):
        return f"({text(value.real)}, {text(value.imag)})"
    if isinstance(value, float):
        return f"{value + 0.0:.5g}" if abs(value) > 1e-12 else "0"
    if hasattr(value, "tolist"):
        return text(value.detach().tolist())
    return re.sub(r"0x[0-9a-f]+", "0x", str(value)).replace("tenon", "torch")


class Log(list):
    def add(self, *values):
        self.append(" ".join(text(v) for v in values))

    def tries(self, call, *args):
        """What a call gives, or the first line of what it raises."""
        try:
            self.add("ok", call(*args))
        except Exception as e:
            self.add(type(e).__name__, str(e).split("\n")[0])


def run(lib, name):
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            SCENARIOS[name](lib, log)
        except Exception as e:
            log.add("ended with", type(e).__name__, str(e).split("\n")[0])
    for w in caught:
        message = str(w.message).split("\n")[0].split(" (Triggered internally")[0]
        # PyTorch's own code; and what is said once in a process, whoever comes first
        if "torch.jit.script" not in message and not message.startswith("Using backward() with create_graph=True"):
            log.add("warned", w.category.__name__, message)
    return list(log)


def module(torch, name):
    return importlib.import_module(torch.__name__ + "." + name)


def leaf(torch, *values):
    return torch.tensor([float(v) for v in values], dtype=torch.float64, requires_grad=True)


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


# ---- functions ----


@scenario
def function_results_of_every_kind(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n, text, none, *, k=1):
            return x * n, n, text, None, [1, 2]

        @staticmethod
        def backward(ctx, *grads):
            log.add(grads)
            return grads[0], None, None, None

    x = leaf(torch, 1, 2)
    log.tries(lambda: F.apply(x, 3, "t", None))
    log.tries(lambda: F.apply(x, 3, "t", None, k=2))
    out = F.apply(x, 3, "t", None)
    log.tries(lambda: out[0].sum().backward())
    log.add(x.grad)

    class G(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 1, x * 2]

        @staticmethod
        def backward(ctx, *grads):
            return grads[0] + grads[1]

    log.tries(lambda: G.apply(x))
    log.tries(lambda: G.apply(x)[0].sum().backward())

    class H(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 5

        @staticmethod
        def backward(ctx, *grads):
            return grads[0]

    log.tries(lambda: H.apply(x))


@scenario
def function_backward_returns_wrong_things(torch, log):
    def make(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return F

    for result in (lambda g: g, lambda g: (g, g, None), lambda g: (g, g, g), lambda g: (None, None), lambda g: None, lambda g: (g, 5),
                   lambda g: (g, "x"), lambda g: [g, g], lambda g: (g[:1], g), lambda g: (g.float(), g), lambda g: (torch.ones(3), g),
                   lambda g: (g.to(torch.int64), g), lambda g: (torch.complex(g, g), g), lambda g: (g.expand(2, 2), g), lambda g: ()):
        x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
        log.tries(lambda: make(result).apply(x, y).sum().backward())
        log.add(x.grad, y.grad)


@scenario
def function_without_gradients(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = leaf(torch, 1, 2)
    y = F.apply(x)
    log.add(y.requires_grad, y.grad_fn.name())
    log.tries(lambda: y.sum().backward())

    class G(torch.autograd.Function):
        pass

    log.tries(lambda: G.apply(x))
    log.tries(lambda: G())
    log.tries(lambda: F().forward(None, x))

    class Old(torch.autograd.Function):
        def forward(self, x):
            return x

        def backward(self, g):
            return g

    log.tries(lambda: Old()(x))
    log.tries(lambda: Old.apply(x))

    class K(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("in backward")

    log.tries(lambda: K.apply(x).sum().backward())

    class E(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("in forward")

    log.tries(lambda: E.apply(x))
    log.add((x * 1).sum().requires_grad)


@scenario
def function_returns_its_input(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(torch, 1, 2)
    y = F.apply(x)
    log.add(y is x, y.grad_fn.name(), y._is_view(), y._base is x)
    log.tries(lambda: y.add_(1))
    y.sum().backward()
    log.add(x.grad)
    t = x * 1
    z = F.apply(t)
    log.add(z is t, z._is_view())
    log.tries(lambda: z.mul_(2))
    with torch.no_grad():
        log.tries(lambda: F.apply(t) is t)

    class V(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(2, 1)

        @staticmethod
        def backward(ctx, g):
            return g.reshape(2) * 10

    t = x * 1
    v = V.apply(t)
    log.add(v.grad_fn.name(), v._is_view(), v._base is t)
    log.tries(lambda: v.mul_(2))
    log.tries(lambda: v[0].mul_(2))
    t.mul_(3)
    log.tries(lambda: v.grad_fn)

    class S(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, a, b):
            return torch.cat([a, b])

    t = x * 1
    a, b = S.apply(t)
    log.tries(lambda: a.mul_(2))
    log.tries(lambda: t.mul_(2))
    log.tries(lambda: b.grad_fn)


@scenario
def function_writes_its_input(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(torch, 1, 2)
    log.tries(lambda: F.apply(x))
    log.tries(lambda: F.apply(x.view(2, 1)))
    t = x.detach().clone().requires_grad_() * 1
    y = F.apply(t)
    log.add(y is t, t.grad_fn.name(), t._version)
    x = leaf(torch, 1, 2)
    t = x * 1
    v = t[:1]
    log.tries(lambda: F.apply(v))
    log.add(t, t.grad_fn.name(), v.grad_fn.name())
    log.tries(lambda: t.sum().backward())
    log.add(x.grad)
    a, b = (x * 1).split(1)
    log.tries(lambda: F.apply(a))

    class NotReturned(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    log.tries(lambda: NotReturned.apply(x * 1))

    class Unmarked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    t = x * 1
    y = Unmarked.apply(t)
    log.add(y is t, y, t)

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(y)
            y.mul_(2)
            ctx.mark_dirty(x, y)
            return x, y

        @staticmethod
        def backward(ctx, a, b):
            return a, a + 2 * b

    p, q = x * 1, x * 2
    r, s = Two.apply(p, q)
    log.add(r is p, s is q, r, s)
    (r * s).sum().backward()
    log.add(x.grad)
    base = x * 1
    log.tries(lambda: Two.apply(base[:1], base[1:]))
    with torch.no_grad():
        log.tries(lambda: F.apply(x))
    plain = torch.ones(2, dtype=torch.float64)
    log.tries(lambda: F.apply(plain).requires_grad)


@scenario
def function_marks(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            i = x.argmax()
            m = x.max()
            s = x.sort()[0]
            ctx.mark_non_differentiable(i, s)
            ctx.set_materialize_grads(False)
            return i, m, s, x * 2

        @staticmethod
        def backward(ctx, gi, gm, gs, gx):
            log.add(gi, gm, gs, gx)
            return None if gx is None else gx * 2

    x = leaf(torch, 1, 2)
    i, m, s, y = F.apply(x)
    log.add(i.requires_grad, m.requires_grad, s.requires_grad, y.requires_grad)
    y.sum().backward(retain_graph=True)
    m.backward(retain_graph=True)
    log.add(x.grad)

    class G(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    log.tries(lambda: G.apply(x).requires_grad)

    class M(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, x.long()

        @staticmethod
        def backward(ctx, a, b, c):
            log.add(a, b, c, None if c is None else c.dtype)
            return a + b

    M.apply(x)[1].sum().backward()
    log.add(x.grad)


@scenario
def function_asks_what_is_needed(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, z, n):
            log.add("forward", ctx.needs_input_grad)
            ctx.save_for_backward(x, y, None)
            ctx.n = n
            return x * y + z

        @staticmethod
        def backward(ctx, g):
            x, y, none = ctx.saved_tensors
            log.add("backward", ctx.needs_input_grad, none, ctx.n, ctx.saved_tensors[0] is x)
            return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None, g, None

    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    z = torch.ones(2, dtype=torch.float64)
    w = F.apply(x, y, z, 7)
    w.sum().backward()
    log.add(x.grad, y.grad)
    with torch.no_grad():
        log.add(F.apply(x, y, z, 7).requires_grad)
    F.apply(z, z, z, 1)
    log.tries(lambda: w.sum().backward())


@scenario
def function_saves_wrong_things(torch, log):
    def make(*saved):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(*[x * 3 if s == "middle" else x if s == "input" else s for s in saved])
                return x * 2

            @staticmethod
            def backward(ctx, g):
                log.add(ctx.saved_tensors)
                return g

        return F

    x = leaf(torch, 1, 2)
    for saved in ((5,), ("text",), ((x,),), (None,), ("middle",), ("input", "input"), ()):
        log.tries(lambda: make(*saved).apply(x).sum().backward())
    t = x * 1
    y = make("input").apply(t)
    t.add_(1)
    log.tries(lambda: y.sum().backward())

    class Out(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            y, = ctx.saved_tensors
            return g * y

    y = Out.apply(x)
    g, = torch.autograd.grad(y.sum(), x, create_graph=True)
    log.add(g, torch.autograd.grad(g.sum(), x))
    y = Out.apply(x)
    y.mul_(2)
    log.tries(lambda: y.sum().backward())


@scenario
def functions_differentiate_twice(torch, log):
    F_once = module(torch, "autograd.function").once_differentiable

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            log.add("grad mode", torch.is_grad_enabled())
            return 3 * x ** 2 * g

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        @F_once
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 3 * x ** 2 * g

    x = leaf(torch, 1, 2)
    g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    gg, = torch.autograd.grad(g.sum(), x, create_graph=True)
    log.add(g, gg, torch.autograd.grad(gg.sum(), x))
    log.add(torch.autograd.grad(Once.apply(x).sum(), x))
    g, = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    log.add(g.requires_grad, g.grad_fn.name() if g.grad_fn else None)
    log.tries(lambda: torch.autograd.grad(g.sum(), x))


@scenario
def functions_with_setup_context(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x ** n, x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, n = inputs
            ctx.save_for_backward(x)
            ctx.n = n
            ctx.save_for_forward(x)

        @staticmethod
        def backward(ctx, g, h):
            x, = ctx.saved_tensors
            return ctx.n * x ** (ctx.n - 1) * g + 2 * h, None

        @staticmethod
        def jvp(ctx, tx, tn):
            x, = ctx.saved_tensors
            return ctx.n * x ** (ctx.n - 1) * tx, 2 * tx

    x = leaf(torch, 1, 2)
    a, b = F.apply(x, 3)
    (a + b).sum().backward()
    log.add(x.grad)
    fwad = module(torch, "autograd.forward_ad")
    with fwad.dual_level():
        d = fwad.make_dual(x.detach(), torch.ones(2, dtype=torch.float64))
        out = F.apply(d, 3)
        log.add(fwad.unpack_dual(out[0]).tangent, fwad.unpack_dual(out[1]).tangent)
    func = module(torch, "func")
    log.tries(lambda: func.grad(lambda t: F.apply(t, 3)[0].sum())(x.detach()))


@scenario
def functions_under_vmap(torch, log):
    func = module(torch, "func")

    class F(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * x.cos()

    class G(torch.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x * n

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n, None

        @staticmethod
        def vmap(info, in_dims, x, n):
            return G.apply(x, n), in_dims[0]

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    log.tries(lambda: func.vmap(F.apply)(x))
    log.tries(lambda: func.vmap(func.grad(lambda t: F.apply(t).sum()))(x))
    log.tries(lambda: func.vmap(lambda t: G.apply(t, 3))(x))
    log.tries(lambda: func.vmap(lambda t: G.apply(t, 3), in_dims=1)(x))
    log.tries(lambda: func.jacrev(lambda t: G.apply(t, 3))(x[0]))


@scenario
def functions_in_forward_mode(torch, log):
    fwad = module(torch, "autograd.forward_ad")

    class NoJvp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def make(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_forward(x, y)
                return x * y

            @staticmethod
            def jvp(ctx, a, b):
                x, y = ctx.saved_tensors
                return result(x, y, a, b)

        return F

    x = leaf(torch, 1, 2).detach()
    t = torch.ones(2, dtype=torch.float64)
    with fwad.dual_level():
        d = fwad.make_dual(x, t)
        log.tries(lambda: NoJvp.apply(d))
        for result in (lambda x, y, a, b: a * y + b * x, lambda x, y, a, b: (a * y, b)):
            log.tries(lambda: fwad.unpack_dual(make(result).apply(d, fwad.make_dual(x, t * 2))).tangent)
        try:
            make(lambda x, y, a, b: a[:1]).apply(d, d)
        except RuntimeError as e:
            log.add(str(e).split(" (result")[0].split("size [1].")[0])
        log.tries(lambda: fwad.unpack_dual(make(lambda x, y, a, b: (log.add(a, b), a * y)[1]).apply(d, x)).tangent)


# ---- forward mode and func ----


@scenario
def dual_numbers(torch, log):
    fwad = module(torch, "autograd.forward_ad")
    x = leaf(torch, 1, 2).detach()
    t = torch.ones(2, dtype=torch.float64)
    log.tries(lambda: fwad.make_dual(x, t))
    with fwad.dual_level():
        d = fwad.make_dual(x, t)
        log.add(type(fwad.unpack_dual(d)).__name__, fwad.unpack_dual(d), fwad.unpack_dual(x).tangent)
        log.tries(lambda: fwad.make_dual(d, t))
        log.tries(lambda: fwad.make_dual(x, t[:1]))
        log.tries(lambda: fwad.make_dual(x.long(), t.long()))
        log.tries(lambda: fwad.make_dual(5, t))
        log.tries(lambda: fwad.make_dual(x, 5))
        log.add(fwad.unpack_dual(d.sin()).tangent, fwad.unpack_dual(d.detach()).tangent)
        with torch.no_grad():
            log.add(fwad.unpack_dual(d * 2).tangent)
        e = x.clone()
        e.copy_(d)
        log.add(fwad.unpack_dual(e).tangent)
        v = d.view(2, 1)
        log.add(fwad.unpack_dual(v).tangent)
        log.tries(lambda: d.mul_(3) is d)
        log.add(fwad.unpack_dual(d).tangent, fwad.unpack_dual(v).tangent, x)
        log.tries(lambda: fwad.dual_level().__enter__())
        w = leaf(torch, 3, 4)
        dd = fwad.make_dual(w, t)
        tangent = fwad.unpack_dual(dd ** 3).tangent
        log.add(tangent.requires_grad, torch.autograd.grad(tangent.sum(), w))
    log.add(fwad.unpack_dual(d).tangent if False else "left")
    log.tries(lambda: fwad.unpack_dual(d))


@scenario
def functional_transforms(torch, log):
    f = module(torch, "func")
    x = leaf(torch, 1, 2, 3).detach()
    log.add(f.grad(lambda t: (t ** 3).sum())(x), f.grad_and_value(lambda t: (t ** 2).sum())(x))
    log.add(f.grad(f.grad(lambda t: t ** 4))(x[1]))
    log.add(f.jacrev(lambda t: t ** 2)(x), f.jacfwd(lambda t: t.cumsum(0))(x), f.hessian(lambda t: t.prod())(x))
    out, vjp = f.vjp(lambda t: (t.sin(), t.sum()), x)
    log.add(out, vjp((torch.ones(3, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64))))
    log.tries(lambda: f.grad(lambda t: t * 2)(x))
    log.tries(lambda: f.grad(lambda t: 5)(x))
    log.tries(lambda: f.grad(lambda t: t.sum(), argnums=1)(x))
    log.tries(lambda: f.grad(lambda t: t.sum())(torch.ones(2, dtype=torch.int64)))
    log.tries(lambda: f.grad(lambda t, u: (t * u).sum(), argnums=(0, 1))(x, x * 2))
    log.tries(lambda: f.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": x * 2}))
    log.tries(lambda: f.jvp(lambda t: t ** 2, (x,), (torch.ones(3, dtype=torch.float64),)))
    log.tries(lambda: f.jvp(lambda t: t ** 2, (x,), (torch.ones(2, dtype=torch.float64),)))
    log.tries(lambda: f.jvp(lambda t: t ** 2, x, x))
    with torch.no_grad():
        log.add(f.grad(lambda t: (t ** 2).sum())(x))
    y = leaf(torch, 5)
    g = f.grad(lambda t: (t * y).sum())(x)
    log.add(g.requires_grad, torch.autograd.grad(g.sum(), y))
    log.tries(lambda: f.grad(lambda t: t.detach().sum())(x))
    log.tries(lambda: f.grad(lambda t: t.item())(x[0]))

    def writes(t):
        t = t.clone()
        t[0] = 5
        t.mul_(2)
        return (t * t).sum()

    log.add(f.grad(writes)(x))

    def leaks(t):
        t.add_(1)
        return t.sum()

    log.tries(lambda: f.grad(leaks)(x.clone()))
    log.add(f.functional_call(torch.nn.Linear(2, 1), {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, (torch.ones(3, 2),)))


@scenario
def functional_api(torch, log):
    F = module(torch, "autograd.functional")
    x, v = leaf(torch, 1, 2).detach(), torch.tensor([1.0, -1.0], dtype=torch.float64)
    log.add(F.jacobian(lambda t: t ** 2, x), F.hessian(lambda t: (t ** 3).sum(), x))
    log.add(F.vjp(lambda t: t ** 2, x, v), F.jvp(lambda t: t ** 2, x, v), F.vhp(lambda t: (t ** 3).sum(), x, v), F.hvp(lambda t: (t ** 3).sum(), x, v))
    log.tries(lambda: F.jacobian(lambda t: t.detach(), x))
    log.tries(lambda: F.jacobian(lambda t: t.detach(), x, strict=True))
    log.tries(lambda: F.hessian(lambda t: t, x))
    log.tries(lambda: F.vjp(lambda t: t ** 2, x))
    log.tries(lambda: F.vjp(lambda t: t ** 2, x, v[:1]))
    log.tries(lambda: F.jacobian(lambda t: 5, x))
    log.tries(lambda: F.jacobian(lambda t: t, 5))
    log.tries(lambda: F.jacobian(lambda a, b: a * b, (x, v), create_graph=True)[0][0].requires_grad)
    log.tries(lambda: F.jacobian(lambda t: t ** 2, x, strategy="forward-mode", vectorize=True))
    log.tries(lambda: F.jvp(lambda t: t.sum(), x))


# ---- modes ----


@scenario
def inference_mode_rules(torch, log):
    with torch.inference_mode():
        i = torch.ones(2, dtype=torch.float64)
        n = torch.ones(2, dtype=torch.float64)
        log.add(i.is_inference(), i.requires_grad, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        j = i * 2
        j.add_(1)
        log.tries(lambda: i.requires_grad_().requires_grad)
    x = leaf(torch, 1, 2)
    log.tries(lambda: n.requires_grad_())
    log.tries(lambda: n.add_(1))
    log.tries(lambda: torch.add(x.detach(), 1, out=n))
    log.tries(lambda: x * n)
    log.tries(lambda: x + n)
    log.tries(lambda: (x + n).sum().backward())
    log.tries(lambda: n * 2)
    log.tries(lambda: (n * 2).is_inference())
    log.tries(lambda: n.view(2, 1).is_inference())
    log.tries(lambda: n.clone().requires_grad_().requires_grad)
    log.tries(lambda: n.detach().is_inference())
    log.tries(lambda: setattr(n, "grad", torch.ones(2, dtype=torch.float64)))
    log.tries(lambda: n.backward())
    with torch.inference_mode():
        y = x * 2
        log.add(y.requires_grad, y.is_inference())
        log.tries(lambda: y.sum().backward())
        v = x.view(2, 1)
        log.add(v.is_inference(), v.requires_grad)
        with torch.enable_grad():
            log.add((x * 2).requires_grad)
        with torch.inference_mode(False):
            z = x * 2
            log.add(z.requires_grad, z.is_inference(), torch.is_grad_enabled())
    log.tries(lambda: y.sum().backward())

    @torch.inference_mode()
    def f(a):
        return a * 2

    log.add(f(x).is_inference())
    log.tries(lambda: torch.nn.functional.linear(x, n))
    with torch.inference_mode():
        p = torch.nn.Parameter(torch.ones(2))
    log.add(p.requires_grad, p.is_inference())
    log.tries(lambda: (p * 2).sum().backward())


@scenario
def grad_modes(torch, log):
    x = leaf(torch, 1, 2)

    @torch.no_grad()
    def f():
        return x * 2, torch.is_grad_enabled()

    @torch.enable_grad()
    def g():
        return x * 2, torch.is_grad_enabled()

    @torch.no_grad
    def h():
        return torch.is_grad_enabled()

    log.add(f()[0].requires_grad, f()[1], h())
    with torch.no_grad():
        log.add(g()[0].requires_grad)
        with torch.set_grad_enabled(True):
            log.add((x * 2).requires_grad)
        log.add(torch.is_grad_enabled())

    @torch.no_grad()
    def gen():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    log.add([(v, torch.is_grad_enabled()) for v in gen()])

    class C:
        @torch.no_grad()
        def m(self):
            return torch.is_grad_enabled()

    log.add(C().m())
    torch.set_grad_enabled(False)
    log.add((x * 2).requires_grad)
    torch.set_grad_enabled(True)
    try:
        with torch.no_grad():
            raise KeyError
    except KeyError:
        log.add(torch.is_grad_enabled())
    log.tries(lambda: torch.set_grad_enabled("yes"))
    import threading
    seen = []
    with torch.no_grad():
        t = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        t.start()
        t.join()
    log.add(seen)


@scenario
def anomaly_mode(torch, log):
    x = leaf(torch, 0, 2)
    with torch.autograd.detect_anomaly():
        log.add(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        y = x.sqrt()
        z = y * 0
        log.tries(lambda: z.sum().backward())
    with torch.autograd.detect_anomaly(check_nan=False):
        log.add(torch.is_anomaly_check_nan_enabled())
        log.tries(lambda: (x.sqrt() * 0).sum().backward())
    log.add(torch.is_anomaly_enabled())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        t = x * 1
        u = t * t
        t.add_(1)
        log.tries(lambda: u.sum().backward())

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g / 0 * 0

    with torch.autograd.detect_anomaly():
        log.tries(lambda: F.apply(x).sum().backward())


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
