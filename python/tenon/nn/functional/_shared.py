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


# Whether one argument, or any of several, takes calls over through `__torch_function__`, or a mode does.
overridden = tenon._C._has_torch_function_unary
any_overridden = tenon._C._has_torch_function
one_overridden = tenon._C._has_torch_function_variadic


def give_way(fn, *args, **kwargs):
    """Let the argument or mode that overrides `fn` answer the call."""
    return tenon._C._override_call(fn, args, kwargs)


def overridable(fn):
    """Let an argument with `__torch_function__`, or a mode, take over the call as it does for an operator.

    What is called most asks for itself, with `overridden` or `one_overridden`, which saves a call.
    """

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if any_overridden(args) or (kwargs and any_overridden(tuple(kwargs.values()))):
            return give_way(call, *args, **kwargs)
        return fn(*args, **kwargs)

    return call
