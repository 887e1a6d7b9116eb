# SPDX-License-Identifier: MIT
"""Quantized modules: those of quantize_dynamic."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("dynamic",))
