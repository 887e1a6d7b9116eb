# SPDX-License-Identifier: MIT
"""Adamax, at the path where scripts look for it."""

from tenon.optim.adam import Adamax

__all__ = ["Adamax"]
