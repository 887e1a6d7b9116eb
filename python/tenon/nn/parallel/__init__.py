# SPDX-License-Identifier: MIT
"""Data parallelism as it is with one process and no GPU: the wrapped module does the work."""

from tenon.nn.parallel.data_parallel import DataParallel, data_parallel
from tenon.nn.parallel.distributed import DistributedDataParallel
from tenon.nn.parallel.parallel_apply import parallel_apply
from tenon.nn.parallel.replicate import replicate
from tenon.nn.parallel.scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
