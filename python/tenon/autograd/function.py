# SPDX-License-Identifier: MIT
"""Functions with a gradient of their own. The call itself is in C: ``Function.apply``."""
from tenon import _C

__all__ = ["Function", "FunctionCtx", "BackwardCFunction", "FunctionMeta", "InplaceFunction", "NestedIOFunction",
           "once_differentiable"]


class FunctionCtx:
    """What a context can be told. Those that ``apply`` makes do the same in C."""

    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        self.materialize_grads = value


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """Contexts of calls, which are also what ``grad_fn`` of a result is."""

    def apply(self, *args):
        cls = self._forward_cls
        fn = cls.backward if cls.vjp is Function.vjp else cls.vjp
        return fn(self, *args)

    def apply_jvp(self, *args):
        return self._forward_cls.jvp(self, *args)

    def _compiled_autograd_key(self):
        return (self._forward_cls,)


class FunctionMeta(type):
    """Gives every function a type of contexts of its own, named after it."""

    def __init__(cls, name, bases, attrs):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        fn = attrs.get("backward", attrs.get("vjp"))
        if fn is not None:
            cls._note_once(fn)
        super().__init__(name, bases, attrs)

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name in ("backward", "vjp"):
            cls._note_once(value)

    def _note_once(cls, fn):
        cls._once_differentiable = getattr(getattr(fn, "__func__", fn), "_once_differentiable", False)


def _default_of(parameter, forward):
    if parameter.default is parameter.empty:
        raise TypeError("%s() missing a required argument: '%s'" % (forward.__name__, parameter.name))
    return parameter.default


class Function(_C._FunctionClass, metaclass=FunctionMeta):
    """Subclass it with static methods ``forward`` and ``backward`` and call ``apply``."""

    _once_differentiable = False
    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        import warnings
        warnings.warn("%s should not be instantiated. Methods on autograd functions are all static, so you should "
                      "invoke them on the class itself. Instantiating an autograd function will raise an error in a "
                      "future version of PyTorch." % type(self), DeprecationWarning, stacklevel=2)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use "
                           "new-style autograd function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    # The same under another name; C tells the two apart.
    @staticmethod
    def vjp(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap "
                                  "staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def _bind_arguments(cls, args, kwargs):
        """All arguments of forward in order, defaults included: what setup_context sees."""
        parameters = cls.__dict__.get("_forward_parameters")
        if parameters is None or parameters[0] is not cls.forward:
            import inspect
            parameters = cls._forward_parameters = (cls.forward, list(inspect.signature(cls.forward)
                                                                      .parameters.values()))
        forward, parameters = parameters
        if not kwargs and len(args) >= len(parameters):
            return args
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            if not kwargs:
                return args
            import inspect
            bound = inspect.signature(forward).bind(*args, **kwargs)
            bound.apply_defaults()
            return bound.args
        kwargs = dict(kwargs or {})
        rest = [kwargs.pop(p.name) if p.name in kwargs else _default_of(p, forward) for p in parameters[len(args):]]
        if kwargs:
            raise TypeError("%s() got an unexpected keyword argument '%s'" % (forward.__name__, next(iter(kwargs))))
        return args + tuple(rest)


_C._set_function_defaults(Function.setup_context, Function.backward, Function.vjp, Function.jvp)


def once_differentiable(fn):
    """Mark a backward part: it runs unrecorded, and differentiating what it gives is an error."""
    import functools

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        return fn(ctx, *args)

    wrapper._once_differentiable = True
    return wrapper


class InplaceFunction(Function):
    """An old base class: a function that may write its input."""

    def __init__(self, inplace=False):
        self.inplace = inplace


class NestedIOFunction(Function):
    """An old base class, kept for its name: inputs and outputs may be nested in apply anyway."""


def traceable(fn_cls):
    """Kept for its name."""
    fn_cls.is_traceable = True
    return fn_cls
