# SPDX-License-Identifier: MIT
"""The family of Adam: Adam, AdamW, Adamax, NAdam and RAdam."""

import tenon
from tenon.optim.optimizer import Algorithm, can_fuse, check, check_fused, check_rate, like, new_step, number, option, scalar_dtype

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


def _check_betas(betas):
    for i in range(2):  # by index: one that is missing is an IndexError here, not at the first step
        check(0.0 <= betas[i] < 1.0, "Invalid beta parameter at index %d" % i, betas[i])


def _moments(state, p):
    state["exp_avg"] = like(p)
    state["exp_avg_sq"] = like(p)


def _decay(p, grad, group):
    """Weight decay, on the parameter itself or through the gradient; returns the gradient to use."""
    decay = option(group["weight_decay"], group)
    if decay != 0:
        if group.get("decoupled_weight_decay"):
            p.mul_(1 - option(group["lr"], group) * decay)
        elif isinstance(decay, tenon.Tensor):
            grad = grad.addcmul(p.clone(), decay)  # the step writes p
        else:
            grad = grad.add(p, alpha=decay)
    return grad


def _as_real(p, grad, state):
    """The parameter, its gradient and its averages; complex ones as the real numbers that they are made of."""
    if not p.is_complex():
        return p, grad, state
    averages = {name: tenon.view_as_real(state[name]) for name in ("exp_avg", "exp_avg_sq")}
    return tenon.view_as_real(p), tenon.view_as_real(grad), averages


def _average(grad, state, beta1, beta2):
    """Take the gradient into both running averages, and return them."""
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.lerp_(grad, 1 - beta1)
    if isinstance(beta2, tenon.Tensor):
        square.mul_(beta2).addcmul_(grad, grad.conj() * (1 - beta2))
    else:
        square.mul_(beta2).addcmul_(grad, grad.conj(), value=1 - beta2)
    return mean, square


class Adam(Algorithm):
    """p -= lr * m / (sqrt(v) + eps), m and v being running averages of the gradient and of its square, corrected for
    their start at zero."""

    _added_options = (("amsgrad", False), ("maximize", False), ("foreach", None), ("capturable", False),
                      ("differentiable", False), ("decoupled_weight_decay", False), ("fused", None))

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        check_rate(lr, {"foreach": foreach, "capturable": capturable})
        check(0.0 <= eps, "Invalid epsilon value", eps)
        _check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        if len({isinstance(beta, tenon.Tensor) for beta in betas}) > 1:
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, tenon.Tensor):
                if not capturable and foreach:
                    raise ValueError("betas[%d] as a Tensor is not supported for capturable=False and foreach=True" % i)
                if beta.numel() != 1:
                    raise ValueError("Tensor betas[%d] must be 1-element" % i)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
            foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay))
        check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _sparse_message(self):
        return "Adam does not support sparse gradients, please consider SparseAdam instead"

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        _moments(state, p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = like(p)

    def _update_all(self, params, grads, states, group):
        if not can_fuse(params, grads, group):
            super()._update_all(params, grads, states, group)
            return
        steps = [state["step"] for state in states]
        tenon._foreach_add_(steps, 1)
        beta1, beta2 = group["betas"]
        run = tenon._fused_adamw_ if group.get("decoupled_weight_decay") else tenon._fused_adam_
        try:
            run(params, grads, [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states],
                [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else [], steps,
                lr=group["lr"], beta1=number(beta1), beta2=number(beta2), weight_decay=group["weight_decay"],
                eps=group["eps"], amsgrad=group["amsgrad"], maximize=group["maximize"],
                grad_scale=getattr(self, "grad_scale", None), found_inf=getattr(self, "found_inf", None))
        except BaseException:
            tenon._foreach_add_(steps, -1)  # a step that was not done is not counted
            raise

    def _update(self, p, grad, state, group):
        state["step"] += 1
        grad = _decay(p, grad, group)
        keep = group["differentiable"]  # tensors among the options then stay tensors, for their own gradients
        lr, (beta1, beta2) = group["lr"], group["betas"]
        if not keep:
            lr, beta1, beta2 = number(lr), number(beta1), number(beta2)
        step = state["step"].clone() if keep else state["step"].item()  # the next step writes it
        if p.is_complex():
            _adam_complex(p, grad, state, group, lr, beta1, beta2, step)
            return
        mean, square = _average(grad, state, beta1, beta2)
        size = lr / (1 - beta1 ** step)
        root = (1 - beta2 ** step) ** 0.5
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(tenon.maximum(largest.clone() if keep else largest, square))
            square = largest
        if keep:
            p.addcdiv_(mean.clone(), (square.sqrt() / (root * -size)).add_(group["eps"] / -size))
        else:
            p.addcdiv_(mean, (square.sqrt() / root).add_(group["eps"]), value=-size)


def _adam_complex(p, grad, state, group, lr, beta1, beta2, step):
    """A complex parameter is updated as the real numbers that it is made of."""
    real = {name: tenon.view_as_real(value) for name, value in state.items() if name != "step"}
    mean, square = _average(tenon.view_as_real(grad), real, beta1, beta2)
    if group["amsgrad"]:
        square = real["max_exp_avg_sq"].copy_(tenon.maximum(real["max_exp_avg_sq"], square))
    denominator = (square.sqrt() / (1 - beta2 ** step) ** 0.5).add_(group["eps"])
    tenon.view_as_real(p).addcdiv_(mean, denominator, value=-lr / (1 - beta1 ** step))


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


tenon._C._know_optimizer(Adam, 1)
tenon._C._know_optimizer(AdamW, 1)


def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False,
         differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False,
         decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize):
    """One step of Adam over lists of tensors, for optimizers that keep their state themselves."""
    if not all(isinstance(step, tenon.Tensor) for step in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    group = dict(lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                 foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                 decoupled_weight_decay=decoupled_weight_decay)
    states = [dict(step=step, exp_avg=mean, exp_avg_sq=square)
              for step, mean, square in zip(state_steps, exp_avgs, exp_avg_sqs, strict=True)]
    if amsgrad:
        for state, largest in zip(states, max_exp_avg_sqs, strict=True):
            state["max_exp_avg_sq"] = largest
    algorithm = Adam.__new__(Adam)
    algorithm.grad_scale, algorithm.found_inf = grad_scale, found_inf
    algorithm._update_all(params, grads, states, group)


def adamw(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False,
          differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, **options):
    """One step of AdamW over lists of tensors."""
    adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused,
         grad_scale, found_inf, has_complex, True, **options)


class Adamax(Algorithm):
    """Adam with the largest recent gradient in the place of the root of the average square."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False), ("capturable", False))

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False):
        check_rate(lr)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        _check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        state["exp_avg"] = like(p)
        state["exp_inf"] = like(p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        mean, largest = state["exp_avg"], state["exp_inf"]
        if p.is_complex():
            p, grad, mean, largest = (tenon.view_as_real(x) for x in (p, grad, mean, largest))
        beta1, beta2 = group["betas"]
        mean.lerp_(grad, 1 - beta1)
        largest.copy_(tenon.maximum(largest.mul(beta2), grad.abs().add_(group["eps"])))
        rate = number(group["lr"]) / (1 - beta1 ** state["step"].item())
        p.addcdiv_(mean, largest, value=-rate)


def _plus(root, group):
    """The root plus eps; where the step is differentiated, the root itself is needed again."""
    return root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])


class NAdam(Algorithm):
    """Adam with Nesterov's look ahead."""

    _added_options = (("maximize", False), ("foreach", None), ("capturable", False), ("differentiable", False),
                      ("decoupled_weight_decay", False))

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False):
        check_rate(lr)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        _check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        check(0.0 <= momentum_decay, "Invalid momentum_decay value", momentum_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable))

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        state["mu_product"] = tenon.ones((), dtype=scalar_dtype())
        _moments(state, p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        step, lr = state["step"].item(), number(group["lr"])
        grad = _decay(p, grad, group)
        p, grad, real = _as_real(p, grad, state)
        beta1, beta2 = group["betas"]
        fading = group["momentum_decay"]
        now = beta1 * (1.0 - 0.5 * 0.96 ** (step * fading))
        then = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * fading))
        state["mu_product"] *= now
        mean, square = _average(grad, real, beta1, beta2)
        denominator = square.div(1 - beta2 ** step).sqrt()
        denominator = _plus(denominator, group)
        if group["differentiable"]:  # the next step writes the average and the product, which has a gradient too
            product = state["mu_product"].clone()
            p.addcdiv_(grad * (-lr * (1.0 - now) / (1.0 - product)), denominator)
            p.addcdiv_(mean * (-lr * then / (1.0 - product * then)), denominator)
            return
        product = state["mu_product"].item()
        p.addcdiv_(grad, denominator, value=-lr * (1.0 - now) / (1.0 - product))
        p.addcdiv_(mean, denominator, value=-lr * then / (1.0 - product * then))


class RAdam(Algorithm):
    """Adam that leaves the division out while the variance of v is not yet known well enough."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False),
                      ("decoupled_weight_decay", False), ("capturable", False))

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_rate(lr)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        _check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable))

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        _moments(state, p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        step, lr = state["step"].item(), number(group["lr"])
        grad = _decay(p, grad, group)
        p, grad, real = _as_real(p, grad, state)
        beta1, beta2 = group["betas"]
        mean, square = _average(grad, real, beta1, beta2)
        correction1, correction2 = 1 - beta1 ** step, 1 - beta2 ** step
        mean = mean / correction1
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2 ** step / correction2
        if length > 5.0:
            rectify = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
            adaptive = correction2 ** 0.5 / _plus(square.sqrt(), group)
            p.add_(mean * lr * adaptive * rectify, alpha=-1.0)
        else:
            p.add_(mean * lr, alpha=-1.0)


# Checkpoints name classes by their modules in PyTorch.
for _class in AdamW, Adamax, NAdam, RAdam:
    _class.__module__ = "tenon.optim." + _class.__name__.lower()
