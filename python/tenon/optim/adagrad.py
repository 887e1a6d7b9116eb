# SPDX-License-Identifier: MIT
"""Adagrad, at the path where scripts look for it."""

from tenon.optim.adaptive import Adagrad

__all__ = ["Adagrad"]
