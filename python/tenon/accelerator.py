# SPDX-License-Identifier: MIT
"""Whatever accelerator there is: none."""

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
           "device_index", "empty_cache", "is_available", "set_device_idx", "set_device_index", "set_stream",
           "synchronize"]

_TEXT = "Cannot access accelerator device when none is available."


def is_available():
    return False


def device_count():
    return 0


def current_accelerator(check_available=False):
    """The accelerator's device, or None."""
    return None


def _refuse(*args, **kwargs):
    raise RuntimeError(_TEXT)


current_device_index = current_device_idx = set_device_index = set_device_idx = _refuse
current_stream = set_stream = synchronize = _refuse


class device_index:
    """A context manager that would choose a device; with None nothing."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None:
            _refuse()

    def __exit__(self, *exception):
        return False


def empty_cache():
    pass


def memory_allocated(device_index=None):
    return 0


def max_memory_allocated(device_index=None):
    return 0


def memory_reserved(device_index=None):
    return 0


def max_memory_reserved(device_index=None):
    return 0


def reset_peak_memory_stats(device_index=None):
    pass


def memory_stats(device_index=None):
    from collections import OrderedDict
    return OrderedDict()
