# SPDX-License-Identifier: MIT
"""vmap: a function of slices as a function of the whole, one call for each slice."""
import functools

import tenon
from ._tree import broadcast, flatten


def _sizes(leaves, dims, func):
    found = []
    for x, d in zip(leaves, dims):
        if d is None:
            continue
        name = getattr(func, "__name__", repr(func))
        if not isinstance(x, tenon.Tensor):
            raise ValueError("vmap(%s, in_dims=..., ...)(<inputs>): Got in_dim=%s for an input but the input is of type "
                             "%s. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
                             % (name, d, type(x)))
        if not -x.dim() <= d < x.dim():
            raise ValueError("vmap(%s, in_dims=..., ...)(<inputs>): Got in_dim=%s for some input, but that input is a "
                             "Tensor of dimensionality %d so expected in_dim to satisfy -%d <= in_dim < %d."
                             % (name, d, x.dim(), x.dim(), x.dim()))
        found.append(x.shape[d])
    if not found:
        raise ValueError("vmap(%s, in_dims=..., ...)(<inputs>): in_dims has no mapped dimension: there is nothing to vmap "
                         "over" % getattr(func, "__name__", repr(func)))
    if len(set(found)) > 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes %s for the "
                         "mapped dimension" % found)
    return found[0]


def _join(rows, out_dims):
    """The results of all calls, stacked where each is to be."""
    columns, build, kept = [], None, None
    for row in rows:
        leaves = []
        build = flatten(row, leaves)
        columns.append(leaves)
        kept = row
    dims = broadcast(out_dims, kept, "out_dims") if not isinstance(kept, tenon.Tensor) else [
        out_dims[0] if isinstance(out_dims, (tuple, list)) else out_dims]
    made = []
    for i, d in enumerate(dims):
        parts = [c[i] for c in columns]
        if d is None:
            made.append(parts[0])
            continue
        if not isinstance(parts[0], tenon.Tensor):
            raise ValueError("vmap: `%s` must only return Tensors, got type %s" % ("f", type(parts[0])))
        made.append(tenon.stack(parts, dim=d))
    return build(iter(made))


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """``func`` over a dimension of its inputs. Random operators give other numbers in each call, with
    randomness="same" the same ones."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or 'same'. Got %s" % randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("vmap: chunk_size should be None or greater than 0. (got %s)" % chunk_size)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        leaves = []
        build = flatten(args, leaves)
        if not leaves:
            raise ValueError("vmap(%s)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                             "vmap over a function with no inputs. The latter is unsupported."
                             % getattr(func, "__name__", repr(func)))
        dims = broadcast(in_dims if not isinstance(in_dims, list) else tuple(in_dims), args, "in_dims")
        n = _sizes(leaves, dims, func)
        named = []
        named_build = flatten(kwargs, named)
        if n == 0:
            raise RuntimeError("vmap over a dimension of size 0 is not supported: the function is never called")
        start = tenon.get_rng_state() if randomness == "same" else None
        rows = []
        for i in range(n):
            if start is not None:
                tenon.set_rng_state(start)
            parts = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
            extra = [x.select(0, i) if isinstance(x, tenon.Tensor) and x.dim() else x for x in named]
            rows.append(func(*build(iter(parts)), **named_build(iter(extra))))
        return _join(rows, out_dims)
    return wrapper
