# SPDX-License-Identifier: MIT
"""NAdam, at the path where scripts look for it."""

from tenon.optim.adam import NAdam

__all__ = ["NAdam"]
