# SPDX-License-Identifier: MIT
"""Data parallelism as it is with one process and no GPU: the wrapped module does the work."""

from tenon.nn.parallel.data_parallel import DataParallel, data_parallel
from tenon.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
