# SPDX-License-Identifier: MIT
"""Functions that are written in Python and let a class of arguments, or a mode, take over the call."""

import functools

import tenon

_overridden = tenon._C._has_torch_function


def overridable(fn):
    """Let an argument with `__torch_function__`, or a mode, take over the call as it does for an operator."""

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if _overridden(args) or (kwargs and _overridden(tuple(kwargs.values()))):
            return tenon._C._override_call(call, args, kwargs)
        return fn(*args, **kwargs)

    return call
