# SPDX-License-Identifier: MIT
"""The path where some scripts look for autocast."""

from tenon.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
