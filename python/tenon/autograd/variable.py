# SPDX-License-Identifier: MIT
"""Variable: the old name of Tensor."""
import tenon


class _VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, tenon.Tensor)

    def __subclasscheck__(cls, other):
        return issubclass(other, tenon.Tensor)


class Variable(metaclass=_VariableMeta):
    """Gives a tensor over the same elements, without history."""

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if data is None:
            data = tenon.empty(0)
        if not isinstance(data, tenon.Tensor):
            raise TypeError("Variable data has to be a tensor, but got " + type(data).__name__)
        t = data.detach()
        if requires_grad:
            t.requires_grad_(True)
        return t



class _Engine:
    """What ``Variable._execution_engine`` offers: a callback at the end of the running pass."""

    @staticmethod
    def queue_callback(fn):
        tenon._C._queue_callback(fn)


type.__setattr__(Variable, "_execution_engine", _Engine())
