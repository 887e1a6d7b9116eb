# SPDX-License-Identifier: MIT
"""The path where some scripts look for GradScaler."""

from tenon.cuda.amp import GradScaler

__all__ = ["GradScaler"]
