# SPDX-License-Identifier: MIT
"""Rates that follow the size of each element's gradients: RMSprop, Adagrad, Adadelta, Adafactor."""

import tenon
from tenon.optim.optimizer import Algorithm, check, check_fused, check_rate, like, new_step, number

__all__ = ["RMSprop", "Adagrad", "Adadelta", "Adafactor"]


def _as_real(*tensors):
    return [tenon.view_as_real(t) if t is not None else None for t in tensors]


class RMSprop(Algorithm):
    """p -= lr * g / (sqrt(v) + eps), v being a running average of g squared."""

    _added_options = (("momentum", 0), ("centered", False), ("foreach", None), ("maximize", False),
                      ("differentiable", False), ("capturable", False))

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):
        check_rate(lr)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        check(0.0 <= momentum, "Invalid momentum value", momentum)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        check(0.0 <= alpha, "Invalid alpha value", alpha)
        super().__init__(params, dict(
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
            capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable))

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        state["square_avg"] = like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = like(p)
        if group["centered"]:
            state["grad_avg"] = like(p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square, mean, buffer = (state.get(name) for name in ("square_avg", "grad_avg", "momentum_buffer"))
        if p.is_complex():
            p, grad, square, mean, buffer = _as_real(p, grad, square, mean, buffer)
        alpha, lr = group["alpha"], number(group["lr"])
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
        if group["momentum"] > 0:
            buffer.mul_(group["momentum"]).addcdiv_(grad, root)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, root, value=-lr)


class Adagrad(Algorithm):
    """p -= lr * g / (sqrt(s) + eps), s being the sum of all squares so far."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False), ("fused", None))
    _takes_sparse = True

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        check_rate(lr)
        check(0.0 <= lr_decay, "Invalid lr_decay value", lr_decay)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        check(0.0 <= initial_accumulator_value, "Invalid initial_accumulator_value value", initial_accumulator_value)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        super().__init__(params, dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
            differentiable=differentiable, fused=fused))
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._start(self.state[p], p, group)

    def _start(self, state, p, group):
        first = group["initial_accumulator_value"]
        state["step"] = new_step()
        state["sum"] = like(p, complex(first, first) if p.is_complex() else first)

    def share_memory(self):
        """Move the sums into shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update(self, p, grad, state, group):
        state["step"] += 1
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(p, alpha=group["weight_decay"])
        rate = number(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        total = state["sum"]
        if grad.is_sparse:  # only the elements that it has move
            grad = grad.coalesce()
            at, g = tuple(grad.indices()), grad.values()
            total.index_put_(at, g * g, accumulate=True)
            p.index_put_(at, g.div(total[at].sqrt().add_(group["eps"])).mul_(-rate), accumulate=True)
            return
        if p.is_complex():
            p, grad, total = _as_real(p, grad, total)
        total.addcmul_(grad, grad, value=1)
        root = total.sqrt() + group["eps"] if group["differentiable"] else total.sqrt().add_(group["eps"])
        p.addcdiv_(grad, root, value=-rate)


class Adadelta(Algorithm):
    """Steps as long as recent steps were, over the size of recent gradients."""

    _added_options = (("foreach", None), ("maximize", False), ("differentiable", False), ("capturable", False))

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False):
        check_rate(lr)
        check(0.0 <= rho <= 1.0, "Invalid rho value", rho)
        check(0.0 <= eps, "Invalid epsilon value", eps)
        check(0.0 <= weight_decay, "Invalid weight_decay value", weight_decay)
        super().__init__(params, dict(
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
            foreach=foreach, differentiable=differentiable))

    def _start(self, state, p, group):
        state["step"] = new_step(group, p)
        state["square_avg"] = like(p)
        state["acc_delta"] = like(p)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square, moved = state["square_avg"], state["acc_delta"]
        if p.is_complex():
            p, grad, square, moved = _as_real(p, grad, square, moved)
        rho, eps = group["rho"], group["eps"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square.add(eps).sqrt_()
        delta = moved.add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-number(group["lr"]))


class Adafactor(Algorithm):
    """Adam's second moment kept as one row and one column for each matrix."""

    _added_options = (("foreach", None),)

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None,
                 maximize=False):
        if isinstance(lr, tenon.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(0.0 <= lr, "Learning rate should be >= 0 but is", lr)
        check(0.0 >= beta2_decay, "beta2_decay should be <= 0 but is", beta2_decay)
        check(eps[0] is None or 0.0 <= eps[0], "epsilon1 should be >= 0 but is", eps[0])
        check(0.0 <= eps[1], "epsilon2 should be >= 0 but is", eps[1])
        check(1.0 <= d, "Clipping threshold d should be >= 1 but is", d)
        check(0.0 <= weight_decay, "weight_decay should be >= 0 but is", weight_decay)
        super().__init__(params, dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize))

    def _start(self, state, p, group):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = p.grad
        state["step"] = tenon.tensor(0.0, dtype=tenon.float32)
        if grad.dim() > 1:
            shape = list(grad.shape)
            state["row_var"] = grad.new_zeros(shape[:-1] + [1])
            state["col_var"] = grad.new_zeros(shape[:-2] + [1] + shape[-1:])
        else:
            state["variance"] = like(grad)

    def _update(self, p, grad, state, group):
        state["step"] += 1
        step, lr = state["step"].item(), number(group["lr"])
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = tenon.finfo(p.dtype).eps
        weight = step ** group["beta2_decay"]
        scale = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step ** 0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(tenon.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), weight)
            columns.lerp_(tenon.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), weight)
            estimate = rows @ columns
            estimate.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, weight)
            estimate = state["variance"].clone()
        update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        p.add_(update, alpha=-scale / clip)


# Checkpoints name classes by their modules in PyTorch.
Adafactor.__module__ = "tenon.optim"
for _class in RMSprop, Adagrad, Adadelta:
    _class.__module__ = "tenon.optim." + _class.__name__.lower()
