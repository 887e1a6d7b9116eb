# SPDX-License-Identifier: MIT
"""Apple's GPU, which is not here."""

from tenon.backends.mps import is_available

__all__ = ["current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "get_rng_state",
           "is_available", "manual_seed", "seed", "set_per_process_memory_fraction", "set_rng_state", "synchronize"]


def device_count():
    return 0


def manual_seed(seed):
    """Nothing to seed."""


def seed():
    pass


def empty_cache():
    pass


def synchronize():
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_allocated_memory():
    return 0


def driver_allocated_memory():
    return 0


def recommended_max_memory():
    return 0


def set_per_process_memory_fraction(fraction):
    pass


def get_rng_state(device="mps"):
    raise RuntimeError("Cannot access accelerator device when none is available.")


def set_rng_state(new_state, device="mps"):
    raise RuntimeError("Cannot access accelerator device when none is available.")
