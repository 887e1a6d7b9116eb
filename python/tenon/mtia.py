# SPDX-License-Identifier: MIT
"""Meta's accelerator, which is not here."""

__all__ = ["current_device", "device_count", "is_available", "is_initialized", "manual_seed", "manual_seed_all", "synchronize"]

_TEXT = "Torch not compiled with MTIA enabled."


def is_available():
    return False


def is_initialized():
    return False


def device_count():
    return 0


def manual_seed(seed):
    """Nothing to seed."""


def manual_seed_all(seed):
    """Nothing to seed."""


def synchronize(device=None):
    raise AssertionError(_TEXT)


def current_device():
    raise AssertionError(_TEXT)
