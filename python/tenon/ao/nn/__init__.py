# SPDX-License-Identifier: MIT
"""Modules that quantization puts into a model."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("quantized",))
