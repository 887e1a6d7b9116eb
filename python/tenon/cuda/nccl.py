# SPDX-License-Identifier: MIT
"""NCCL's collectives between GPUs, of which there are none."""

from tenon.cuda import _refuse

__all__ = ["all_gather", "all_reduce", "broadcast", "init", "reduce", "reduce_scatter"]


def is_available(tensors):
    """Whether the tensors are contiguous ones of different devices: none is on a GPU."""
    return False


def version():
    """NCCL is not linked."""
    raise RuntimeError("PyTorch built without NCCL support")


def all_reduce(*args, **options):
    _refuse()


all_gather = broadcast = init = reduce = reduce_scatter = all_reduce
