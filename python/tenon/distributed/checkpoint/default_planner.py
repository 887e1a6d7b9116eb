# SPDX-License-Identifier: MIT
"""What of a dict is written and read: with one process, all of it."""

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, **options):
        self.flatten_state_dict = flatten_state_dict


class DefaultLoadPlanner:
    """With allow_partial_load, what a checkpoint does not have stays as it is."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
