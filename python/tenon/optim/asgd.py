# SPDX-License-Identifier: MIT
"""ASGD, at the path where scripts look for it."""

from tenon.optim.sgd import ASGD

__all__ = ["ASGD"]
