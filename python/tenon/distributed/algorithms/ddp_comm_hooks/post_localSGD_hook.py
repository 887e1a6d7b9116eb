# SPDX-License-Identifier: MIT
"""Averaging within groups of processes from some step on."""

from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """Which groups, and from which step."""

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup, self.iter = process_group, subgroup, 0
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce


def post_localSGD_hook(state, bucket):
    """The average over one process."""
    return allreduce_hook(state.process_group, bucket)
