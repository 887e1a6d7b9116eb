# SPDX-License-Identifier: MIT
"""Adadelta, at the path where scripts look for it."""

from tenon.optim.adaptive import Adadelta

__all__ = ["Adadelta"]
