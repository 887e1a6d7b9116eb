# SPDX-License-Identifier: MIT
"""What a worker of a loader does, and how it ends.

A worker reads requests with a thread of its own, so that the loader can always write, and answers in the order of the
requests. It ends when it is told to, when the loader closes the pipe, or when its parent is gone.
"""

from dataclasses import dataclass
import os
import queue
import threading

import tenon
from tenon._utils import ExceptionWrapper

_worker_info = None


class WorkerInfo:
    """Which of the workers this process is: id, num_workers, seed, dataset."""

    def __init__(self, **values):
        self.__dict__.update(values)
        self.__dict__["_fixed"] = True

    def __setattr__(self, name, value):
        if self.__dict__.get("_fixed"):
            raise RuntimeError("Cannot assign attributes to WorkerInfo objects")
        self.__dict__[name] = value

    def __repr__(self):
        return "WorkerInfo(%s)" % ", ".join("%s=%s" % (name, self.__dict__[name])
                                            for name in ("id", "num_workers", "seed", "dataset"))


def get_worker_info():
    """In a worker, its WorkerInfo; elsewhere None."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A stream of a worker is at its end."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """For loaders from elsewhere that tell their workers to begin again."""

    seed: object = None


class ManagerWatchdog:
    """For workers of loaders from elsewhere: whether the process that made this one is alive."""

    def __init__(self):
        self.manager_pid, self.manager_dead = os.getppid(), False

    def is_alive(self):
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


def exception_info(error):
    return type(error), error, error.__traceback__


def _read_requests(pipe, requests, parent):
    """Until the end: from the pipe into the queue. Ends the process when the parent is gone."""
    try:
        while True:
            while not pipe.poll(5.0):
                if os.getppid() != parent:
                    os._exit(1)
            request = pipe.recv()
            requests.put(request)
            if request is None:
                return
    except (EOFError, OSError):
        requests.put(None)


def _generate_state(base_seed, worker_id):
    """The seed of NumPy in a worker: NumPy's own mixture of the two numbers."""
    import numpy
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(words).generate_state(4).tolist()


def _seed_all(base_seed, worker_id):
    import random
    import sys
    random.seed(base_seed + worker_id)
    tenon.manual_seed(base_seed + worker_id)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(base_seed, worker_id))


def run(worker_id, num_workers, requests_end, results, foreign_ends, parent, dataset, is_iterable, auto_collation,
        collate_fn, drop_last, base_seed, init_fn):
    """The main function of a worker. Requests are (epoch, number, keys), or ("resume", epoch), or None for the end;
    answers are (epoch, number, batch or ExceptionWrapper or
    _IterableDatasetStopIteration)."""
    from tenon.utils.data._utils import transport
    from tenon.utils.data._utils.fetch import fetcher
    global _worker_info
    for end in foreign_ends:  # ends that fork copied: while one is open, nobody sees that the other side is gone
        end.close()
    try:
        tenon.set_num_threads(1)
        seed = base_seed + worker_id
        _seed_all(base_seed, worker_id)
        _worker_info = WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=dataset)
        requests = queue.SimpleQueue()
        threading.Thread(target=_read_requests, args=(requests_end, requests, parent), daemon=True).start()
        where = "in DataLoader worker process %d" % worker_id
        failed = None
        try:
            if init_fn is not None:
                init_fn(worker_id)
        except Exception as error:
            failed = ExceptionWrapper(exception_info(error), where)
        source, ended = None, False
        while True:
            request = requests.get()
            if request is None:
                return
            if request[0] == "resume":
                source, ended = None, False
                continue
            epoch, number, keys = request
            if ended:
                continue
            if failed is not None:
                answer, failed = failed, None
            else:
                try:
                    if source is None:
                        source = fetcher(is_iterable, dataset, auto_collation, collate_fn, drop_last)
                    answer = source.fetch(keys)
                except Exception as error:
                    if is_iterable and isinstance(error, StopIteration):
                        answer, ended = _IterableDatasetStopIteration(worker_id), True
                    else:
                        answer = ExceptionWrapper(exception_info(error), where)
            try:
                transport.send(results, (epoch, number, answer))
            except (BrokenPipeError, ConnectionResetError):
                return  # nobody wants it
            except Exception as error:  # it cannot be pickled
                transport.send(results, (epoch, number, ExceptionWrapper(exception_info(error), where)))
            del answer
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass
