# SPDX-License-Identifier: MIT
"""Datasets, samplers, collation and the loader: order, seeds, workers that fail, die or hang."""

import collections
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import unittest
import warnings

import numpy

import harness
import tenon
from tenon.utils import data

warnings.filterwarnings("ignore", message="This DataLoader will create")


class Gone:
    """Cannot be unpickled: what it refers to is not there."""

    def __reduce__(self):
        return _look, ()


def _look():
    raise FileNotFoundError(2, "it is gone")


class Squares(data.Dataset):
    """Sample i: a tensor and a number; `act` may do something else first."""

    def __init__(self, n, act=None):
        self.n, self.act = n, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.act is not None:
            self.act(i)
        return tenon.full((3,), float(i)), i * i


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


class Pixel(collections.namedtuple("Pixel", "x y")):
    pass


def numbers(loader):
    return [batch[1].tolist() for batch in loader]


def fail_at_five(i):
    if i == 5:
        raise KeyError("five")


def die_at_five(i):
    if i == 5:
        os.kill(os.getpid(), signal.SIGKILL)


def leave_at_five(i):
    if i == 5:
        os._exit(3)


def sleep_at_five(i):
    if i == 5:
        time.sleep(1000)


class Shared(data.IterDataPipe):
    """A stream of which each worker takes a share."""

    def __init__(self, n):
        self.n, self.share = n, (1, 0)

    def apply_sharding(self, instances, number):
        self.share = instances, number

    def __iter__(self):
        return iter(range(self.share[1], self.n, self.share[0]))


class Twice(data.IterDataPipe):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return (2 * i for i in self.source)


class Datasets(unittest.TestCase):
    def test_tensors_lie_side_by_side(self):
        rows = data.TensorDataset(tenon.arange(4), tenon.arange(4) * 10)
        self.assertEqual([int(x) for x in rows[2]], [2, 20])
        with self.assertRaisesRegex(AssertionError, "Size mismatch between tensors"):
            data.TensorDataset(tenon.zeros(2), tenon.zeros(3))

    def test_concatenation_subsets_and_stacks(self):
        both = Squares(3) + Squares(4)
        self.assertEqual((len(both), both[4][1], both[-1][1]), (7, 1, 9))
        self.assertEqual([data.Subset(both, [6, 0])[i][1] for i in range(2)], [9, 0])
        named = data.StackDataset(a=Squares(3), b=Squares(3))
        self.assertEqual(named[2]["b"][1], 4)
        chain = Stream(2) + Stream(3)
        self.assertEqual(list(chain), [0, 1, 0, 1, 2])

    def test_random_split_takes_lengths_and_fractions(self):
        parts = data.random_split(range(10), [7, 3], generator=tenon.Generator().manual_seed(1))
        again = data.random_split(range(10), [0.7, 0.3], generator=tenon.Generator().manual_seed(1))
        self.assertEqual([len(part) for part in parts], [7, 3])
        self.assertEqual(sorted(i for part in parts for i in part.indices), list(range(10)))
        self.assertEqual([part.indices for part in parts], [part.indices for part in again])
        with self.assertRaisesRegex(ValueError, "Sum of input lengths does not equal the length of the input dataset!"):
            data.random_split(range(10), [7, 4])


class Samplers(unittest.TestCase):
    def test_each_gives_what_it_promises(self):
        source = range(10)
        self.assertEqual(list(data.SequentialSampler(source)), list(source))
        self.assertEqual(sorted(data.RandomSampler(source)), list(source))
        self.assertEqual(len(list(data.RandomSampler(source, replacement=True, num_samples=77))), 77)
        self.assertEqual(len(list(data.RandomSampler(source, num_samples=25))), 25)
        self.assertEqual(sorted(data.SubsetRandomSampler([3, 5, 8])), [3, 5, 8])
        self.assertEqual(set(data.WeightedRandomSampler([0, 1.0, 0], 5)), {1})
        self.assertEqual(list(data.BatchSampler(range(5), 2, False)), [[0, 1], [2, 3], [4]])
        self.assertEqual(list(data.BatchSampler(range(5), 2, True)), [[0, 1], [2, 3]])

    def test_parts_of_processes_cover_the_whole(self):
        seen = []
        for rank in range(3):
            sampler = data.DistributedSampler(range(10), num_replicas=3, rank=rank)
            sampler.set_epoch(4)
            seen.append(list(sampler))
        self.assertEqual([len(part) for part in seen], [4, 4, 4])
        self.assertEqual(set(i for part in seen for i in part), set(range(10)))
        with self.assertRaisesRegex(ValueError, r"Invalid rank 3, rank should be in the interval \[0, 2\]"):
            data.DistributedSampler(range(10), num_replicas=3, rank=3)

    def test_the_seed_decides_the_order(self):
        def order():
            tenon.manual_seed(3)
            return list(data.RandomSampler(range(50)))

        self.assertEqual(order(), order())


class Collation(unittest.TestCase):
    def test_samples_become_batches(self):
        batch = data.default_collate([{"t": tenon.ones(2), "n": 1, "f": 0.5, "s": "a", "p": Pixel(1, 2.0)},
                                      {"t": tenon.zeros(2), "n": 2, "f": 1.5, "s": "b", "p": Pixel(3, 4.0)}])
        self.assertEqual(batch["t"].tolist(), [[1.0, 1.0], [0.0, 0.0]])
        self.assertEqual((batch["n"].dtype, batch["n"].tolist()), (tenon.int64, [1, 2]))
        self.assertEqual((batch["f"].dtype, batch["f"].tolist()), (tenon.float64, [0.5, 1.5]))
        self.assertEqual(batch["s"], ["a", "b"])
        self.assertEqual(batch["p"].x.tolist(), [1, 3])
        self.assertIsInstance(batch["p"], Pixel)

    def test_arrays_become_tensors(self):
        self.assertEqual(data.default_collate([numpy.float32(1), numpy.float32(2)]).dtype, tenon.float32)
        self.assertEqual(data.default_collate([numpy.ones((2, 3)), numpy.ones((2, 3))]).shape, (2, 2, 3))
        self.assertIsInstance(data.default_convert([numpy.ones(2), "x"])[0], tenon.Tensor)

    def test_bad_samples_are_named(self):
        with self.assertRaisesRegex(TypeError, "default_collate: batch must contain tensors, numpy arrays, numbers, "
                                               "dicts or lists; found <class 'object'>"):
            data.default_collate([object(), object()])
        with self.assertRaisesRegex(RuntimeError, "each element in list of batch should be of equal size"):
            data.default_collate([[1, 2], [3]])
        with self.assertRaisesRegex(RuntimeError, "stack expects each tensor to be equal size"):
            data.default_collate([tenon.ones(2), tenon.ones(3)])


class Loader(unittest.TestCase):
    def setUp(self):
        signal.alarm(600)  # nothing here may hang, and the machine may be slow

    def tearDown(self):
        signal.alarm(0)

    def test_workers_keep_the_order(self):
        wanted = numbers(data.DataLoader(Squares(23), batch_size=4))
        self.assertEqual(wanted[-1], [400, 441, 484])
        for workers in (1, 2, 3):
            self.assertEqual(numbers(data.DataLoader(Squares(23), batch_size=4, num_workers=workers)), wanted)

    def test_large_batches_arrive_whole(self):
        values = tenon.randn(32, 3, 40, 40)
        got = [batch for batch, in data.DataLoader(data.TensorDataset(values), batch_size=8, num_workers=2)]
        self.assertTrue(tenon.equal(tenon.cat(got), values))
        got[0].add_(1)  # memory of one's own
        self.assertTrue(tenon.equal(got[0] - 1 != values[:8], (got[0] - 1) != values[:8]))

    def test_shuffled_order_is_the_seeds_with_and_without_workers(self):
        def order(workers):
            tenon.manual_seed(5)
            return numbers(data.DataLoader(Squares(20), batch_size=3, shuffle=True, num_workers=workers))

        self.assertEqual(order(0), order(2))
        own = data.DataLoader(Squares(20), shuffle=True, generator=tenon.Generator().manual_seed(1))
        self.assertNotEqual(numbers(own), numbers(own))

    def test_workers_that_stay_serve_every_epoch(self):
        loader = data.DataLoader(Squares(10), batch_size=3, num_workers=2, persistent_workers=True)
        first = numbers(loader)
        pids = [worker.process.pid for worker in loader._iterator._workers]
        next(iter(loader))  # an epoch that is left early
        self.assertEqual(numbers(loader), first)
        self.assertEqual([worker.process.pid for worker in loader._iterator._workers], pids)

    def test_streams_end_when_every_worker_is_done(self):
        self.assertEqual([b.tolist() for b in data.DataLoader(Stream(7), batch_size=3)], [[0, 1, 2], [3, 4, 5], [6]])
        loader = data.DataLoader(Stream(10), batch_size=3, num_workers=2, persistent_workers=True)
        for _ in range(2):
            self.assertEqual([b.tolist() for b in loader], [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]])
        self.assertEqual(sorted(data.DataLoader(Stream(10), batch_size=None, num_workers=3)), list(range(10)))
        late = data.DataLoader(Stream(10), batch_size=3, num_workers=2, in_order=False)
        self.assertEqual(sorted(i for b in late for i in b.tolist()), list(range(10)))

    def test_an_exception_of_a_worker_is_raised_here_with_its_traceback(self):
        with self.assertRaises(KeyError) as caught:
            numbers(data.DataLoader(Squares(10, fail_at_five), batch_size=2, num_workers=2))
        text = str(caught.exception)
        self.assertIn("Caught KeyError in DataLoader worker process 0.\nOriginal Traceback", text)
        self.assertIn("in fail_at_five", text)

    def test_a_worker_that_dies_is_noticed_at_once(self):
        for act in (die_at_five, leave_at_five):
            took = []
            while not took or min(took) >= 5 and len(took) < 10:  # the machine may be busy
                start = time.monotonic()
                with self.assertRaisesRegex(RuntimeError, r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
                    numbers(data.DataLoader(Squares(10, act), batch_size=2, num_workers=2))
                took.append(time.monotonic() - start)
            self.assertLess(min(took), 5)

    def test_a_worker_that_hangs_runs_into_the_timeout(self):
        with self.assertRaisesRegex(RuntimeError, "DataLoader timed out after 0.5 seconds"):
            numbers(data.DataLoader(Squares(10, sleep_at_five), batch_size=2, num_workers=1, timeout=0.5))

    def test_an_interrupt_leaves_no_worker_behind(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        loader = iter(data.DataLoader(Squares(1000, lambda i: time.sleep(0.01)), batch_size=2, num_workers=2))
        workers = [worker.process for worker in loader._workers]
        with self.assertRaises(KeyboardInterrupt):
            for i, _ in enumerate(loader):
                if i == 3:
                    os.kill(os.getpid(), signal.SIGUSR1)
        del loader
        self.assertFalse(any(process.is_alive() for process in workers))

    def test_a_handlers_error_is_no_dead_worker(self):
        from unittest import mock
        for error in (TimeoutError("mine"), InterruptedError(4, "mine"), KeyboardInterrupt()):
            loader = iter(data.DataLoader(Squares(20), batch_size=2, num_workers=2))
            workers = [worker.process for worker in loader._workers]
            next(loader)
            # as a signal's handler does it that runs while a message is being read
            with mock.patch.object(data._utils.transport, "_read", side_effect=error), self.assertRaises(type(error)) as caught:
                for _ in loader:
                    pass
            self.assertIs(caught.exception, error)
            self.assertFalse(any(process.is_alive() for process in workers))

    def test_what_cannot_be_unpacked_says_why(self):
        with self.assertRaisesRegex(FileNotFoundError, "it is gone"):
            list(data.DataLoader([Gone()], num_workers=1, batch_size=None))

    def test_workers_end_when_their_parent_is_killed(self):
        script = ("import os, signal, sys, time\nfrom tenon.utils import data\n"
                  "it = iter(data.DataLoader(range(100), num_workers=1, prefetch_factor=2))\nnext(it)\n"
                  "print(it._workers[0].process.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
        pid = int(done.stdout)
        for _ in range(3000):
            try:
                with open("/proc/%d/stat" % pid, encoding="ascii") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.1)
        self.fail("worker %d lives on" % pid)

    def test_workers_have_seeds_of_their_own(self):
        class Draw(data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                info = data.get_worker_info()
                return tenon.rand(()).item(), info.id, info.num_workers, info.seed

        def draw():
            tenon.manual_seed(7)
            return list(data.DataLoader(Draw(), num_workers=2, batch_size=None))

        rows = draw()
        self.assertEqual(rows, draw())
        self.assertEqual(len({row[0] for row in rows}), 4)
        self.assertEqual([row[1] for row in rows], [0, 1, 0, 1])
        self.assertEqual(rows[1][3] - rows[0][3], 1)
        self.assertIsNone(data.get_worker_info())

    def test_worker_init_fn_runs_in_the_worker_and_its_failure_is_told(self):
        def init(i):
            raise ValueError("init %d" % i)

        with self.assertRaisesRegex(ValueError, "(?s)Caught ValueError in DataLoader worker process 0.*init 0"):
            list(data.DataLoader(Squares(4), num_workers=1, worker_init_fn=init))

    def test_nothing_cannot_be_shuffled(self):
        for make in lambda: data.RandomSampler([]), lambda: list(data.DataLoader([], shuffle=True)):
            with self.assertRaisesRegex(ValueError, "num_samples should be a positive integer value, but got num_samples=0"):
                make()
        self.assertEqual(list(data.DataLoader([])), [])

    def test_what_cannot_travel_is_told(self):
        with self.assertRaisesRegex((AttributeError, Exception), "(?s)DataLoader worker process 0.*(pickle|local object)"):
            list(data.DataLoader(Squares(2), num_workers=1, collate_fn=lambda batch: lambda: 0))

    def test_requests_larger_than_a_pipe_do_not_stall(self):
        loader = data.DataLoader(data.TensorDataset(tenon.arange(120000)), batch_size=60000, num_workers=2,
                                 collate_fn=lambda rows: tenon.stack([row[0] for row in rows]))
        self.assertEqual([len(batch) for batch in loader], [60000, 60000])

    def test_bad_options_are_refused_in_the_references_words(self):
        for options, text in (
                ({"num_workers": -1}, "num_workers option should be non-negative"),
                ({"timeout": -1}, "timeout option should be non-negative"),
                ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
                ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
                ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
                ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive with"),
                ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
                ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0")):
            with self.subTest(**options), self.assertRaisesRegex(ValueError, text):
                data.DataLoader(Squares(4), **options)
        with self.assertRaisesRegex(ValueError, "DataLoader with IterableDataset: expected unspecified shuffle option"):
            data.DataLoader(Stream(3), shuffle=True)
        loader = data.DataLoader(Squares(4))
        with self.assertRaisesRegex(ValueError, "batch_size attribute should not be set after DataLoader is initialized"):
            loader.batch_size = 3

    def test_lengths_count_batches(self):
        self.assertEqual(len(data.DataLoader(Squares(10), batch_size=3)), 4)
        self.assertEqual(len(data.DataLoader(Squares(10), batch_size=3, drop_last=True)), 3)
        with self.assertRaises(TypeError):
            len(data.DataLoader(Stream(10)))

    def test_spawned_workers_serve_too(self):
        loader = data.DataLoader(data.TensorDataset(tenon.arange(6)), batch_size=2, num_workers=1,
                                 multiprocessing_context="spawn")
        self.assertEqual([batch.tolist() for batch, in loader], [[0, 1], [2, 3], [4, 5]])

    def test_loaders_from_elsewhere_are_made_of_its_parts(self):
        from tenon.utils.data import _utils, dataloader

        class Counting(dataloader._BaseDataLoaderIter):
            def __init__(self, loader):
                super().__init__(loader)
                self.fetcher = data._DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation,
                                                                self._collate_fn, self._drop_last)

            def _next_data(self):
                keys = self._next_index()
                batch = self.fetcher.fetch(keys)
                return keys, (batch[1] if isinstance(batch, list) else batch).tolist()

        class Mine(data.DataLoader):
            def _get_iterator(self):
                return Counting(self)

        loader = Mine(Squares(5), batch_size=2)
        epoch = iter(loader)
        self.assertEqual(next(epoch), ([0, 1], [0, 1]))
        epoch._reset(loader)
        self.assertEqual((list(epoch), epoch._num_yielded, epoch._num_workers),
                         ([([0, 1], [0, 1]), ([2, 3], [4, 9]), ([4], [16])], 3, 0))
        stream = iter(Mine(Stream(3), batch_size=2))
        self.assertEqual([batch for _, batch in stream], [[0, 1], [2]])
        self.assertTrue(stream.fetcher.ended)
        self.assertEqual(list(stream.fetcher.dataset_iter), [])
        self.assertTrue(_utils.worker.ManagerWatchdog().is_alive())
        self.assertEqual(_utils.worker._IterableDatasetStopIteration(1).worker_id, 1)
        self.assertIs(_utils.python_exit_status, False)
        _utils.signal_handling._set_SIGCHLD_handler()

    def test_pipes_take_their_share(self):
        self.assertEqual(sorted(data.DataLoader(Twice(Shared(6)), batch_size=None, num_workers=2)),
                         [0, 2, 4, 6, 8, 10])
        self.assertEqual(list(data.DataLoader(Twice(Shared(3)), batch_size=None)), [0, 2, 4])

    def test_exceptions_travel_as_text(self):
        import pickle
        from tenon._utils import ExceptionWrapper
        try:
            raise KeyError("k")
        except KeyError:
            held = ExceptionWrapper(where="in thread 3")
        for one in (held, pickle.loads(pickle.dumps(held))):
            with self.assertRaisesRegex(KeyError, r"^Caught KeyError in thread 3.\nOriginal Traceback (.|\n)*KeyError: 'k'"):
                one.reraise()

        class Local(ValueError):
            pass
        held = ExceptionWrapper((Local, Local("l"), None))
        self.assertRaisesRegex(Local, "^Caught Local in background.", held.reraise)
        self.assertRaisesRegex(RuntimeError, "Local: l", pickle.loads(pickle.dumps(held)).reraise)

    def test_nothing_is_left_running(self):
        numbers(data.DataLoader(Squares(4), num_workers=2))
        self.assertEqual([p for p in multiprocessing.active_children() if p.name.startswith("Fork") and
                          p.exitcode is not None], [])


if __name__ == "__main__":
    harness.main()
