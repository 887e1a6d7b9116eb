# SPDX-License-Identifier: MIT
"""RMSprop, at the path where scripts look for it."""

from tenon.optim.adaptive import RMSprop

__all__ = ["RMSprop"]
