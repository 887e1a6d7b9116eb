# SPDX-License-Identifier: MIT
"""torch.compiler's names, for functions that run as they are written."""

import tenon

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "wrap_numpy"]


def compile(*args, **options):
    """tenon.compile."""
    return tenon.compile(*args, **options)


def is_compiling():
    """Whether a function is being captured now."""
    return False


def is_dynamo_compiling():
    return False


def is_exporting():
    return False


def reset():
    pass


def allow_in_graph(fn):
    return fn


def assume_constant_result(fn):
    return fn


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself; also a decorator with arguments."""
    return fn if fn is not None else lambda fn: fn


def wrap_numpy(fn):
    return fn


def substitute_in_graph(original_fn, **options):
    return lambda fn: fn


def list_backends(exclude_tags=()):
    return ["eager"]


def cudagraph_mark_step_begin():
    pass


class set_stance:
    """A context manager and decorator that changes nothing."""

    def __init__(self, stance="default", **options):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False
