# SPDX-License-Identifier: MIT
"""Intel's GPU, which is not here."""

_TEXT = "Torch not compiled with XPU enabled"


def is_available():
    return False


def is_initialized():
    return False


def device_count():
    return 0


def is_bf16_supported(including_emulation=True):
    return False


def manual_seed(seed):
    """Nothing to seed."""


def manual_seed_all(seed):
    """Nothing to seed."""


def empty_cache():
    pass


def memory_allocated(device=None):
    return 0


def max_memory_allocated(device=None):
    return 0


def memory_reserved(device=None):
    return 0


def reset_peak_memory_stats(device=None):
    pass


def synchronize(device=None):
    raise AssertionError(_TEXT)


def current_device():
    raise AssertionError(_TEXT)


def set_device(device):
    raise AssertionError(_TEXT)


def get_device_name(device=None):
    raise AssertionError(_TEXT)


def get_device_properties(device=None):
    raise AssertionError(_TEXT)
