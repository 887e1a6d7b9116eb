# SPDX-License-Identifier: MIT
"""Small helpers on sizes that layers share."""

from collections.abc import Iterable
from itertools import repeat


def _ntuple(n, name="parse"):
    """A function that repeats one value `n` times and makes a tuple of what already is many."""

    def parse(x):
        if isinstance(x, Iterable):
            return tuple(x)
        return tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n):
    """Each element `n` times, last element first: per-dimension sizes in the order that padding wants them."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """The sizes of `out_size`, those that are None taken from the end of `defaults`."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take `prefix` off every key of `state_dict`, in place."""
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    if hasattr(state_dict, "_metadata"):
        for key in list(state_dict._metadata.keys()):
            if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
                state_dict._metadata[key[len(prefix) :]] = state_dict._metadata.pop(key)
