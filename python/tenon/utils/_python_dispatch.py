# SPDX-License-Identifier: MIT
"""Modes that see every call of an operator: `__torch_dispatch__`. The stack of modes is the library's."""

import contextlib

import tenon
from tenon import _C
from tenon._ops import Tag
from tenon.utils._mode_utils import no_dispatch


class TorchDispatchMode:
    """A context manager whose `__torch_dispatch__(self, func, types, args=(), kwargs=None)` is given every call of an
    operator made inside it. While it is asked the mode is off."""

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_dispatch_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    n = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(n - 1) if n else None


def _get_current_dispatch_mode_stack():
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def any_torch_dispatch_mode_on_stack(*, include_infra_modes=False, respect_ignore_compile_internals=True):
    return _C._len_torch_dispatch_stack() > 0


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is on."""
    return _C._len_torch_dispatch_stack() > 0


def _push_mode(mode):
    _C._push_on_torch_dispatch_stack(mode)


def _pop_mode(k=None):
    return _C._pop_torch_dispatch_stack()


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """No mode is on inside; gives those that were."""
    modes = _get_current_dispatch_mode_stack()
    guard, fake = _C._modes_off(), _C._fake_enter_none()
    try:
        yield modes
    finally:
        _C._fake_leave(fake)
        _C._modes_restore(guard)


def is_traceable_wrapper_subclass(t):
    """Whether a tensor can be taken apart into others and put together again."""
    return (isinstance(t, tenon.Tensor) and type(t) is not tenon.Tensor and hasattr(t, "__tensor_flatten__") and
            hasattr(t, "__tensor_unflatten__"))


def is_traceable_wrapper_subclass_type(t):
    return (issubclass(t, tenon.Tensor) and t is not tenon.Tensor and hasattr(t, "__tensor_flatten__") and
            hasattr(t, "__tensor_unflatten__"))


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """Put a wrapper together anew, of what `callback(name, tensor)` makes of its parts."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(parts, context, outer_size, outer_stride)
    assert made.shape == outer_size, (
        "Expected return value from %s__tensor_unflatten__() to have shape equal to %s, but got: %s" % (
            type(t), outer_size, made.shape))
    return made


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper's `__torch_dispatch__` returns: of an operator that writes an argument, that argument, whose sizes follow where the
    operator changes them."""
    returns = func._schema.returns
    if not any(r.is_write for r in returns):
        return out
    given = dict(zip(func._names, args))
    given.update(kwargs or {})
    if Tag.inplace_view in func.tags:
        with no_dispatch():
            func(*args, **(kwargs or {}))
    written = {min(a.alias_info.before_set): given.get(a.name) for a in func._schema.arguments if a.is_write}
    results = [written.get(min(r.alias_info.before_set)) if r.is_write else o
               for r, o in zip(returns, out if len(returns) > 1 else (out,))]
    return tuple(results) if len(returns) > 1 else results[0]
