# SPDX-License-Identifier: MIT
"""Adam for sparse gradients: only the rows that a gradient has move, and their moments with them."""
import tenon

from tenon.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam whose moments are those of the elements that have a gradient. State: step, exp_avg, exp_avg_sq."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if isinstance(lr, tenon.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError("Invalid learning rate: %s" % lr)
        if not 0.0 < eps:
            raise ValueError("Invalid epsilon value: %s" % eps)
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError("Invalid beta parameter at index %d: %s" % (i, betas[i]))
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        every = [([g, i], p) for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"])]
        sparse = [place for place, p in every if p.is_sparse]
        if sparse:
            raise ValueError("Sparse params at indices %s: SparseAdam requires dense parameter tensors" % sparse)
        numbers = [place for place, p in every if p.is_complex()]
        if numbers:
            raise ValueError("Complex params at indices %s: SparseAdam does not support complex parameters" % numbers)

    def step(self, closure=None):
        """One update of every parameter that has a gradient. Returns what `closure`, called first, returns."""
        loss = None
        if closure is not None:
            with tenon.enable_grad():
                loss = closure()
        with tenon.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(p, p.grad, group)
        return loss

    def _update(self, p, grad, group):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[p]
        if len(state) == 0:
            state["step"] = 0
            state["exp_avg"] = tenon.zeros_like(p, memory_format=tenon.preserve_format)
            state["exp_avg_sq"] = tenon.zeros_like(p, memory_format=tenon.preserve_format)
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        at, g = tuple(grad.indices()) or (slice(None),), grad.values()
        if p.dim() == 0:
            p, g = p.view(1), g.view(1)
            state = {name: part.view(1) if name != "step" else part for name, part in state.items()}
        g = -g if group["maximize"] else g
        (first, second), t = group["betas"], state["step"]
        mean = state["exp_avg"][at].mul_(first).add_(g, alpha=1 - first)
        square = state["exp_avg_sq"][at].mul_(second).addcmul_(g, g, value=1 - second)
        state["exp_avg"][at], state["exp_avg_sq"][at] = mean, square
        rate = group["lr"] * (1 - second ** t) ** 0.5 / (1 - first ** t)
        p[at] += mean.div(square.sqrt().add_(group["eps"])).mul_(-rate)
