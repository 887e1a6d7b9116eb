# SPDX-License-Identifier: MIT
"""Building blocks of neural networks. Names are loaded when they are first used, so that importing this costs little."""

from tenon.nn.modules._names import WHERE as _WHERE
from tenon.nn.modules._names import find as _find
from tenon._typing import Any as _Any

_PARAMETERS = ("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter")
_MODULES = (
    "attention",
    "common_types",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "quantized",
    "utils",
    "_reduction",
)

__all__ = sorted([*_WHERE, *_PARAMETERS, "DataParallel", "factory_kwargs", "functional", "init", "modules", "parallel",
                  "parameter", "utils"])


def factory_kwargs(kwargs):
    """The arguments `device`, `dtype` and `memory_format` of a layer, given one by one or together as `factory_kwargs`."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for k in simple:
        if k in kwargs:
            if k in made:
                raise TypeError(f"{k} specified twice, in **kwargs and in factory_kwargs")
            made[k] = kwargs[k]
    return made


def __getattr__(name) -> _Any:
    from importlib import import_module

    found = _find(name)
    if found is None:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in _PARAMETERS:
            found = getattr(import_module(f"{__name__}.parameter"), name)
        elif name == "DataParallel":
            found = import_module(f"{__name__}.parallel").DataParallel
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
