# SPDX-License-Identifier: MIT
"""Transforms of functions in forward mode, with inference tensors, with results of every dtype. Scenarios of
autograd_scenarios.py."""

from autograd_kit import leaf, module, scenario


def exponential(torch, keeps):
    """A Function whose backward can be differentiated once, and which has a jvp. ``keeps``: "result" or "argument"."""
    once = module(torch, "autograd.function").once_differentiable

    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            kept = output if keeps == "result" else inputs[0]
            ctx.save_for_backward(kept)
            ctx.save_for_forward(kept)

        @staticmethod
        @once
        def backward(ctx, grad):
            kept = ctx.saved_tensors[0]
            return grad * (kept if keeps == "result" else kept.exp())

        @staticmethod
        def jvp(ctx, tangent):
            kept = ctx.saved_tensors[0]
            return tangent * (kept if keeps == "result" else kept.exp())

        @staticmethod
        def vmap(info, dims, x):
            return Exponential.apply(x), dims[0]

    return Exponential.apply


@scenario
def jacobians_in_forward_mode_use_the_jvp_of_a_function(torch, log):
    f = module(torch, "func")
    x = leaf(torch, 0.5, 1).detach()
    for keeps in ("result", "argument"):
        apply = exponential(torch, keeps)
        log.add(f.jacfwd(lambda x: apply(x) * x)(x), f.linearize(lambda x: apply(x) * x, x)[1](torch.ones_like(x)))
        log.add(f.hessian(lambda x: (apply(x) * x).sum())(x), f.jacfwd(f.jacrev(lambda x: apply(x) * x))(x))
        log.add(f.jacrev(f.jacfwd(lambda x: apply(x) * x))(x), f.vmap(f.jacfwd(lambda x: apply(x) * x))(x.reshape(2, 1)))
        log.add(f.grad(lambda x: f.jvp(lambda x: apply(x) * x, (x,), (torch.ones_like(x),))[1].sum())(x))


@scenario
def gradients_of_duals_go_through_what_a_function_kept(torch, log):
    fwad = module(torch, "autograd.forward_ad")
    for keeps in ("result", "argument"):
        with fwad.dual_level():
            x = leaf(torch, 0.5, 1)
            dual = fwad.make_dual(x, torch.ones_like(x))
            made, = torch.autograd.grad(exponential(torch, keeps)(dual).sum(), dual)
            log.add(made.detach(), fwad.unpack_dual(made).tangent)


@scenario
def jacobians_in_forward_mode_do_not_ask_whether_something_is_recorded(torch, log):
    f = module(torch, "func")
    x = leaf(torch, 0.5, 1).detach()

    def quiet(x):
        with torch.no_grad():
            y = x.sin()
        return y * x

    def overwritten(x):
        y = x.exp()
        z = y * y
        y.mul_(2)
        return z + y

    def written(x):
        x.mul_(2)
        return x * x

    log.add(f.jacfwd(quiet)(x), f.hessian(lambda x: quiet(x).sum())(x), f.jacrev(quiet)(x))
    log.add(f.grad(lambda x: f.jvp(quiet, (x,), (torch.ones_like(x),))[1].sum())(x))
    log.add(f.linearize(quiet, x)[1](torch.ones_like(x)))
    log.add(f.jacfwd(overwritten)(x), f.linearize(overwritten, x)[1](torch.ones_like(x)), f.jacfwd(written)(x.clone()))
    log.tries(lambda: f.jacfwd(lambda a: x.mul_(a))(x.clone()))

    def into_another(a):
        y = x * 1
        y[:1].mul_(a[:1])
        z = y * y
        with torch.no_grad():
            z.add_(a)
        y.mul_(2)
        return z + y

    log.add(f.jacfwd(into_another)(x))


@scenario
def jacobians_in_forward_mode_nest(torch, log):
    f = module(torch, "func")
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
    w = torch.linspace(0, 1, 9, dtype=torch.float64).reshape(3, 3).requires_grad_()

    def layer(x):
        return torch.tanh(w @ x)

    log.add(f.vmap(f.jacfwd(lambda x: layer(x) * x))(x).detach(), f.jacfwd(f.vmap(lambda x: x.sin() * x.sum()))(x))
    log.add(torch.autograd.grad(f.jacfwd(layer)(x[0]).pow(2).sum(), w))
    log.add(torch.autograd.grad(f.vmap(f.jacfwd(layer))(x).pow(2).sum(), w))
    log.add(torch.autograd.grad(f.hessian(lambda x: layer(x).sum())(x[0]).pow(2).sum(), w))
    log.add(torch.autograd.grad(f.jacfwd(lambda x: x ** 3)(x[0].clone().requires_grad_()).sum(), w, allow_unused=True))
    log.add(f.vmap(f.hessian(lambda x: (x ** 4).sum()))(x).abs(), f.grad(lambda x: f.jacfwd(lambda z: z ** 3)(x).sum())(x[0]))
    log.add(f.jacfwd(f.jacfwd(lambda x: x ** 3))(x[0]).abs(), f.vmap(f.vmap(f.jacfwd(torch.sin)))(x))
    log.add(f.jacfwd(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(x[0], x[1]))
    log.add(f.jacfwd(lambda d: {"p": d["u"] * d["v"]})({"u": x[0], "v": x[1, 2]}))
    log.add(f.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(x[0]))
    log.add(f.jacfwd(lambda x: x * 2)(torch.zeros(0)).shape, f.jacfwd(lambda x: x[:0])(x[0]).shape)
    log.add(f.jacfwd(lambda x: torch.ones(2))(x[0]), f.jacfwd(lambda x: x.float())(x[0]), f.jacfwd(lambda x: x * x[0].item())(x[0]))


@scenario
def only_forward_mode_takes_results_without_a_derivative(torch, log):
    f = module(torch, "func")
    x = leaf(torch, 0.5, -1).detach()

    def signs(x):
        return x * 2, (x > 0).long()

    log.add(f.jvp(signs, (x,), (x,)), f.jacfwd(signs)(x), f.vmap(f.jacfwd(signs))(x.reshape(2, 1)))
    log.add(f.grad(lambda x: f.jvp(signs, (x,), (x,))[1][0].sum())(x))
    for transform in (lambda g: f.vjp(g, x), lambda g: f.jacrev(g)(x), lambda g: f.hessian(g)(x)):
        log.tries(transform, signs)
        log.tries(transform, lambda x: (x, 3))
    log.tries(lambda: f.jvp(lambda x: 3, (x,), (x,)))
    log.tries(lambda: f.jacfwd(lambda x: (x, 3))(x))
    log.add(f.grad(lambda x: (x.detach() * (1 + 2j)).sum())(x))


@scenario
def transforms_take_inference_tensors(torch, log):
    f, fwad = module(torch, "func"), module(torch, "autograd.forward_ad")
    x = leaf(torch, 1, 2).detach()
    with torch.inference_mode():
        w = torch.tensor([3.0, 4.0], dtype=torch.float64)
    log.add(f.grad(lambda x: (x * w).sum())(x), f.grad(lambda x: (x * x).sum())(w), f.grad(lambda x: (x * w.exp()).sum())(x))
    log.add(f.jvp(lambda x: (x * w).sin(), (x,), (x,)), f.jvp(lambda x: x * x, (w,), (x,)), f.jvp(lambda x: x * x, (x,), (w,)))
    log.add(f.jacrev(lambda x: x * w)(w), f.jacfwd(lambda x: x * w)(w), f.hessian(lambda x: (x * w * x).sum())(w))
    log.add(f.vjp(lambda x: x * w, x)[1](x), f.vmap(lambda x: (x * w).sum())(x.expand(3, 2)))
    with fwad.dual_level():
        dual = fwad.make_dual(x, torch.ones_like(x))
        log.add(fwad.unpack_dual(dual * w).tangent, fwad.unpack_dual((dual * w).exp() * w).tangent)
        log.add(fwad.unpack_dual(torch.dot(dual, w)).tangent, fwad.unpack_dual(fwad.make_dual(x, w) * x).tangent)
        recorded = fwad.make_dual(leaf(torch, 1, 2), x)
        log.tries(lambda: recorded * w)
    log.tries(lambda: leaf(torch, 1, 2) * w)


@scenario
def data_is_not_set_inside_a_transform(torch, log):
    f = module(torch, "func")
    x = torch.ones(2)

    def replaced(x):
        y = x * 1
        y.data = torch.zeros(2)
        return y.sum()

    def made(x):
        y = torch.ones(2)
        y.data = torch.zeros(2)
        return (x * y).sum()

    for func in (replaced, made):
        log.tries(lambda: f.grad(func)(x))
        log.tries(lambda: f.vjp(func, x)[0])
        log.tries(lambda: f.jvp(func, (x,), (x,)))
        log.tries(lambda: f.jacrev(func)(x))
    log.tries(lambda: f.vmap(replaced)(torch.ones(3, 2)))
    log.tries(lambda: f.vmap(f.grad(replaced))(torch.ones(3, 2)))
    log.add(f.vmap(made)(torch.ones(3, 2)), f.grad(lambda x: (x.data * x).sum())(x))


@scenario
def zeros_for_what_was_not_used_can_be_differentiated_again(torch, log):
    x, y = leaf(torch, 1, 2), leaf(torch, 3)
    for create_graph in (False, True):
        first, second = torch.autograd.grad((x ** 3).sum(), [x, y], create_graph=create_graph, materialize_grads=True)
        log.add(first.requires_grad, second, second.requires_grad, second.is_leaf)
    log.add(torch.autograd.grad(first.sum() + second.sum(), [x, y], materialize_grads=True))


@scenario
def a_number_in_a_tensor_is_converted_to_fill(torch, log):
    for value in (torch.tensor(1 + 2j), torch.tensor(300), torch.tensor(2.7), torch.tensor(1e10)):
        for dtype in (torch.float32, torch.uint8, torch.float16, torch.complex64, torch.bool):
            if not (value.dtype == torch.float32 and dtype == torch.uint8 and value.item() > 256):  # some result
                log.add(torch.zeros(2, dtype=dtype).fill_(value), torch.fill(torch.zeros(2, dtype=dtype), value))
    value = torch.tensor(1 + 2j, requires_grad=True)
    filled = torch.zeros(3).fill_(value)
    log.add(filled.detach(), type(filled.grad_fn).__name__, torch.autograd.grad(filled.sum(), value))
    log.tries(lambda: torch.zeros(2).fill_(1 + 2j))
    log.tries(lambda: torch.zeros(2, dtype=torch.uint8).fill_(300))
