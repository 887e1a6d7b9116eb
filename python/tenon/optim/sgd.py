# SPDX-License-Identifier: MIT
"""Gradient descent: SGD with momentum, averaged SGD, and Rprop, which looks at signs alone."""

import tenon
from tenon.optim.optimizer import (Algorithm, can_fuse, check, check_fused, check_rate, like, new_step, number, option,
                                   scalar_dtype)

__all__ = ["SGD", "ASGD", "Rprop"]


class SGD(Algorithm):
    """p -= lr * d, where d is the gradient (plus weight_decay * p), or with momentum a running sum of it."""

    _added_options = (("nesterov", False), ("maximize", False), ("foreach", None), ("differentiable", False),
                      ("fused", False))
    _takes_sparse = True

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        check_rate(lr)
        check(momentum >= 0.0, "Invalid momentum value", momentum)
        check(weight_decay >= 0.0, "Invalid weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused))
        check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _is_stateful(self, group):
        return group["momentum"] != 0

    def _update_all(self, params, grads, states, group):
        if not can_fuse(params, grads, group):
            super()._update_all(params, grads, states, group)
        elif group["momentum"] == 0:
            self._fused(params, grads, [], group, True)
        else:
            fresh = [i for i, state in enumerate(states) if state.get("momentum_buffer") is None]
            for i in fresh:
                states[i]["momentum_buffer"] = tenon.empty_like(params[i])
            chosen = set(fresh)
            for first, rows in ((True, fresh), (False, [i for i in range(len(params)) if i not in chosen])):
                if rows:
                    self._fused([params[i] for i in rows], [grads[i] for i in rows],
                                [states[i]["momentum_buffer"] for i in rows], group, first)

    def _fused(self, params, grads, buffers, group, first):
        tenon._fused_sgd_(params, grads, buffers, weight_decay=group["weight_decay"], momentum=group["momentum"],
                          lr=group["lr"], dampening=group["dampening"], nesterov=group["nesterov"],
                          maximize=group["maximize"], is_first_step=first,
                          grad_scale=getattr(self, "grad_scale", None), found_inf=getattr(self, "found_inf", None))

    def _update(self, p, grad, state, group):
        decay = option(group["weight_decay"], group)
        if isinstance(decay, tenon.Tensor):
            grad = grad.addcmul(p.clone(), decay)  # the step writes p
        elif decay != 0:
            grad = grad.add(p, alpha=decay)
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone() if group["differentiable"] else grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = option(group["lr"], group)
        if isinstance(lr, tenon.Tensor):
            p.addcmul_(grad.clone() if momentum != 0 else grad, lr, value=-1)  # the next step writes the buffer
        else:
            p.add_(grad, alpha=-lr)


tenon._C._know_optimizer(SGD, 0)


def sgd(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None,
        found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    """One step of SGD over lists of tensors; buffers that are None are made."""
    group = dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                 maximize=maximize, foreach=foreach, differentiable=False, fused=fused)
    states = [dict(momentum_buffer=buffer) for buffer in momentum_buffer_list]
    algorithm = SGD.__new__(SGD)
    algorithm.grad_scale, algorithm.found_inf = grad_scale, found_inf
    algorithm._update_all(params, d_p_list, states, group)
    momentum_buffer_list[:] = [state["momentum_buffer"] for state in states]


class ASGD(Algorithm):
    """SGD whose state "ax" is the average of the parameter from step t0 on."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False), ("capturable", False))

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
                 differentiable=False, capturable=False):
        check_rate(lr)
        check(weight_decay >= 0.0, "Invalid weight_decay value", weight_decay)
        super().__init__(params, dict(
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))

    def _start(self, state, p, group):
        state["step"] = new_step()
        state["eta"] = tenon.tensor(float(number(group["lr"])), dtype=scalar_dtype(), device=p.device)
        state["mu"] = tenon.ones((), dtype=scalar_dtype(), device=p.device)
        state["ax"] = like(p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        eta, mu, average = state["eta"], state["mu"], state["ax"]
        rate = eta.item()
        p.mul_(1 - group["lambd"] * rate)
        p.add_(grad, alpha=-rate)
        if mu.item() != 1:
            average.add_(p.sub(average).mul_(mu))
        else:
            average.copy_(p)
        step, lr = state["step"].item(), number(group["lr"])
        eta.fill_(lr / ((1 + group["lambd"] * lr * step) ** group["alpha"]))
        mu.fill_(1 / max(1, step - group["t0"]))


class Rprop(Algorithm):
    """Each element has its own step size, which grows while its gradient keeps its sign and shrinks when it turns."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False), ("capturable", False))

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError("Invalid eta values: %s, %s" % (etas[0], etas[1]))
        super().__init__(params, dict(
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))

    def _start(self, state, p, group):
        state["step"] = new_step()
        state["prev"] = like(p)
        rate = float(number(group["lr"]))
        state["step_size"] = tenon.full_like(p.grad, complex(rate, rate) if p.is_complex() else rate)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        prev, size = state["prev"], state["step_size"]
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        if p.is_complex():
            grad, prev, size, p = (tenon.view_as_real(x) for x in (grad, prev, size, p))
        turn = grad.mul(prev.clone() if group["differentiable"] else prev)
        one = tenon.ones_like(turn)
        factor = tenon.where(turn > 0, one * grow, tenon.where(turn < 0, one * shrink, one))
        size.mul_(factor).clamp_(smallest, largest)
        grad = tenon.where(turn < 0, tenon.zeros_like(grad), grad)  # where the sign turned, stand still once
        p.addcmul_(grad.sign(), size, value=-1)
        prev.copy_(grad)


# Checkpoints name classes by their modules in PyTorch.
for _class in ASGD, Rprop:
    _class.__module__ = "tenon.optim." + _class.__name__.lower()
