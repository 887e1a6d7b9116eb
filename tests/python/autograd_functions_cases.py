# SPDX-License-Identifier: MIT
"""Functions with a gradient of their own. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, module, scenario, text


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
    g, = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    log.add(g.requires_grad)
    log.tries(lambda: g.sum().backward())


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


# ---- more of functions ----


@scenario
def functions_call_functions(torch, log):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            log.add("inner", torch.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 20

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = Inner.apply(x)
            log.add("outer", y.requires_grad, torch.is_grad_enabled())
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = Inner.apply(ctx.x)
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            return torch.autograd.grad(ctx.y, ctx.x, g)[0]

    x = leaf(torch, 1, 2)
    y = Outer.apply(x)
    log.add(y)
    y.sum().backward()
    log.add(x.grad)


@scenario
def functions_hold_what_they_are_given(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = {"a": x.shape}
            ctx.x = x
            y = x * 2
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, g):
            log.add(list(ctx.note["a"]), ctx.x.requires_grad, ctx.y.requires_grad)
            return g

    x = leaf(torch, 1, 2)
    y = F.apply(x)
    log.add(type(y.grad_fn).__name__, y.grad_fn.note["a"] == x.shape, isinstance(y.grad_fn, F), y.grad_fn.name())
    y.grad_fn.extra = 5
    log.add(y.grad_fn.extra)
    y.sum().backward()
    log.tries(lambda: y.sum().backward())
    log.tries(lambda: y.grad_fn.nothing)


@scenario
def functions_give_gradients_of_other_kinds(torch, log):
    def make(backward):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(True)
                return x.sum(0, keepdim=True)

            @staticmethod
            def backward(ctx, g):
                return backward(g)

        return F

    x = torch.ones(3, 2, requires_grad=True)
    for backward in (lambda g: g.expand(3, 2), lambda g: g, lambda g: g.double().expand(3, 2), lambda g: g.half().expand(3, 2),
                     lambda g: g.expand(4, 3, 2), lambda g: torch.ones(()), lambda g: torch.zeros(3, 2, dtype=torch.bool),
                     lambda g: torch.ones(2, 3), lambda g: torch.ones(0), lambda g: g.expand(3, 2).contiguous().t()):
        x.grad = None
        log.tries(lambda: make(backward).apply(x).sum().backward())
        log.add(x.grad, None if x.grad is None else (x.grad.dtype, x.grad.stride()))


@scenario
def functions_with_several_results(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b, c):
            log.add(a, b, c)
            return a + 2 * b + 3 * c

    x = leaf(torch, 1, 2)
    a, b, c = F.apply(x)
    log.add([t.grad_fn is a.grad_fn for t in (b, c)], [t.output_nr for t in (a, b, c)])
    b.sum().backward(retain_graph=True)
    (a * c).sum().backward(retain_graph=True)
    log.add(x.grad)
    log.add(torch.autograd.grad(c.sum(), [x, b], allow_unused=True, retain_graph=True))
    b.register_hook(lambda g: g * 10)
    b.retain_grad()
    (b.sum() + c.sum()).backward(retain_graph=True)
    log.add(b.grad, x.grad)
    del a, c
    b.sum().backward()
    log.add(x.grad)


@scenario
def functions_return_the_same_thing_twice(torch, log):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a + 10 * b

    class Inputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return y, x

        @staticmethod
        def backward(ctx, a, b):
            return 2 * b, 3 * a

    x, y = leaf(torch, 1, 2), leaf(torch, 3, 4)
    log.tries(lambda: [t.sum().backward() for t in Twice.apply(x)[:1]])
    log.add(x.grad)
    x.grad = None
    p, q = Inputs.apply(x, y)
    (p * 5 + q).sum().backward()
    log.add(x.grad, y.grad, p is y, q is x)
    r = Inputs.apply(x, x)
    log.add(len(r), r[0] is r[1])
    x.grad = None
    (r[0] + 100 * r[1]).sum().backward()
    log.add(x.grad)
