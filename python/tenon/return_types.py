# SPDX-License-Identifier: MIT
"""Types of named results: return_types.max is the type of what max(x, dim) gives."""

from ._C import _return_type
from tenon._typing import Any as _Any


def __getattr__(name) -> _Any:
    found = _return_type(name)
    if found is None:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    globals()[name] = found
    return found
