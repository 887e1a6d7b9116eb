# SPDX-License-Identifier: MIT
"""Where models that could be quantized find their markers; Tenon quantizes nothing."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("quantization",))
