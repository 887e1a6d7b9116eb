# SPDX-License-Identifier: MIT
"""The layers, by family. Every layer's name is here and in `tenon.nn`; its file is loaded when it is first used."""

from tenon.nn.modules._names import FILES as _FILES
from tenon.nn.modules._names import WHERE as _WHERE
from tenon.nn.modules._names import find as _find
from tenon._typing import Any as _Any

__all__ = sorted(_WHERE)


def __getattr__(name) -> _Any:
    found = _find(name)
    if found is None:
        if name not in _FILES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_WHERE, *_FILES})
