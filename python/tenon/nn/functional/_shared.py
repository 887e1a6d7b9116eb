# SPDX-License-Identifier: MIT
"""What the functions of `nn.functional` share: finding an operator, and giving way to overriding arguments."""

import tenon
from tenon._asking import overridable  # noqa: F401  (what is called most asks for itself, which saves a call)


def op(name, composed=None):
    """The operator `name`, or `composed` where the library has none of that name."""
    found = getattr(tenon._C._nn, name, None)
    if found is None:
        found = getattr(tenon, name, composed)
    return found


# Whether one argument, or any of several, takes calls over through `__torch_function__`, or a mode does.
overridden = tenon._C._has_torch_function_unary
one_overridden = tenon._C._has_torch_function_variadic


def give_way(fn, *args, **kwargs):
    """Let the argument or mode that overrides `fn` answer the call."""
    return tenon._C._override_call(fn, args, kwargs, (*args, *kwargs.values()))
