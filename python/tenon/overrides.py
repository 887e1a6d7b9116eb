# SPDX-License-Identifier: MIT
"""`__torch_function__` for Python code: asking whether an argument overrides, handing a call over, and modes."""

import contextlib
import functools

import tenon
from tenon import _C
from tenon._C import (DisableTorchFunction, DisableTorchFunctionSubclass,  # noqa: F401
                      _disabled_torch_function_impl)

__all__ = ["get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "get_default_nowrap_functions", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "handle_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Give a call to the modes, and to those of the relevant arguments that override it."""
    return _C._override_call(public_api, args, kwargs, tuple(relevant_args))


def wrap_torch_function(dispatcher):
    """Let a function be overridden: `dispatcher(*args)` gives the arguments that are asked."""
    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def get_default_nowrap_functions():
    """Functions whose results keep the class that they have."""
    tensor = tenon.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


def is_tensor_like(inp):
    """Whether it is a tensor, or overrides `__torch_function__`."""
    return type(inp) is tenon.Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether it is a method of Tensor, or gets or sets an attribute."""
    return func in _tensor_methods() or getattr(func, "__name__", None) in ("__get__", "__set__")


@functools.lru_cache(None)
def _tensor_methods():
    return {getattr(tenon.Tensor, name) for name in dir(tenon.Tensor)
            if callable(getattr(tenon.Tensor, name)) and getattr(tenon.Tensor, name).__hash__}


def get_ignored_functions():
    """Functions that no class and no mode is asked about."""
    names = ("is_tensor", "is_storage", "set_default_dtype", "get_default_dtype", "manual_seed", "initial_seed", "seed",
             "save", "load", "set_printoptions", "from_numpy", "empty", "eye", "full", "linspace", "logspace", "ones",
             "zeros", "rand", "randn", "randint", "randperm", "tensor", "arange", "range")
    return {getattr(tenon, name) for name in names if hasattr(tenon, name)}


# What Python does with every object: no function of tensors.
_OBJECTS_OWN = {"__class__", "__delattr__", "__dir__", "__doc__", "__getattribute__", "__getstate__", "__init__", "__init_subclass__", "__new__",
                "__setattr__", "__sizeof__", "__str__", "__subclasshook__", "__torch_function__", "__torch_dispatch__", "__weakref__",
                "__dict__", "__module__", "__dictoffset__", "__weaklistoffset__"}


def get_overridable_functions():
    """{module, class or attribute: its functions that ask modes and classes}"""
    ignored = get_ignored_functions()
    found = {}

    def take(space, functions):
        found[space] = [f for f in functions if callable(f) and not isinstance(f, type) and not (f.__hash__ and f in ignored)]

    take(tenon, [f for name, f in vars(_C._VariableFunctions).items() if not name.startswith("__")])
    for name, module in reversed(_function_modules()):
        listed = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        take(module, [getattr(module, n) for n in listed])
    take(tenon.Tensor, [getattr(tenon.Tensor, name) for name in dir(tenon.Tensor) if name not in _OBJECTS_OWN])
    for name in dir(tenon.Tensor):
        attribute = getattr(tenon.Tensor, name)
        if name not in _OBJECTS_OWN and not callable(attribute) and hasattr(attribute, "__get__"):
            take(attribute, [attribute.__get__])
    return found


def get_testing_overrides():
    """{function: one with its signature that returns -1}, for all functions that ask modes and classes."""
    made = {}
    for functions in get_overridable_functions().values():
        for f in functions:
            if f.__hash__:
                made[f] = _stand_in(f)
    return made


def _stand_in(f):
    import inspect

    def stand_in(*args, **kwargs):
        return -1

    try:
        stand_in.__signature__ = inspect.signature(f)
    except (TypeError, ValueError):
        pass  # it tells none
    return stand_in


def resolve_name(f):
    """"torch.add", "torch.Tensor.add": the name of a function; None where it has none."""
    if isinstance(f, (tenon._ops.OpOverload, tenon._ops.OpOverloadPacket)):
        return str(f)
    module = _C._module_name()
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    owner = getattr(f, "__self__", None)
    if name in ("__get__", "__set__", "__delete__") and owner is not None:
        return "%s.Tensor.%s.%s" % (module, owner.__name__, name)
    if getattr(tenon.Tensor, name, None) is f:
        return "%s.Tensor.%s" % (module, name)
    for prefix, space in [*_function_modules(), ("", tenon)]:
        for own in (name, name.removeprefix(prefix + "_")):  # linalg.norm is the operator linalg_norm
            if getattr(space, own, None) is f:
                return ".".join(part for part in (module, prefix, own) if part)
    return None


def _function_modules():
    """[(name, module)]: those beside the package itself whose functions ask modes and classes; the first that has one names it."""
    return [("special", tenon.special), ("fft", tenon.fft), ("linalg", tenon.linalg), ("nn.init", tenon.nn.init),
            ("nn.functional", tenon.nn.functional), ("functional", tenon.functional)]


class TorchFunctionMode:
    """A context manager whose `__torch_function__(self, func, types, args=(), kwargs=None)` is given every call of
    the API made inside it. While it is asked the mode is off."""

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    n = _C._len_torch_function_stack()
    return _C._get_function_stack_at(n - 1) if n else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextlib.contextmanager
def _pop_mode_temporarily():
    mode = _C._pop_torch_function_stack()
    try:
        yield mode
    finally:
        _C._push_on_torch_function_stack(mode)
