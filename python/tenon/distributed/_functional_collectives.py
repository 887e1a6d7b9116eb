# SPDX-License-Identifier: MIT
"""Collectives that give a new tensor. In a world of one process each gives what it was given."""

__all__ = ["all_gather_tensor", "all_reduce", "all_to_all_single", "broadcast", "reduce_scatter_tensor", "wait_tensor"]


def wait_tensor(tensor):
    """The tensor, which nobody is still computing."""
    return tensor


def all_reduce(self, reduceOp, group, tag=""):
    return self.clone()


def broadcast(self, src, group, tag=""):
    return self.clone()


def all_gather_tensor(self, gather_dim, group, tag=""):
    return self.clone()


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    return self.clone()


class AsyncCollectiveTensor:
    """A tensor that others still compute: for isinstance, no tensor is one."""


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    return self.clone()


def permute_tensor(self, src_dst, group, tag=""):
    return self.clone()


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    return self.clone()
