# SPDX-License-Identifier: MIT
"""The names of TorchDynamo that scripts touch. Nothing is captured: functions run as they are written."""

import tenon
from tenon._lazy import lazy_modules

__all__ = ["allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "explain", "export", "graph_break",
           "is_compiling",
           "list_backends", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "on_compile_start", "optimize",
           "reset"]


def optimize(*args, **options):
    """A decorator that changes nothing."""
    return lambda fn: fn


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """The function itself; also a decorator with arguments."""
    return fn if fn is not None else lambda fn: fn


def allow_in_graph(fn):
    return fn


def assume_constant_result(fn):
    return fn


def disallow_in_graph(fn):
    return fn


def forbid_in_graph(fn):
    return fn


def run(fn=None):
    return fn


def reset():
    pass


def graph_break(msg=""):
    pass


def is_compiling():
    return False


def list_backends(exclude_tags=()):
    return ["eager"]


def mark_dynamic(t, index, **options):
    pass


def maybe_mark_dynamic(t, index):
    pass


def mark_static(t, index=None):
    pass


def mark_static_address(t, guard=True):
    pass


def on_compile_start(callback):
    return callback


def explain(f, *args, **options):
    raise RuntimeError("Tenon runs functions as they are written: there is no captured graph to explain")


def export(f, *args, **options):
    return tenon.export.export(f, *args, **options)


_modules = lazy_modules(__name__, ("_trace_wrapped_higher_order_op", "config", "eval_frame", "exc", "utils"))


def __getattr__(name):
    if name == "OptimizedModule":
        from tenon._compile import OptimizedModule
        return OptimizedModule
    return _modules(name)
