# SPDX-License-Identifier: MIT
"""DataLoader: batches of a dataset, made in this process or by workers.

With workers, batch number i is asked of worker i modulo num_workers (of those that still have samples), prefetch_factor
batches ahead each, and batches are given in order, whoever is faster. The loader waits on the pipes of its workers and
on the workers themselves, so that one that dies is noticed at once and nothing can hang.
"""

import itertools
import warnings

import tenon
from tenon._typing import TYPE_CHECKING
from tenon._utils import ExceptionWrapper
from tenon.utils.data import _utils
from tenon.utils.data._of import Of
from tenon.utils.data._utils.collate import default_collate, default_convert
from tenon.utils.data._utils.fetch import fetcher
from tenon.utils.data._utils.worker import get_worker_info
from tenon.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from tenon.utils.data.dataset import IterableDataset
from tenon.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from tenon.utils.data._of import T_co
    from tenon.utils.data.dataset import Dataset

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


_collate_fn_t = _worker_init_fn_t = object  # for annotations: functions of a list of samples, of a worker's number


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        return fetcher(kind == _DatasetKind.Iterable, dataset, auto_collation, collate_fn, drop_last)


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id):
    """What a worker of pipes begins with: each takes its share."""
    from tenon.utils.data.graph_settings import apply_sharding
    info = get_worker_info()
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


class _InfiniteConstantSampler(Sampler):
    """Keys for a stream: None for ever."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader(Of["T_co"]):
    """Goes through a dataset in batches. Each `iter()` is one epoch."""

    _fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    _iterator = None
    __initialized = False

    def __init__(self, dataset: "Dataset[T_co]", batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device="", in_order=True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to "
                             "enable multiprocessing, otherwise set prefetch_factor to None.")
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            text = "DataLoader with IterableDataset: expected unspecified %s option, but got %s=%s"
            if shuffle not in (False, None):
                raise ValueError(text % ("shuffle", "shuffle", shuffle))
            if sampler is not None:
                raise ValueError(text % ("sampler", "sampler", sampler))
            if batch_sampler is not None:
                raise ValueError(text % ("batch_sampler", "batch_sampler", batch_sampler))
        else:
            shuffle = bool(shuffle)
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                                 "drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called = None
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def multiprocessing_context(self):
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            import multiprocessing
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > "
                                 "0), but got num_workers=%d" % self.num_workers)
            if isinstance(context, str):
                valid = multiprocessing.get_all_start_methods()
                if context not in valid:
                    raise ValueError("multiprocessing_context option should specify a valid start method in %r, but got"
                                     " multiprocessing_context=%r" % (valid, context))
                context = multiprocessing.get_context(context)
            elif not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string specifying"
                                " the start method, but got multiprocessing_context=%s" % (context,))
        self.__context = context

    def __setattr__(self, name, value):
        if self.__initialized and name in self._fixed:
            raise ValueError("%s attribute should not be set after %s is initialized" % (name, type(self).__name__))
        super().__setattr__(name, value)

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None or self._iterator._is_closed:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is not None:
            length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        return length

    def check_worker_number_rationality(self):
        """Warn of more workers than this process may use processors."""
        if not self.num_workers:
            return
        import os
        try:
            most = len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            most = os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(
                "This DataLoader will create %d worker processes in total. Our suggested max number of worker in "
                "current system is %d, which is smaller than what this DataLoader is going to create. Please be aware "
                "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
                "number to avoid potential slowness/freeze if necessary." % (self.num_workers, most), stacklevel=3)


class _BaseDataLoaderIter:
    """One epoch, or one after another for workers that stay."""

    _is_closed = False

    _world_size, _rank, _shared_seed, _pg = 1, 0, None, None

    def __init__(self, loader):
        self._loader = loader
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation, self._drop_last = loader._auto_collation, loader.drop_last
        self._index_sampler, self._num_workers = loader._index_sampler, loader.num_workers
        self._pin_memory, self._pin_memory_device = False, None
        self._timeout, self._persistent_workers = loader.timeout, loader.persistent_workers
        self._collate_fn = loader.collate_fn
        self._begin(loader)
        if loader.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                          "won't be used.", stacklevel=4)

    def _begin(self, loader):
        _BaseDataLoaderIter._reset(self, loader)
        self._base_seed = int(tenon.empty((), dtype=tenon.int64).random_(generator=loader.generator).item())

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __iter__(self):
        return self

    def __next__(self):
        batch = self._next_data()
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and expected is not None and self._num_yielded > len(
                self._loader):
            text = ("Length of IterableDataset %s was reported to be %d (when accessing len(dataloader)), but %d "
                    "samples have been fetched. " % (self._dataset, len(self._loader), self._num_yielded))
            if self._num_workers > 1:
                text += ("For multiprocessing data-loading, this could be caused by not properly configuring the "
                         "IterableDataset replica at each worker. Please see "
                         "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
            warnings.warn(text, stacklevel=2)
        return batch

    def __len__(self):
        return len(self._loader._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made here."""

    def __init__(self, loader):
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation,
                                                            self._collate_fn, self._drop_last)

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class _Worker:
    """A process, the ends of its pipes, and whether it still has samples."""

    def __init__(self, process, requests, results):
        self.process, self.requests, self.results = process, requests, results
        self.active = True


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches made by workers."""

    def __init__(self, loader):
        super().__init__(loader)
        self._workers = []
        self._epoch = 0
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing
            context = multiprocessing.get_context("fork")
        try:
            self._start(loader, context)
            self._fill()
        except BaseException:
            self._shutdown_workers()
            raise

    def _start(self, loader, context):
        import functools
        import os
        init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            init_fn = functools.partial(_sharding_worker_init_fn, init_fn, self._world_size, self._rank)
        forked = context.get_start_method() == "fork"
        for i in range(loader.num_workers):
            ask_here, ask_there = context.Pipe()
            answer_here, answer_there = context.Pipe()
            foreign = []
            if forked:
                foreign = [ask_here, answer_here]
                for worker in self._workers:
                    foreign += [worker.requests, worker.results]
            process = context.Process(target=_utils.worker.run, daemon=True, args=(
                i, loader.num_workers, ask_there, answer_there, foreign, os.getpid(), self._dataset,
                self._dataset_kind == _DatasetKind.Iterable, loader._auto_collation, self._collate_fn, loader.drop_last,
                self._base_seed, init_fn))
            process.start()
            ask_there.close()
            answer_there.close()
            self._workers.append(_Worker(process, ask_here, answer_here))
        self._forget()

    def _forget(self):
        """Nothing is asked, nothing has come."""
        self._asked = 0                 # the number of the next request
        self._wanted = 0                # the number of the batch to give next
        self._owner = {}                # number of a request -> worker, while it is not given
        self._arrived = {}              # number -> batch
        self._turn = itertools.cycle(range(len(self._workers)))
        for worker in self._workers:
            worker.active = True

    def _reset(self, loader, first_iter=False):
        """Another epoch of the same workers."""
        self._begin(loader)
        self._epoch += 1
        self._forget()
        for worker in self._workers:
            self._send(worker, ("resume", self._epoch))
        self._fill()

    def _fill(self):
        for _ in range(max(1, self._loader.prefetch_factor) * len(self._workers)):
            self._ask()

    def _ask(self):
        """Ask the next worker that has samples for the next batch."""
        try:
            keys = next(self._sampler_iter)
        except StopIteration:
            return
        for _ in range(len(self._workers)):
            which = next(self._turn)
            if self._workers[which].active:
                break
        else:
            return
        self._owner[self._asked] = which
        self._send(self._workers[which], (self._epoch, self._asked, keys))
        self._asked += 1

    def _send(self, worker, request):
        try:
            worker.requests.send(request)
        except (BrokenPipeError, ConnectionResetError):
            self._fail([worker])

    def _fail(self, dead):
        """Dead workers end the iteration."""
        import signal
        pids = ", ".join(str(worker.process.pid) for worker in dead)
        for worker in dead:
            worker.process.join(10)  # its descriptors are closed: it ends at once, or when it gets a processor
        code = dead[0].process.exitcode
        self._shutdown_workers(0.1)
        cause = None
        if code is not None and code < 0:
            try:
                name = signal.strsignal(-code)
            except ValueError:
                name = "signal %d" % -code
            cause = RuntimeError("DataLoader worker (pid %d) is killed by signal: %s. " % (dead[0].process.pid, name))
        raise RuntimeError("DataLoader worker (pid(s) %s) exited unexpectedly" % pids) from cause

    def _take(self, timeout):
        """Wait until something has come, and take all of it. False when the time is over."""
        from multiprocessing import connection
        busy = {which for number, which in self._owner.items() if number not in self._arrived}
        waiting = [self._workers[which] for which in sorted(busy)]
        ready = connection.wait([worker.results for worker in waiting]
                                + [worker.process.sentinel for worker in waiting], timeout)
        if not ready:
            return False
        dead = []
        for worker in waiting:
            if worker.results in ready or worker.results.poll():
                try:
                    message = _utils.transport.read(worker.results)
                except EOFError:
                    dead.append(worker)
                    continue
                except BaseException:  # half a message may have been taken: nothing that comes after it is one
                    self._shutdown_workers(0.1)
                    raise
                epoch, number, batch = _utils.transport.unpacked(message)
                if epoch == self._epoch:
                    self._arrived[number] = batch
            elif worker.process.sentinel in ready:
                dead.append(worker)
        if dead and not self._can_give():
            self._fail(dead)
        return True

    def _can_give(self):
        return self._wanted in self._arrived if self._loader.in_order else bool(self._arrived)

    def _next_data(self):
        import time
        limit = time.monotonic() + self._loader.timeout if self._loader.timeout > 0 else None
        while True:
            if self._is_closed:
                raise StopIteration
            if self._loader.in_order:
                # Requests to a worker whose stream has ended are never answered.
                while self._wanted < self._asked and self._wanted not in self._arrived and not self._workers[
                        self._owner[self._wanted]].active:
                    del self._owner[self._wanted]
                    self._wanted += 1
                number = self._wanted if self._wanted in self._arrived else None
                finished = self._wanted >= self._asked
            else:
                for lost in [n for n, which in self._owner.items()
                             if n not in self._arrived and not self._workers[which].active]:
                    del self._owner[lost]
                number = next(iter(self._arrived), None)
                finished = not self._owner
            if number is None:
                if finished:
                    if not self._loader.persistent_workers:
                        self._shutdown_workers()
                    raise StopIteration
                left = None if limit is None else max(0.0, limit - time.monotonic())
                if not self._take(left):
                    self._shutdown_workers(0.1)
                    raise RuntimeError("DataLoader timed out after %s seconds" % self._loader.timeout)
                continue
            batch = self._arrived.pop(number)
            del self._owner[number]
            if self._loader.in_order:
                self._wanted += 1
            if isinstance(batch, _utils.worker._IterableDatasetStopIteration):
                self._workers[batch.worker_id].active = False
                self._ask()
                continue
            self._ask()
            if isinstance(batch, ExceptionWrapper):
                batch.reraise()
            return batch

    def _shutdown_workers(self, patience=_utils.MP_STATUS_CHECK_INTERVAL):
        """End the workers: politely, then, after `patience` seconds, by force. Safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for worker in self._workers:
            worker.requests.close()  # a worker that reads or writes notices at once
            worker.results.close()
        for worker in self._workers:
            worker.process.join(patience)
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join(1.0)
                if worker.process.is_alive():
                    worker.process.kill()
                    worker.process.join()

    def __del__(self):
        try:
            if getattr(self, "_workers", None):
                self._shutdown_workers()
        except Exception:  # the interpreter may be half gone
            pass
