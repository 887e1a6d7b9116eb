# SPDX-License-Identifier: MIT
"""Small things for those who write modes."""

import contextlib

from tenon import _C


@contextlib.contextmanager
def no_dispatch():
    """Calls go straight to the kernels: no mode and no class is asked."""
    guard = _C._no_dispatch_enter()
    try:
        yield
    finally:
        _C._no_dispatch_leave(guard)


def all_same_mode(modes):
    return all(mode is modes[0] for mode in modes)


def all_same_mode_scope(modes, cur_mode):
    return all(mode is cur_mode for mode in modes)
