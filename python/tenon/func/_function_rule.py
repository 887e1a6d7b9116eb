# SPDX-License-Identifier: MIT
"""How vmap treats a user's Function: its static method ``vmap`` is called with whole tensors. Functions of this package
take slices as they are, and so does one that says ``generate_vmap_rule``. Rules of ``library.register_vmap`` are called
alike."""
from collections import namedtuple

import tenon
from tenon.autograd import Function, forward_ad
from tenon.func import _batched
from tenon.utils import _pytree

VmapInfo = namedtuple("VmapInfo", ("batch_size", "randomness"))

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
_TWO = ("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
        "the output. ")


def _check(cls):
    """Whether the function has a rule; an error if what it says is no good."""
    if cls.setup_context is Function.setup_context:
        raise _batched.refused(RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod. " + _MORE))
    own = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and own:
        raise _batched.refused(RuntimeError(
            "You tried to vmap over %s, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
            "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. %s"
            % (cls.__name__, _MORE)))
    if not cls.generate_vmap_rule and not own:
        raise _batched.refused(RuntimeError(
            "You tried to vmap over %s, but it does not have vmap support. Please override and implement the vmap "
            "staticmethod or set generate_vmap_rule=True. %s" % (cls.__name__, _MORE)))
    return own


def _results(result, level):
    """What the rule gave, as slices."""
    if not isinstance(result, tuple):
        raise RuntimeError(_TWO + "Got a %s instead" % type(result))
    if len(result) != 2:
        raise RuntimeError(_TWO + "Got %d returns instead" % len(result))
    output, out_dims = result
    parts, spec = _pytree.tree_flatten(output)
    dims = _pytree._broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. "
                           "Expected out_dims=%s to be compatible with the structure of `output`. out_dims has structure "
                           "%s but output has structure %s. %s"
                           % (out_dims, _pytree.tree_structure(out_dims), spec, _MORE))
    return spec.unflatten(p if d is None or not isinstance(p, tenon.Tensor) else _batched.cut(p, d, level)
                          for p, d in zip(parts, dims))


def by_rule(rule, args, kwargs, level):
    """The rule's results for arguments with slices of this level."""
    leaves, spec = _pytree.tree_flatten(args)
    dims, n = [], None
    for i, x in enumerate(leaves):
        if not isinstance(x, _batched.Batched) or x.level is not level:
            dims.append(None)
            continue
        n = x.whole.shape[0]
        dims.append(x.given_at)
        leaves[i] = _batched.joined(x, n, level).movedim(0, x.given_at)
    try:
        return _results(rule(VmapInfo(n, level.randomness), spec.unflatten(dims), *spec.unflatten(leaves), **kwargs), level)
    except _batched.Unmapped:  # of a level further out
        raise
    except Exception as e:
        raise _batched.refused(e)


def _slices_in(args):
    return [x for x in _pytree.tree_leaves(args) if isinstance(x, _batched.Batched)]


def level_of(args):
    """The innermost level that has slices among the arguments; None where there are no slices."""
    return max((x.level for x in _slices_in(args)), key=lambda level: level.number, default=None)


def apply(cls, args, kwargs):
    """``cls.apply`` where an argument is a slice; NotImplemented: as if it were a tensor like others."""
    if cls.__module__.partition(".")[0] in ("tenon", "torch") or not _check(cls):
        return NotImplemented
    args = cls._bind_arguments(args, kwargs)
    if any(forward_ad.unpack_dual(x).tangent is not None for x in _pytree.tree_leaves(args) if isinstance(x, tenon.Tensor)):
        raise _batched.Unmapped("vmap: the rule of %s gives values, not tangents" % cls.__name__)
    level = level_of(args)
    if level.depth == _batched.transforms():
        return by_rule(cls.vmap, args, {}, level)
    # A gradient is taken inside the mapped function: it is what the function's own backward makes of slices, and the
    # rule is below it.
    inside = type(cls)(cls.__name__, (cls,), {"forward": staticmethod(lambda *given: by_rule(cls.vmap, given, {}, level)),
                                              "__module__": __name__})
    return inside.apply(*args)
