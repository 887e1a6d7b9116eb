# SPDX-License-Identifier: MIT
"""Automatic mixed precision: autocast and the scaling of gradients."""
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
