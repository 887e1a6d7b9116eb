# SPDX-License-Identifier: MIT
"""Modules called on inputs of their own. Without devices to spread over they are called one after the other."""

__all__ = ["parallel_apply"]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The result of each module for its inputs: a tuple of arguments, or one argument."""
    given = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    for other, what in ((inputs, "inputs"), (given, "kwargs"), (devices, "devices")):
        if other is not None and len(other) != len(modules):
            raise AssertionError("The number of modules %d is not equal to the number of %s %d"
                                 % (len(modules), what, len(other)))
    return [module(*(x if isinstance(x, (list, tuple)) else (x,)), **kwargs)
            for module, x, kwargs in zip(modules, inputs, given)]
