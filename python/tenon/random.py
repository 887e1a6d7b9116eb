# SPDX-License-Identifier: MIT
"""The state of the default generator."""

from contextlib import contextmanager

import tenon

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
           "thread_safe_generator"]

default_generator = tenon.default_generator
manual_seed = tenon.manual_seed
seed = tenon.seed
initial_seed = tenon.initial_seed
get_rng_state = tenon.get_rng_state
set_rng_state = tenon.set_rng_state


def thread_safe_generator():
    return None


@contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Inside, random numbers are drawn as one likes; outside, as if nothing had been drawn."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
