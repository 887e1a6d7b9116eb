# SPDX-License-Identifier: MIT
"""TorchScript's names. A function stays a Python function: script and trace give back what they were given."""

from contextlib import contextmanager

import tenon
from tenon._typing import Any as _Any

__all__ = ["Attribute", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TracerWarning",
           "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
           "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save", "script",
           "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module",
           "unused", "wait"]

_builtin_isinstance = isinstance


class TracerWarning(Warning):
    """What a tracer would warn of."""

    @staticmethod
    def ignore_lib_warnings():
        pass


class Error(RuntimeError):
    """What a scripted function would raise."""


class ScriptFunction:
    """For isinstance; no function is one."""


class _ScriptModuleMeta(type):
    def __instancecheck__(cls, instance):
        if cls.__name__ not in ("ScriptModule", "RecursiveScriptModule"):
            return type.__instancecheck__(cls, instance)
        import sys
        made = sys.modules.get("tenon.jit._scripted")
        return made is not None and made.is_scripted(instance)


def _module(obj):
    """A module as a scripted one; anything else as it is."""
    if not _builtin_isinstance(obj, tenon.nn.Module):
        return obj
    from tenon.jit import _scripted
    return _scripted.scripted(obj)


def __getattr__(name) -> _Any:
    if name in ("ScriptModule", "RecursiveScriptModule"):  # a class of tenon.nn, made when somebody needs it
        cls = _ScriptModuleMeta(name, (tenon.nn.Module,), {"__doc__": "A module whose methods may be scripted."})
        globals()[name] = cls
        return cls
    if name == "annotations":
        from importlib import import_module
        return import_module("tenon.jit.annotations")
    if name == "Final":
        from typing import Final
        return Final
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function or class itself; a module with the same attributes, which can be saved."""
    return script if obj is None else _module(obj)


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5,
          strict=True, _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None,
          _store_inputs=True):
    """The function or module itself, called once with the examples so that a mistake shows here."""
    with tenon.no_grad():
        if example_kwarg_inputs is not None:
            func(**example_kwarg_inputs)
        elif _builtin_isinstance(example_inputs, (tuple, list)):
            func(*example_inputs)
        elif example_inputs is not None:
            func(example_inputs)
    return _module(func)


def trace_module(mod, inputs, *args, **options):
    """The module itself, after one call of each method named."""
    with tenon.no_grad():
        for name, given in inputs.items():
            getattr(mod, name)(*(given if _builtin_isinstance(given, tuple) else (given,)))
    return _module(mod)


def script_if_tracing(fn):
    return fn


_script_if_tracing = script_if_tracing


def script_method(fn):
    return fn


def interface(obj):
    return obj


def export(fn):
    return fn


def ignore(drop=False, **options):
    """A decorator, with or without arguments, that changes nothing."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    return fn


def _overload(fn):
    return fn


def _overload_method(fn):
    return fn


def is_scripting():
    return False


def is_tracing():
    return False


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):
    return _builtin_isinstance(obj, target_type)


def Attribute(value, type):
    """The value."""
    return value


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    return mod


def onednn_fusion_enabled():
    return False


def enable_onednn_fusion(enabled):
    pass


def set_fusion_strategy(strategy):
    return []


@contextmanager
def optimized_execution(should_optimize):
    yield


@contextmanager
def fuser(name):
    yield


class strict_fusion:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class Future:
    """A value that is there."""

    def __init__(self, value=None):
        self._value = value

    def wait(self):
        return self._value

    value = wait

    def done(self):
        return True


def fork(func, *args, **kwargs):
    """Call the function, and return its result as a future."""
    return Future(func(*args, **kwargs))


def wait(future):
    return future.wait()


def save(m, f, _extra_files=None):
    """Write a module to a file that `load` reads; PyTorch does not read it."""
    from tenon.jit import _scripted
    _scripted.save(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """The module of a file that `save` wrote. Its class must be one of the package's, or be there already."""
    from tenon.jit import _scripted
    return _scripted.load(f, map_location, _extra_files)
