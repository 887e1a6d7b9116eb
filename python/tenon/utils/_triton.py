# SPDX-License-Identifier: MIT
"""Whether Triton can be used: there is no device for it."""

import importlib.util


def has_triton_package():
    """Whether it is installed."""
    return importlib.util.find_spec("triton") is not None


def has_triton():
    return False


def has_triton_tma():
    return False


def has_triton_tma_device():
    return False
