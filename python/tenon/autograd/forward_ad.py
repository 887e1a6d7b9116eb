# SPDX-License-Identifier: MIT
"""Forward mode: tangents that are computed together with values."""
from tenon import _C
from .grad_mode import _set_fwd_grad_enabled

__all__ = ["UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level"]

_is_fwd_grad_enabled = _C._is_fwd_grad_enabled
_level = -1


class UnpackedDualTensor(tuple):
    """(primal, tangent)"""

    __slots__ = ()

    def __new__(cls, primal, tangent):
        return tuple.__new__(cls, (primal, tangent))

    primal = property(lambda self: self[0])
    tangent = property(lambda self: self[1])

    def __repr__(self):
        return "UnpackedDualTensor(primal=%r, tangent=%r)" % tuple(self)


def enter_dual_level():
    """Enter the dual level; there is one."""
    _C._enter_dual_level()
    global _level
    _level = 0
    return 0


def exit_dual_level(*, level=None):
    """Leave it: tangents are dropped."""
    global _level
    if level is not None and level != _level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is "
                           "not supported.")
    _C._exit_dual_level()
    _level = -1


def make_dual(tensor, tangent, *, level=None):
    """A view of ``tensor`` that carries ``tangent``."""
    if not _C._in_dual_level():
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError("Expected primal to be floating point or complex, but got: %s" % tensor.dtype)
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError("Expected tangent to be floating point or complex, but got: %s" % tangent.dtype)
    if tangent.dtype != tensor.dtype and tangent.is_complex() == tensor.is_complex():
        tangent = tangent.to(tensor.dtype)
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """The tensor without its tangent, and the tangent or None."""
    if not _C._in_dual_level():
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level:
    """The dual level as a context manager."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *args):
        exit_dual_level()
