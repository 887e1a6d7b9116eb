# SPDX-License-Identifier: MIT
"""Switches of recording, under the names that users import from here."""
import threading

import tenon
from tenon import _C

no_grad = tenon.no_grad
enable_grad = tenon.enable_grad
set_grad_enabled = tenon.set_grad_enabled
inference_mode = tenon.inference_mode

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


_threads = threading.local()


def is_multithreading_enabled():
    """What set_multithreading_enabled was told last on this thread."""
    return getattr(_threads, "enabled", True)


class set_multithreading_enabled:
    """Kept and without effect: a pass runs on the thread that asks for it."""

    def __init__(self, mode):
        self.prev = is_multithreading_enabled()
        self.mode = mode
        _threads.enabled = bool(mode)

    def __enter__(self):
        return None

    def __exit__(self, *args):
        _threads.enabled = self.prev

    def clone(self):
        return type(self)(self.mode)


class _force_original_view_tracking:
    """Accepted and ignored."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return None

    def __exit__(self, *args):
        return None


class _set_fwd_grad_enabled:
    def __init__(self, mode):
        self.prev = _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        return None

    def __exit__(self, *args):
        _C._set_fwd_grad_enabled(self.prev)


