# SPDX-License-Identifier: MIT
"""Datasets, the order in which to take their samples, and loaders that make batches of them."""

from tenon.utils.data._utils.worker import get_worker_info
from tenon.utils.data.dataset import (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset,
                                      TensorDataset, random_split)
from tenon.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from tenon.utils.data.sampler import (BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                                      WeightedRandomSampler)
from tenon.utils.data.dataloader import DataLoader, _DatasetKind, default_collate, default_convert
from tenon.utils.data.distributed import DistributedSampler

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
           "IterDataPipe", "IterableDataset", "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
           "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind", "default_collate",
           "default_convert", "get_worker_info", "random_split"]
