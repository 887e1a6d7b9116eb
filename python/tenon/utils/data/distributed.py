# SPDX-License-Identifier: MIT
"""DistributedSampler: each of several processes takes its own part of a dataset."""

import math

import tenon
from tenon.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th sample, from rank on. Call `set_epoch` before each epoch for another order."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None:
            num_replicas = tenon.distributed.get_world_size()
        if rank is None:
            rank = tenon.distributed.get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError("Invalid rank %s, rank should be in the interval [0, %d]" % (rank, num_replicas - 1))
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        if drop_last and n % num_replicas != 0:
            self.num_samples = math.ceil((n - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = tenon.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = tenon.randperm(n, generator=generator).tolist()
        else:
            order = list(range(n))
        if self.drop_last:
            order = order[:self.total_size]
        else:  # every process gets as many: begin again from the start
            missing = self.total_size - n
            order += (order * math.ceil(missing / n))[:missing] if missing > 0 else []
        if len(order) != self.total_size:
            raise AssertionError("Number of indices (%d) does not match total_size (%d)"
                                 % (len(order), self.total_size))
        return iter(order[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """The number of the epoch, which changes the order."""
        self.epoch = epoch
