# SPDX-License-Identifier: MIT
"""The path of `map` in PyTorch."""

from tenon._higher_order_ops import map

__all__ = ["map"]
