# SPDX-License-Identifier: MIT
"""Loops and choices as functions. Nothing is captured: they run as loops and choices."""

import tenon
from tenon._rare import cond
from tenon.utils import _pytree

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


def while_loop(cond_fn, body_fn, carried_inputs):
    """body_fn of the inputs, of its results and so on, while cond_fn of them is true."""
    state = tuple(carried_inputs)
    while bool(cond_fn(*state)):
        state = body_fn(*state)
        state = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    return state


def _slices(tree, dim, reverse):
    leaves, spec = _pytree.tree_flatten(tree)
    if not leaves:
        raise RuntimeError("Expected at least one xs leaf")
    n = leaves[0].shape[dim]
    if any(x.shape[dim] != n for x in leaves):
        raise RuntimeError("All xs leaves must have the same size in the scanned dimension")
    order = range(n - 1, -1, -1) if reverse else range(n)
    return [spec.unflatten([x.select(dim, i) for x in leaves]) for i in order]


def _stacked(trees, dim, reverse=False):
    columns, spec = [], None
    for tree in reversed(trees) if reverse else trees:
        leaves, spec = _pytree.tree_flatten(tree)
        columns.append(leaves)
    return spec.unflatten([tenon.stack(list(parts), dim) for parts in zip(*columns)])


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """(carry, ys): combine_fn(carry, x) gives the next carry and a y, for each slice x in turn."""
    carry, ys = init, []
    for x in _slices(xs, dim, reverse):
        carry, y = combine_fn(carry, x)
        ys.append(y)
    return carry, _stacked(ys, 0, reverse)


def map(f, xs, *args):  # noqa: A001  (its name)
    """f of each slice of the first dimension, stacked."""
    return _stacked([f(x, *args) for x in _slices(xs, 0, False)], 0)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """What combine_fn makes of the first slices up to each one. A pointwise function is called with many slices at once,
    about twice the logarithm of their number of times; another one with one slice after another."""
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least one xs leaf")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError("Combine_mode must either 'pointwise' or 'generic', but got %s" % combine_mode)
    if combine_mode == "generic":
        parts = _slices(xs, dim, reverse)
        made = parts[:1]
        for part in parts[1:]:
            made.append(combine_fn(made[-1], part))
        return _stacked(made, dim, reverse)
    if reverse:
        leaves = [x.flip(dim) for x in leaves]

    def together(a, b):
        return _pytree.tree_leaves(combine_fn(spec.unflatten(a), spec.unflatten(b)))

    def part(values, start, end, step):
        index = [slice(None)] * values.dim()
        index[dim] = slice(start, end, step)
        return values[tuple(index)]

    def run(values):
        n = values[0].shape[dim]
        if n < 2:
            return values
        pairs = together([part(v, 0, n - 1, 2) for v in values], [part(v, 1, n, 2) for v in values])
        odd = run(pairs)  # the results at 1, 3, 5 …
        before = odd if n % 2 else [part(v, 0, v.shape[dim] - 1, 1) for v in odd]
        even = [part(v, 0, 1, 1) for v in values]
        if n > 2:
            more = together(before, [part(v, 2, n, 2) for v in values])
            even = [tenon.cat([a, b], dim) for a, b in zip(even, more)]
        out = []
        for e, o in zip(even, odd):
            both = tenon.stack([e.narrow(dim, 0, o.shape[dim]), o], dim + 1 if dim >= 0 else dim + e.dim() + 1)
            shape = list(e.shape)
            shape[dim] = 2 * o.shape[dim]
            both = both.reshape(shape)
            out.append(tenon.cat([both, e.narrow(dim, o.shape[dim], 1)], dim) if n % 2 else both)
        return out

    dim = dim % leaves[0].dim()
    made = run(leaves)
    return spec.unflatten([x.flip(dim) for x in made] if reverse else made)
