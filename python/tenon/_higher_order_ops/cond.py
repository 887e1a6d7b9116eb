# SPDX-License-Identifier: MIT
"""The path of `cond` in PyTorch."""

from tenon._rare import cond

__all__ = ["cond"]
