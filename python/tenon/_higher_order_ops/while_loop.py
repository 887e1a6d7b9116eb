# SPDX-License-Identifier: MIT
"""The path of `while_loop` in PyTorch."""

from tenon._higher_order_ops import while_loop

__all__ = ["while_loop"]
