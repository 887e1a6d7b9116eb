# SPDX-License-Identifier: MIT
"""LBFGS: a quasi-Newton method that keeps a short history, with a line search that meets the strong Wolfe conditions."""

import tenon
from tenon.optim.optimizer import Optimizer, check_rate

__all__ = ["LBFGS"]


class _Point:
    """A place on the line that is searched: how far, the loss, the gradient, the slope along the line."""

    __slots__ = ("t", "loss", "grad", "slope")

    def __init__(self, t, loss, grad, slope):
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


def _cubic_minimum(a, b, low=None, high=None):
    """Where the cubic through both points with their slopes is least, kept within low and high."""
    if low is None:
        low, high = min(a.t, b.t), max(a.t, b.t)
    mixed = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = mixed * mixed - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    if a.t > b.t:
        a, b = b, a
    root = square ** 0.5
    least = b.t - (b.t - a.t) * ((b.slope + root - mixed) / (b.slope - a.slope + 2 * root))
    return min(max(least, low), high)


def strong_wolfe(evaluate, start, t, reach, smallest, decrease=1e-4, curvature=0.9, max_tries=25):
    """Search for a point whose loss decreases enough and whose slope is flat enough.

    evaluate(t) gives a _Point; `start` is the point at 0; `reach` is the largest element of the direction. Returns
    the best point found and how often it evaluated.
    """
    def too_high(point):
        return point.loss > start.loss + decrease * point.t * start.slope

    def flat(point):
        return abs(point.slope) <= -curvature * start.slope

    previous, new = start, evaluate(t)
    tries = 0
    ends = None
    while tries < max_tries:
        if too_high(new) or (tries > 1 and new.loss >= previous.loss):
            ends = [previous, new]
            break
        if flat(new):
            return new, tries + 1
        if new.slope >= 0:
            ends = [previous, new]
            break
        t = _cubic_minimum(previous, new, new.t + 0.01 * (new.t - previous.t), new.t * 10)
        previous, new = new, evaluate(t)
        tries += 1
    if ends is None:
        ends = [start, new]

    # ends bracket a minimum: shrink the bracket, best point first.
    ends.sort(key=lambda point: point.loss)
    slow = False
    while tries < max_tries:
        best, other = ends
        if abs(other.t - best.t) * reach < smallest:
            break
        low, high = min(best.t, other.t), max(best.t, other.t)
        t = _cubic_minimum(best, other)
        margin = 0.1 * (high - low)
        if min(high - t, t - low) < margin:
            if slow or t >= high or t <= low:
                t = high - margin if abs(t - high) < abs(t - low) else low + margin
                slow = False
            else:
                slow = True
        else:
            slow = False
        new = evaluate(t)
        tries += 1
        if too_high(new) or new.loss >= best.loss:
            ends = [best, new] if best.loss <= new.loss else [new, best]
            continue
        if flat(new):
            ends[0] = new
            break
        ends = [new, best if new.slope * (other.t - best.t) >= 0 else other]
    return ends[0], tries + 1


class LBFGS(Optimizer):
    """One group of parameters. `step` needs a closure that clears gradients, computes the loss, calls backward and
    returns the loss; it is called up to max_eval times."""

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):
        check_rate(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, dict(
            lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self):
        rows = []
        for p in self._params:
            row = p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            rows.append(tenon.view_as_real(row).reshape(-1) if row.is_complex() else row)
        return tenon.cat(rows, 0)

    def _move(self, t, direction):
        at = 0
        for p in self._params:
            p = tenon.view_as_real(p) if p.is_complex() else p
            p.add_(direction[at:at + p.numel()].view_as(p), alpha=t)
            at += p.numel()

    @tenon.no_grad()
    def step(self, closure):
        """Up to max_iter iterations. Returns the loss that `closure` gave first."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        group = self.param_groups[0]
        lr, search = float(group["lr"]), group["line_search_fn"]
        enough, change = group["tolerance_grad"], group["tolerance_change"]
        if search is not None and search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def run():
            with tenon.enable_grad():
                return closure()

        first_loss = run()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= enough:
            return first_loss

        iterations = 0
        direction, t = state.get("d"), state.get("t")
        previous_grad, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, group, grad, previous_grad, direction, t)
            previous_grad = grad.clone(memory_format=tenon.contiguous_format)
            previous_loss = loss
            t = min(1.0, 1.0 / float(grad.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(grad.dot(direction))
            if slope > -change:
                break
            tries = 0
            if search is not None:
                loss, grad, t, tries = self._search(run, loss, grad, t, direction, slope, change)
                flat = bool(grad.abs().max() <= enough)
            else:
                self._move(t, direction)
                flat = False
                if iterations != group["max_iter"]:  # a loss that nobody would look at is not computed
                    loss = float(run())
                    grad = self._flat_grad()
                    flat = bool(grad.abs().max() <= enough)
                    tries = 1
            evaluations += tries
            state["func_evals"] += tries
            if (iterations == group["max_iter"] or evaluations >= group["max_eval"] or flat
                    or direction.mul(t).abs().max() <= change or abs(loss - previous_loss) < change):
                break
        kept = {name: state.pop(name) for name in ("old_dirs", "old_stps", "ro", "H_diag")}
        for name in ("d", "t", "prev_flat_grad", "prev_loss"):
            state.pop(name, None)
        # In the order of a saved state.
        state.update(d=direction, t=t, **kept, prev_flat_grad=previous_grad, prev_loss=previous_loss)
        return first_loss

    def _direction(self, state, group, grad, previous_grad, direction, t):
        """Where to go: minus the inverse Hessian, as the history knows it, times the gradient."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return grad.neg()
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad.sub(previous_grad), direction.mul(t)
        ys = y.dot(s)
        if ys > 1e-10:
            if len(changes) == group["history_size"]:
                for column in (changes, steps, ro):
                    column.pop(0)
            changes.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        weights = state.setdefault("al", [None] * group["history_size"])
        q = grad.neg()
        for i in range(len(changes) - 1, -1, -1):
            weights[i] = steps[i].dot(q) * ro[i]
            q.add_(changes[i], alpha=-weights[i].item())
        q = q.mul(state["H_diag"])
        for i in range(len(changes)):
            q.add_(steps[i], alpha=(weights[i] - changes[i].dot(q) * ro[i]).item())
        return q

    def _search(self, run, loss, grad, t, direction, slope, change):
        origin = [p.clone(memory_format=tenon.contiguous_format) for p in self._params]

        def back():
            for p, saved in zip(self._params, origin):
                p.copy_(saved)

        def evaluate(t):
            self._move(t, direction)
            loss = float(run())
            grad = self._flat_grad()
            back()
            return _Point(t, loss, grad, float(grad.dot(direction)))

        point, tries = strong_wolfe(evaluate, _Point(0, loss, grad, slope), t, float(direction.abs().max()), change)
        self._move(point.t, direction)
        return point.loss, point.grad, point.t, tries
