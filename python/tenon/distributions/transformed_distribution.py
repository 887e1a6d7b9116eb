# SPDX-License-Identifier: MIT
"""TransformedDistribution, at the path where scripts look for it."""

from tenon.distributions.transformed import TransformedDistribution

__all__ = ["TransformedDistribution"]
