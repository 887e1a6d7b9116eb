# SPDX-License-Identifier: MIT
"""Bernoulli, at the path where scripts look for it."""

from tenon.distributions.discrete import Bernoulli

__all__ = ["Bernoulli"]
