# SPDX-License-Identifier: MIT
"""Marks for NVIDIA's profilers. Nobody listens without a device, so marks go nowhere."""

from contextlib import contextmanager

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg):
    return -2


def range_pop():
    return -2


def range_start(msg):
    return 0


def range_end(range_id):
    pass


def mark(msg):
    pass


@contextmanager
def range(msg, *args, **kwargs):
    yield
