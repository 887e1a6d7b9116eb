# SPDX-License-Identifier: MIT
"""Tensors whose history is that of the ordinary tensors which they are made of: nested, masked and sparse ones. A backward
pass sees those parts; gradients are put together on their way out, and taken apart on their way in."""
import tenon
from tenon import _C
from .function import Function


class InParts:
    """What such a class says about its parts, and the methods that follow from it."""

    def __init_subclass__(cls):
        _C._set_function_kind(1, InParts, _apply)

    def _history_parts(self):
        """The tensors that have the history."""
        raise NotImplementedError

    def _gradient_from(self, grads):
        """The gradient of this tensor, where `grads` are those of its parts."""
        raise NotImplementedError

    def _gradient_to(self, grad):
        """What `grad`, a gradient of this tensor, is for each of its parts."""
        raise NotImplementedError

    def _first_gradient(self):
        """The gradient of this tensor where a pass begins at it without one; None: that of its parts then."""
        return None

    def _from_parts(self, parts):
        """This tensor with other parts."""
        return self._gradient_from(parts)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        tenon.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self):
        for part in self._history_parts():
            part.retain_grad()

    def register_hook(self, hook):
        part, = self._history_parts()
        like = self.detach()  # without history: a part must not keep, by its hook, what keeps the part

        def of_part(grad):
            made = hook(like._gradient_from((grad,)))
            if not isinstance(made, tenon.Tensor):
                return made
            if made.shape != like.shape:
                raise RuntimeError("hook '%s' has changed the size of value" % getattr(hook, "__name__", "<unknown>"))
            return like._gradient_to(made)[0]
        return part.register_hook(of_part)

    def register_post_accumulate_grad_hook(self, hook):
        part, = self._history_parts()
        return part.register_post_accumulate_grad_hook(lambda _: hook(self))


def is_in_parts(tensor):
    return isinstance(tensor, InParts)


def whole(tensors):
    """Those that a pass takes as they are. The others' classes have no say in it, so that hooks see them as programs do."""
    return tuple(t for t in tensors if not is_in_parts(t))


def spread(tensors, grads):
    """Roots of a pass and their gradients, with parts in the place of tensors that have some."""
    if not any(map(is_in_parts, tensors)):
        return tensors, grads
    if grads and len(grads) != len(tensors):
        raise RuntimeError("got %d tensors and %d gradients" % (len(tensors), len(grads)))
    pairs = []
    for i, (tensor, grad) in enumerate(zip(tensors, grads or (None,) * len(tensors))):
        if grad is not None and is_in_parts(tensor) and _has_sizes(tensor) and _has_sizes(grad) and grad.shape != tensor.shape:
            raise RuntimeError("Mismatch in shape: grad_output[%d] has a shape of %s and output[%d] has a shape of %s."
                               % (i, _text(grad.shape), i, _text(tensor.shape)))
        if grad is None and is_in_parts(tensor) and tensor.requires_grad:
            grad = tensor._first_gradient()
        held = list(zip(inputs_of((tensor,)), _apart(tensor, grad)))
        pairs += [pair for pair in held if pair[0].requires_grad] if is_in_parts(tensor) and tensor.requires_grad else held
    return tuple(t for t, _ in pairs), () if all(g is None for _, g in pairs) else tuple(g for _, g in pairs)


def _has_sizes(tensor):
    return not tensor.is_nested or tensor.layout is tenon.jagged


def _text(size):
    return "torch.Size([%s])" % ", ".join(map(str, size))


def _apart(tensor, grad):
    """A gradient of the tensor, or None, as gradients of inputs_of((tensor,))."""
    if not is_in_parts(tensor):
        return (grad,)
    parts = tensor._history_parts()
    grads = (None,) * len(parts) if grad is None else tensor._gradient_to(grad)
    return tuple(g for pair in zip(parts, grads) for g in _apart(*pair))


def inputs_of(tensors):
    """The tensors, with parts in the place of those that have some."""
    made = []
    for t in tensors:
        made += inputs_of(t._history_parts()) if is_in_parts(t) else (t,)
    return tuple(made)


def gathered(tensors, parts, method="_gradient_from"):
    """What stands for each of the tensors where `parts` stand for inputs_of(tensors): None where all of its parts are."""
    def one(tensor):
        if not is_in_parts(tensor):
            return next(parts)
        mine = tensor._history_parts()
        made = [one(part) for part in mine]
        if all(g is None for g in made):
            return None
        return getattr(tensor, method)([tenon.zeros_like(p) if g is None else g for p, g in zip(mine, made)])
    parts = iter(parts)
    return tuple(map(one, tensors))


# ---- functions with a gradient of their own ----

def _apply(cls, args, kwargs):
    """The call of a Function some of whose arguments are made of parts: of one over the parts, which sees tensors again."""
    with_context = cls.setup_context is Function.setup_context
    if with_context and kwargs or not tenon.is_grad_enabled() or not any(is_in_parts(a) and a.requires_grad for a in args):
        return NotImplemented
    if cls.forward is _take_parts:
        return NotImplemented
    args = args if with_context else cls._bind_arguments(args, kwargs or {})
    formula = cls.backward if cls.backward is not Function.backward else cls.vjp
    outputs, given = [], []  # without history, and as forward gave them

    def forward(*ctx_and_parts):
        output = cls.forward(ctx_and_parts[0], *args) if with_context else cls.forward(*args)
        given.append(output)
        output = output if isinstance(output, tuple) else (output,)
        outputs.extend(o.detach() if is_in_parts(o) else None for o in output)
        return inputs_of(output)

    def backward(ctx, *grads):
        grads = formula(ctx, *gathered(outputs, grads))
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) < len(args):
            raise RuntimeError("function %sBackward returned an incorrect number of gradients (expected %d, got %d)"
                               % (cls.__name__, len(args), len(grads)))
        return tuple(part for pair in zip(args, grads) for part in _apart(*pair))

    backward._once_differentiable = getattr(formula, "_once_differentiable", False)
    own = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": cls.__module__}
    if not with_context:
        own["setup_context"] = staticmethod(lambda ctx, inputs, output: cls.setup_context(ctx, args, given[0]))
    made = gathered(outputs, type(cls)(cls.__name__, (cls,), own).apply(*inputs_of(args)), "_from_parts")
    return made if isinstance(given.pop(), tuple) else made[0]


# Note [Results made of parts]
# The call itself gives such a result a node of its own, as any other; nothing leads there, since what is done with the result
# is done with its parts. So another function takes the parts out of it: what it gives is what the program sees, and in a
# backward pass it puts their gradients together for the first one's node. Between the two there is no layout that a gradient
# must have: it travels in a Parcel.

class Parcel(tenon.Tensor):
    """A gradient made of parts, on its way to the node that knows it: `held`."""

    @staticmethod
    def of(whole, like):
        made = tenon.Tensor._make_wrapper_subclass(Parcel, tuple(_OWN_SHAPE(like)), dtype=like.dtype, device=like.device)
        made.held = whole
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("the gradient of a result of a Function that is made of parts takes no part in %s" % func)


_OWN_SHAPE = tenon.Tensor.shape.__get__
_OWN_REQUIRES_GRAD = tenon.Tensor.requires_grad.__get__
_OWN_GRAD_FN = tenon.Tensor.grad_fn.__get__


def _take_parts(ctx, whole):
    ctx.like = whole.detach()
    ctx.set_materialize_grads(False)
    return tuple(part.detach() for part in inputs_of((whole,)))


def _parcel(ctx, *grads):
    made, = gathered((ctx.like,), grads)
    return None if made is None else Parcel.of(made, ctx.like)


def _tangents_of_parts(ctx, tangent):
    return None if tangent is None else _apart(ctx.like, tangent)


def _opening(cls, likes):
    """The class with a backward part that gets what is in a Parcel, and zeros made of parts where there is none."""
    name = "backward" if cls.vjp is Function.vjp else "vjp"
    formula = getattr(cls, name)

    def opened(grad, like):
        if isinstance(grad, Parcel):
            return grad.held
        if grad is None or like is None or is_in_parts(grad):
            return grad
        return like._gradient_from([tenon.zeros_like(part) for part in like._history_parts()])
    own = {name: staticmethod(lambda ctx, *grads: formula(ctx, *map(opened, grads, likes))), "__module__": cls.__module__}
    return type(cls)(cls.__name__, (cls,), own)


def _has_node(result):
    return isinstance(result, InParts) and _OWN_REQUIRES_GRAD(result)


def _apply_any(cls, *args, **kwargs):
    """Function.apply: see Note [Results made of parts]."""
    result = super(Function, cls).apply(*args, **kwargs)
    if type(result) is tenon.Tensor:
        return result
    if isinstance(result, tuple):
        return _with_their_nodes(cls, result) if any(map(_has_node, result)) else result
    return _with_their_nodes(cls, (result,))[0] if _has_node(result) else result


def _with_their_nodes(cls, results):
    node = _OWN_GRAD_FN(next(filter(_has_node, results)))
    node._forward_cls = _opening(cls, [r.detach() if _has_node(r) else None for r in results])
    kind = type(node)
    node.__class__ = type(kind.__name__, (kind,), {"saved_tensors": property(_saved), "_saved": kind.saved_tensors})
    return _with_history(cls, results)


def _saved(ctx):
    """What a context saved: a result, too, has its history."""
    return _with_history(ctx._forward_cls, ctx._saved)


def _with_history(cls, tensors):
    own = {"forward": staticmethod(_take_parts), "backward": staticmethod(_parcel), "jvp": staticmethod(_tangents_of_parts),
           "__module__": cls.__module__}
    taking = type(cls)(cls.__name__, (Function,), own)
    return tuple(gathered((t.detach(),), iter(taking.apply(t)), "_from_parts")[0] if _has_node(t) else t for t in tensors)


Function.apply = classmethod(_apply_any)
