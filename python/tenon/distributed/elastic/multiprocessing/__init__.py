# SPDX-License-Identifier: MIT
"""Errors of a process that a launcher started."""

from tenon._lazy import lazy_modules

__all__ = ["errors"]

__getattr__ = lazy_modules(__name__, ("errors",))
