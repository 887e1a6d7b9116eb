# SPDX-License-Identifier: MIT
"""Quantization, as far as it needs no quantized tensors: observers, fake quantization, and linear layers of 8-bit weights."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("nn", "quantization"))
