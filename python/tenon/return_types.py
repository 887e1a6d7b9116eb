# SPDX-License-Identifier: MIT
"""Types of named results: return_types.max is the type of what max(x, dim) gives."""

from ._C import _return_type


TYPE_CHECKING = False  # type checkers take it for True
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name) -> "Any":
    found = _return_type(name)
    if found is None:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    globals()[name] = found
    return found
