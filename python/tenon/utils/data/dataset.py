# SPDX-License-Identifier: MIT
"""Sources of samples: what can be indexed, what can only be gone through, and both put together."""

import bisect
import collections.abc
import itertools
import math
import warnings

import tenon
from tenon._typing import TYPE_CHECKING
from tenon.utils.data._of import Of

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
           "random_split"]


if TYPE_CHECKING:
    from tenon.utils.data._of import T_co


class Dataset(Of["T_co"]):
    """A map from keys to samples: a subclass has `__getitem__`, and `__len__` for most samplers. `__getitems__`, which
    takes a list of keys, is used for batches where it is there."""

    def __getitem__(self, index) -> "T_co":
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset["T_co"], collections.abc.Iterable):
    """A stream of samples: a subclass has `__iter__`. In a worker, get_worker_info() says which part is its own."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors whose first sizes agree."""

    def __init__(self, *tensors):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Samples of several datasets side by side: tuples, or dicts when the datasets were given by name."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output,"
                             " but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args if args else kwargs
        self._length = len(self._all()[0])
        if any(len(dataset) != self._length for dataset in self._all()):
            raise ValueError("Size mismatch between datasets")

    def _all(self):
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def _pack(self, values):
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index):
        return self._pack([dataset[index] for dataset in self._all()])

    def __getitems__(self, indices):
        columns = []
        for dataset in self._all():
            if callable(getattr(dataset, "__getitems__", None)):
                column = dataset.__getitems__(indices)
                if len(column) != len(indices):
                    raise ValueError("Nested dataset's output size mismatch. Expected %d, got %d"
                                     % (len(indices), len(column)))
            else:
                column = [dataset[i] for i in indices]
            columns.append(column)
        return [self._pack(row) for row in zip(*columns)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """One dataset after another."""

    @staticmethod
    def cumsum(sequence):
        """Where each dataset ends."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if len(self.datasets) == 0:
            raise AssertionError("datasets should not be an empty iterable")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self):
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """One stream after another."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self):
        total = 0
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            total += len(dataset)
        return total


class Subset(Dataset["T_co"]):
    """Some samples of a dataset, by their indices."""

    def __init__(self, dataset: "Dataset[T_co]", indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Cut a dataset at random into subsets of the given lengths, or of the given fractions, which sum to 1."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for i, part in enumerate(lengths):
            if part < 0 or part > 1:
                raise ValueError("Fraction at index %d is not between 0 and 1" % i)
            sizes.append(int(math.floor(len(dataset) * part)))
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn("Length of split at index %d is 0. This might result in an empty dataset." % i,
                              stacklevel=2)
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = tenon.randperm(sum(lengths), generator=generator if generator is not None
                           else tenon.default_generator).tolist()
    return [Subset(dataset, order[end - size:end])
            for end, size in zip(itertools.accumulate(lengths), lengths)]
