# SPDX-License-Identifier: MIT
"""Calls to other processes: there are none to call."""

__all__ = ["is_available"]


def is_available():
    return False
