# SPDX-License-Identifier: MIT
"""Settings of pipes, and of the pipes that they hold."""

from tenon.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings"]


def _pipes(datapipe, seen=None):
    """The pipe and those in its attributes, each once."""
    seen = {} if seen is None else seen
    if isinstance(datapipe, (IterDataPipe, MapDataPipe)) and id(datapipe) not in seen:
        seen[id(datapipe)] = datapipe
        for held in vars(datapipe).values():
            _pipes(held, seen)
    return seen.values()


def apply_shuffle_settings(datapipe, shuffle=None):
    """Tell the pipes that shuffle whether to."""
    for pipe in _pipes(datapipe) if shuffle is not None else ():
        if callable(getattr(pipe, "set_shuffle", None)) and callable(getattr(pipe, "set_seed", None)):
            pipe.set_shuffle(shuffle)
    return datapipe


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=None):
    """Tell the pipes that take their share of the samples which share that is."""
    for pipe in _pipes(datapipe):
        if callable(getattr(pipe, "apply_sharding", None)):
            pipe.apply_sharding(num_of_instances, instance_id)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Seed the pipes that draw numbers."""
    import tenon
    for pipe in _pipes(datapipe):
        if callable(getattr(pipe, "set_shuffle", None)) and callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(int(tenon.empty((), dtype=tenon.int64).random_(generator=rng).item()))
    return datapipe
