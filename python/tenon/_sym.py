# SPDX-License-Identifier: MIT
"""Checks that programs make, and arithmetic of sizes. PyTorch's sizes may be symbols while it traces; Tenon's are numbers,
so each function is the plain one, and nothing is ever a SymInt, SymFloat or SymBool."""

import math
import operator

import tenon
from tenon._asking import overridable


class SymInt:
    """A size that is not known yet: for isinstance. Tenon makes none."""

    def __init__(self, node):
        self.node = node


class SymFloat(SymInt):
    """A number made of sizes that are not known yet."""


class SymBool(SymInt):
    """An answer that depends on sizes that are not known yet."""


def _message(message):
    if message is None:
        return ("Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
                "enhancement request to PyTorch.)")
    if not callable(message):
        raise TypeError("message must be a callable")
    return str(message())


def _check_with(error_type, cond, message):
    if not isinstance(cond, bool):
        raise TypeError("cond must be a bool, but got %s" % type(cond))
    if not cond:
        raise error_type(_message(message))


def _check(cond, message=None):
    """Raise RuntimeError where cond is False; message() says why."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type, cond, message=None):
    if not isinstance(cond, tenon.Tensor):
        raise TypeError("cond must be a tensor, but got %s" % type(cond))
    if cond.dtype != tenon.bool:
        raise TypeError("cond tensor must have dtype torch.bool, but got %s" % cond.dtype)
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition, message):
    """assert, which a tracer records."""
    if not isinstance(condition, tenon.Tensor) and tenon.overrides.has_torch_function((condition,)):
        return tenon.overrides.handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)


@overridable
def sym_int(a):
    return math.trunc(a)


@overridable
def sym_float(a):
    return float(a)


@overridable
def sym_not(a):
    return operator.not_(a)


@overridable
def sym_ite(b, t, f):
    return t if b else f


@overridable
def sym_max(a, b):
    return type(a + b)(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


@overridable
def sym_min(a, b):
    return type(a + b)(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


@overridable
def sym_sqrt(a):
    return math.sqrt(a)


@overridable
def sym_sum(args):
    return sum(args)


def get_device_module(device=None):
    """The module of a kind of device: tenon.cpu, tenon.cuda."""
    kind = tenon.get_default_device().type if device is None else tenon.device(device).type
    module = getattr(tenon, kind, None)
    if module is None:
        raise RuntimeError("Device '%s' does not have a corresponding module registered as 'torch.%s'." % (kind, kind))
    return module
