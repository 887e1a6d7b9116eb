# SPDX-License-Identifier: MIT
"""The path of `associative_scan` in PyTorch."""

from tenon._higher_order_ops import associative_scan

__all__ = ["associative_scan"]
