# SPDX-License-Identifier: MIT
"""Switches of recording, under the names that users import from here."""
import tenon
from tenon import _C

no_grad = tenon.no_grad
enable_grad = tenon.enable_grad
set_grad_enabled = tenon.set_grad_enabled
inference_mode = tenon.inference_mode

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Accepted and ignored: a pass runs on the thread that asks for it."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return None

    def __exit__(self, *args):
        return None


class _force_original_view_tracking(set_multithreading_enabled):
    """Accepted and ignored."""


class _set_fwd_grad_enabled:
    def __init__(self, mode):
        self.prev = _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        return None

    def __exit__(self, *args):
        _C._set_fwd_grad_enabled(self.prev)


