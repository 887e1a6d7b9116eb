# SPDX-License-Identifier: MIT
"""Muon: momentum whose direction is made orthogonal, for matrices of hidden layers."""

import math

import tenon
from tenon.optim.optimizer import Algorithm, check, like

__all__ = ["Muon"]


def orthogonalized(matrix, coefficients, steps, eps):
    """A bfloat16 matrix near to U V' where matrix = U S V', by a quintic Newton-Schulz iteration."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = matrix.size(0) > matrix.size(1)
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = tenon.addmm(x, tenon.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Algorithm):
    """Every parameter must be a matrix; use AdamW for the others."""

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        if isinstance(lr, tenon.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(0.0 <= lr, "Learning rate should be >= 0 but is", lr)
        check(0.0 <= momentum, "momentum should be >= 0 but is", momentum)
        check(0.0 <= weight_decay, "weight decay should be >= 0 but is", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError("Adjust learning rate function %s is not supported" % adjust_lr_fn)
        super().__init__(params, dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov, ns_coefficients=ns_coefficients,
            eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a parameter with size: %s"
                                     % (p.size(),))

    def _start(self, state, p, group):
        state["momentum_buffer"] = like(p.grad)

    def _update(self, p, grad, state, group):
        buffer, momentum, lr = state["momentum_buffer"], group["momentum"], group["lr"]
        buffer.lerp_(grad, 1 - momentum)
        direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        direction = orthogonalized(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        else:
            rate = lr * math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(direction.to(p.dtype), alpha=-rate)


# Checkpoints name classes by their modules in PyTorch.
Muon.__module__ = "tenon.optim"
