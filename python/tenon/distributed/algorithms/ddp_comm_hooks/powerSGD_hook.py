# SPDX-License-Identifier: MIT
"""Averaging of approximations of low rank."""

from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The rank, and from which step on."""

    def __init__(self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1000, min_compression_rate=2,
                 use_error_feedback=True, warm_start=True, orthogonalization_epsilon=0, random_seed=0,
                 compression_stats_logging_frequency=10000, batch_tensors_with_same_shape=False):
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon, self.random_seed, self.iter = orthogonalization_epsilon, random_seed, 0
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape


def powerSGD_hook(state, bucket):
    """The average over one process needs no approximation."""
    return allreduce_hook(state.process_group, bucket)


def batched_powerSGD_hook(state, bucket):
    """The average over one process needs no approximation."""
    return allreduce_hook(state.process_group, bucket)
