# SPDX-License-Identifier: MIT
"""Forward mode, transforms of functions, modes of recording, anomaly mode. Scenarios of autograd_scenarios.py."""

from autograd_kit import leaf, module, scenario


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
