# SPDX-License-Identifier: MIT
"""From keys to batches, the same way in this process and in a worker."""


class _BaseDatasetFetcher:
    """Gives batches: `fetch` of keys."""

    def fetch(self, keys):
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Samples by key."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn

    def fetch(self, keys):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[keys])
        together = getattr(self.dataset, "__getitems__", None)
        if together:
            return self.collate_fn(together(keys))
        return self.collate_fn([self.dataset[key] for key in keys])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples of a stream, as many as there are keys. StopIteration at its end."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.dataset_iter = dataset, iter(dataset)
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last
        self.ended = False

    def fetch(self, keys):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        batch = []
        for _ in keys:
            try:
                batch.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if len(batch) == 0 or (self.drop_last and len(batch) < len(keys)):
            raise StopIteration
        return self.collate_fn(batch)


def fetcher(is_iterable, dataset, auto_collation, collate_fn, drop_last):
    kind = _IterableDatasetFetcher if is_iterable else _MapDatasetFetcher
    return kind(dataset, auto_collation, collate_fn, drop_last)
