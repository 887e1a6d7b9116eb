# SPDX-License-Identifier: MIT
"""Categorical, at the path where scripts look for it."""

from tenon.distributions.discrete import Categorical

__all__ = ["Categorical"]
