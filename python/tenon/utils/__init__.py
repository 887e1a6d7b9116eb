# SPDX-License-Identifier: MIT
"""Helpers for training: data, checkpoints of activations, hooks, logs. Each module is loaded when it is first named."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("_contextlib", "_device", "_foreach_utils", "_mode_utils", "_python_dispatch", "_pytree",
                                      "_triton", "backcompat", "benchmark", "checkpoint", "collect_env", "cpp_extension", "data",
                                      "deterministic", "dlpack",
                                      "flop_counter", "hooks", "model_zoo", "module_tracker", "tensorboard", "weak"))


def swap_tensors(t1, t2):
    """Each of two tensors becomes the other: its elements, its class and its attributes. Whoever holds one of them sees
    the other from then on."""
    import weakref

    from tenon import _C
    if weakref.getweakrefs(t1):
        raise RuntimeError("Cannot swap t1 because it has weakref associated with it")
    if weakref.getweakrefs(t2):
        raise RuntimeError("Cannot swap t2 because it has weakref associated with it")

    def slots(t):
        return sorted(name for cls in type(t).__mro__ for name in cls.__dict__.get("__slots__", ()))

    if slots(t1) != slots(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    values = [{name: getattr(t, name) for name in slots(t) if hasattr(t, name)} for t in (t1, t2)]
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    one, two = dict(t1.__dict__), dict(t2.__dict__)
    for t, own, other, kept in ((t1, one, two, values[1]), (t2, two, one, values[0])):
        t.__dict__.clear()
        t.__dict__.update(other)
        for name, value in kept.items():
            setattr(t, name, value)
    _C._swap_tensor_impl(t1, t2)


def set_module(obj, mod):
    """Let an object say that it is of another module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
