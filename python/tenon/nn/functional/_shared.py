# SPDX-License-Identifier: MIT
"""What the functions of `nn.functional` share: finding an operator, and giving way to overriding arguments."""

import functools

import tenon


def op(name, composed=None):
    """The operator `name`, or `composed` where the library has none of that name."""
    found = getattr(tenon._C._nn, name, None)
    if found is None:
        found = getattr(tenon, name, composed)
    return found


_has_override = getattr(tenon._C, "_has_torch_function", None)


def overridable(fn):
    """Let an argument with `__torch_function__`, or a mode, take over the call as it does for an operator."""
    if _has_override is None:
        return fn

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if _has_override(args) or (kwargs and _has_override(tuple(kwargs.values()))):
            from tenon.overrides import handle_torch_function

            return handle_torch_function(call, (*args, *kwargs.values()), *args, **kwargs)
        return fn(*args, **kwargs)

    return call
