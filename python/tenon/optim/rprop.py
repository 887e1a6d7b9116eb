# SPDX-License-Identifier: MIT
"""Rprop, at the path where scripts look for it."""

from tenon.optim.sgd import Rprop

__all__ = ["Rprop"]
