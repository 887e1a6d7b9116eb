# SPDX-License-Identifier: MIT
"""Normal, at the path where scripts look for it."""

from tenon.distributions.continuous import Normal

__all__ = ["Normal"]
