# SPDX-License-Identifier: MIT
"""Transforms that change how a function is computed, and modules that they can be used on."""
import functools

import tenon
from tenon.utils import _pytree
from ._gradients import (_detached, _forward, _Level, _reaches_others, _seeds_of, _with_own, by_seeds, inside, products,
                         recording)
from ._jacobians import jvp
from ._tree import flatten


def _products_of(func, primals):
    """The result of ``func``, and what multiplies tangents of its arguments from the left: by the products from the right,
    which are kept."""
    recorded = tenon.is_grad_enabled()
    with _Level() as level, recording():
        args, own, _ = _with_own(primals, tuple(range(len(primals))))
        output = inside(func, args)
        leaves = []
        build = flatten(output, leaves)
        leaves = _forward(leaves)
        outs = [o for o in leaves if isinstance(o, tenon.Tensor)]
        seeds = _seeds_of(outs)
        rows = products(outs, own, seeds)
    given = [t for t in _pytree.tree_leaves(primals) if isinstance(t, tenon.Tensor)]
    # Whether somebody outside differentiates by what the function was given or has seen.
    shared = recorded and (level > 1 or any(t.requires_grad for t in given) or _reaches_others(
        [o for o in outs if o.requires_grad], [t for t in own if isinstance(t, tenon.Tensor)] + seeds, outermost=True))

    def multiply(moved):
        pairs = [(r, t) for r, t in zip(rows, moved) if isinstance(r, tenon.Tensor) and r.requires_grad]
        made = by_seeds([r for r, _ in pairs], seeds, [t for _, t in pairs], retain_graph=True)
        parts = iter([tenon.zeros_like(_detached(o)) if m is None else m for m, o in zip(made, outs)])
        return build(iter([next(parts) if isinstance(o, tenon.Tensor) else o for o in leaves]))

    if shared:
        return build(iter(leaves)), None
    return build(iter([_detached(o) for o in leaves])), multiply


def _writes(tensors):
    return [t._version for t in tensors if isinstance(t, tenon.Tensor) and not t.is_inference()]


def linearize(func, *primals):
    """The value of ``func``, and a function of tangents: the Jacobian at ``primals`` times them. ``func`` is called once,
    and what its operators saved is kept for the calls to come; where that is not all (``once_differentiable``, ``no_grad``, values
    that were overwritten), or somebody differentiates the products, it is called again for each tangent."""
    given, given_spec = _pytree.tree_flatten(primals)
    before, once, numbers = tenon._C._times_switched_off(), True, tenon.get_rng_state()
    try:
        output, multiply = _products_of(func, primals)
    except RuntimeError:
        output, once = jvp(func, primals, _pytree.tree_map(tenon.zeros_like, primals))[0], False
    once = once and multiply is not None and tenon._C._times_switched_off() == before
    written = _writes(given)

    def once_more(moved):
        """At the same point, with the same random numbers."""
        if _writes(given) != written:
            raise RuntimeError("linearize: what the function was given has been modified by an inplace operation since")
        now = tenon.get_rng_state()
        tenon.set_rng_state(numbers)
        try:
            return jvp(func, primals, given_spec.unflatten(moved))[1]
        finally:
            tenon.set_rng_state(now)

    def jvp_fn(*tangents):
        moved, spec = _pytree.tree_flatten(tangents)
        if spec != given_spec:
            raise RuntimeError("Expected the tangents %s to have the same argspec as the primals %s" % (spec, given_spec))
        for i, (p, t) in enumerate(zip(given, moved)):
            for what, a, b in (("shape", t.shape, p.shape), ("device", t.device, p.device), ("dtype", t.dtype, p.dtype)):
                if a != b:
                    raise RuntimeError("tangent:%d with %s %s in flattened pytree doesn't match the %s %s of the "
                                       "corresponding primal." % (i, what, a, what, b))
        if once and not (tenon.is_grad_enabled() and any(t.requires_grad for t in moved)):
            return multiply(moved)
        return once_more(moved)

    return output, jvp_fn


def replace_all_batch_norm_modules_(root):
    """Let batch norms go by the batch alone, so that a transform can call them: they keep no running statistics."""
    for module in root.modules():
        if isinstance(module, tenon.nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor, *, recurse=True):
    """The tensor inside a transform's wrapper; there are no wrappers here."""
    return tensor


def functionalize(func, *, remove="mutations"):
    """The function, as it is: what mutates its inputs mutates them, and its results are those of a function that mutates
    nothing. Only a tracer sees the difference: `make_fx` records the writes."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError("functionalize(f, remove=%s): Valid options for `remove` are one of: \"mutations\" or "
                           "\"mutations_and_views\"" % remove)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapped
