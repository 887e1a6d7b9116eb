# SPDX-License-Identifier: MIT
"""Calls to other processes: there are none to call. No object is a reference to a value in one, and scripts may ask."""

from tenon import _C
from tenon._lazy import lazy_modules

__all__ = ["PyRRef", "RRef", "is_available"]

PyRRef = _C._distributed_rpc.PyRRef


class RRef(PyRRef):
    """A reference to a value in another process."""

    def __init__(self, value, type_hint=None):
        raise RuntimeError("Current RPC agent is not set! Did you initialize the RPC framework (e.g. by calling `rpc.init_rpc`)?")


def is_available():
    return False


__getattr__ = lazy_modules(__name__, ("api",))
