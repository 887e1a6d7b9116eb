# SPDX-License-Identifier: MIT
"""TorchInductor's settings, which scripts set. There is no Inductor: they change nothing."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("config",))
