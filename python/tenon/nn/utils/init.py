# SPDX-License-Identifier: MIT
"""Making a module without initializing its values."""

from tenon.nn.modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """A module of `module_cls` whose parameters have storage but no values yet."""
    import inspect

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)
