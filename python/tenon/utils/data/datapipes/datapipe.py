# SPDX-License-Identifier: MIT
"""The classes of pipes, for isinstance: a class below one is a dataset, without the methods that make pipes of pipes."""

from tenon.utils.data.dataset import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe"]


class IterDataPipe(IterableDataset):
    """A stream of samples."""


class MapDataPipe(Dataset):
    """Samples by key."""


class _DataPipeSerializationWrapper:
    """A pipe that travels to a worker."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __len__(self):
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError("%s instance doesn't have valid length" % type(self).__name__) from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, key):
        return self._datapipe[key]
