# SPDX-License-Identifier: MIT
"""What packages import from here, and copies of PyTorch's functions use: types of annotations, and a function of two."""

from typing import Any, Callable, Dict, Final, List, Optional, Tuple, Union  # noqa: F401  (PyTorch has them here too)

from tenon.jit import _overload, _overload_method, export, ignore, interface, is_scripting, unused
from tenon.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "_overload", "_overload_method",
           "boolean_dispatch", "export", "ignore", "interface", "is_scripting", "unused"]


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls `if_true` where an argument is true, otherwise `if_false`."""
    def fn(*args, **kwargs):
        flag = kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        return (if_true if flag else if_false)(*args, **kwargs)

    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")
    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__module__ = module_name or fn.__module__
    fn.__name__ = func_name or fn.__name__
    return fn
