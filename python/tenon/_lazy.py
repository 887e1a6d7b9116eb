# SPDX-License-Identifier: MIT
"""Modules that are loaded when they are first named."""

import sys

from tenon._typing import Any as _Any


def lazy_modules(package, names):
    """A `__getattr__` for a package: its modules in `names` are imported at first use. `dir` of the package, and so what
    a prompt completes, has them before."""
    names = frozenset(names)
    own = vars(sys.modules[package])
    own.setdefault("__dir__", lambda: sorted({*own, *names}))

    def __getattr__(name) -> _Any:
        if name in names:
            full = "%s.%s" % (package, name)
            __import__(full)
            return sys.modules[full]
        raise AttributeError("module %r has no attribute %r" % (package, name))

    return __getattr__
