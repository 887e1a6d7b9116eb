# SPDX-License-Identifier: MIT
"""RAdam, at the path where scripts look for it."""

from tenon.optim.adam import RAdam

__all__ = ["RAdam"]
