# SPDX-License-Identifier: MIT
"""AdamW, at the path where scripts look for it."""

from tenon.optim.adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
