# SPDX-License-Identifier: MIT
"""What programs use that a launcher of several processes may have started. There is no launcher."""

from tenon._lazy import lazy_modules

__all__ = ["multiprocessing"]

__getattr__ = lazy_modules(__name__, ("multiprocessing",))
