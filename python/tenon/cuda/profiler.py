# SPDX-License-Identifier: MIT
"""NVIDIA's profiler, which needs a device."""

from contextlib import contextmanager

from tenon.cuda import _refuse

__all__ = ["init", "profile", "start", "stop"]


def init(output_file, flags=None, output_mode="key_value"):
    _refuse()


def start():
    _refuse()


def stop():
    _refuse()


@contextmanager
def profile():
    """Profiles what runs inside: refused when it is entered."""
    start()
    yield
