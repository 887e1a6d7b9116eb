# SPDX-License-Identifier: MIT
"""Where models that could be quantized find their markers; Tenon quantizes nothing."""
