# SPDX-License-Identifier: MIT
"""The fast path of multi-head attention: a switch that is kept."""

_enabled = [True]


def get_fastpath_enabled():
    return _enabled[0]


def set_fastpath_enabled(value):
    _enabled[0] = bool(value)
