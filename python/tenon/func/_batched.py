# SPDX-License-Identifier: MIT
"""Tensors of vmap: one object stands for a slice, and holds all of them in one tensor, the batch in front.

What a function does with such an object is done once, for all slices (`_batch_rules`): below autograd, so that a
gradient inside the function is one of each slice. What leads out of the function is seen when it has returned: there a
gradient of something that all slices share is the sum over them. See Note [What slices share].
"""
import itertools

import tenon
from tenon.autograd import Function

_numbers = itertools.count(1)


def transforms():
    """How many transforms that take gradients this thread is in."""
    from tenon.func import _gradients
    return getattr(_gradients._levels, "n", 0)


def refused(error):
    """The error, marked as one that calls for each slice would not mend."""
    error._vmap_refused = True
    return error


class Level:
    """One call of a mapped function. An inner one has a higher number."""

    def __init__(self):
        self.number, self.depth, self.randomness = next(_numbers), transforms(), "error"
        with tenon.inference_mode(False), tenon.enable_grad():  # nodes that are made from now on have at least this number
            mark = tenon.zeros((), requires_grad=True)
            self.before = mark.view_as(mark).grad_fn._sequence_nr()


class Unmapped(RuntimeError):
    """What was asked for needs each slice for itself, as numbers do: the function is called once a slice then."""


class Batched(tenon.Tensor):
    """A slice of `whole`, any of them, at a level."""

    @staticmethod
    def __new__(cls, whole, level):
        made = tenon.Tensor._make_wrapper_subclass(cls, whole.shape[1:], strides=whole.stride()[1:], dtype=whole.dtype,
                                                   device=whole.device)
        made.whole, made.level, made.given_at = whole, level, 0
        return made

    def __init__(self, whole, level):
        pass

    __torch_function__ = tenon._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from tenon.func._batch_rules import call
        return call(func, args, kwargs or {})

    def __bool__(self):
        raise Unmapped("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow")

    def _no_number(self, *args):
        raise Unmapped("vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() "
                       "on a Tensor")

    item = tolist = numpy = __int__ = __float__ = __index__ = __complex__ = __array__ = __repr__ = __format__ = _no_number

    def _set_data(self, _):
        where = "under vmap" if transforms() == self.level.depth else "inside functorch"
        raise refused(RuntimeError("mutating directly with `.data` %s transform is not allowed." % where))

    data = property(tenon.Tensor.data.__get__, _set_data)

    def storage_offset(self):
        return self.whole.storage_offset()

    def __deepcopy__(self, memo):
        raise Unmapped("vmap: a slice cannot be copied out of its function")


# Note [The order of levels]
# A slice of a slice has the level with the highest number outside. A pass may come through the slices of a function whose call
# has ended while a later one maps what it gives: then the level that is cut or joined is not the outermost one, and it is
# done inside the others.

def holds(part, level):
    """Whether it is a slice at this level, whatever others it is a slice at."""
    while isinstance(part, Batched) and part.level.number > level.number:
        part = part.whole
    return isinstance(part, Batched) and part.level is level


def _slice_of(whole, dim, level):
    if isinstance(whole, Batched) and whole.level.number > level.number:
        return Batched(_slice_of(whole.whole, dim % whole.dim() + 1, level), whole.level)
    return Batched(whole.movedim(dim, 0) if dim else whole, level)


def _whole_of(part, level):
    if part.level is level:
        return part.whole
    return Batched(_whole_of(part.whole, level).movedim(1, 0), part.level)


class _Cut(Function):
    """The whole as slices, the dimension `dim` being mapped; back: the gradients of all slices."""

    @staticmethod
    def forward(ctx, whole, dim, level):
        ctx.dim, ctx.level, ctx.n = dim, level, whole.shape[dim]
        return _slice_of(whole, dim, level)

    @staticmethod
    def backward(ctx, grad):
        return joined(grad, ctx.n, ctx.level).movedim(0, ctx.dim), None, None


class _Join(Function):
    """The slices as a whole; back: the gradient of each."""

    @staticmethod
    def forward(ctx, part, level):
        ctx.level = level
        whole = _whole_of(part, level)
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx, grad):
        return cut(grad, 0, ctx.level), None


def cut(whole, dim, level):
    if whole.requires_grad and tenon.is_grad_enabled():
        made = _Cut.apply(whole, dim, level)
    else:
        made = _slice_of(whole.detach(), dim, level)
    made.given_at = dim % whole.dim()
    return made


def joined(part, n, level, walked=False):
    """All slices, the batch in front; of something that is the same for all, n times that. `walked`: what slices share
    was looked for already."""
    if not holds(part, level):
        return part.expand((n,) + tuple(part.shape))
    if not part.requires_grad or not tenon.is_grad_enabled():
        return _whole_of(part, level)
    if not walked:
        sum_what_is_shared([part], level)
    return _Join.apply(part, level)


def sum_what_is_shared(parts, level):
    """Let what slices share have the sum of their gradients."""
    # Note [What slices share]
    # A tensor from outside, which a function of slices uses without being given a slice of it, gets the sum of the
    # gradients of all slices. Nodes that the function made, or that backward passes through them made, know a gradient
    # as that of a slice; where one of them leads to a node that was there before, or to a leaf, the sum is taken.
    seen, todo = {}, [p.grad_fn for p in parts if p.grad_fn is not None]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node  # held, so that no other gets its address
        if type(node).__name__ == "_CutBackward" and node.level is level:  # an inner one's is inside the function
            continue
        outside = []
        for i, (following, _) in enumerate(node.next_functions):
            if following is None:
                continue
            if type(following).__name__ == "AccumulateGrad" or following._sequence_nr() < level.before:
                outside.append(i)
            else:
                todo.append(following)
        if outside:
            node.register_hook(_summing(outside, level))


def _summing(places, level):
    def hook(grads, _):
        made = list(grads)
        for i in places:
            g = made[i]
            if holds(g, level):
                made[i] = joined(g, None, level).sum(0)
        return tuple(made)
    return hook


def _apply_function(cls, args, kwargs):
    from tenon.func._function_rule import apply
    return apply(cls, args, kwargs or {})


tenon._C._set_function_kind(0, Batched, _apply_function)
