# SPDX-License-Identifier: MIT
"""The path of `scan` in PyTorch."""

from tenon._higher_order_ops import scan

__all__ = ["scan"]
