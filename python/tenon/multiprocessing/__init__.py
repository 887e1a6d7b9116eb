# SPDX-License-Identifier: MIT
"""Python's multiprocessing, and `spawn`, which runs one function in several processes."""

import multiprocessing as _python
from multiprocessing import *  # noqa: F401,F403
import signal as _signal
import sys as _sys

from tenon.multiprocessing import reductions  # noqa: F401

__all__ = list(_python.__all__) + ["ProcessContext", "ProcessException", "ProcessExitedException",
                                   "ProcessRaisedException", "get_all_sharing_strategies", "get_sharing_strategy",
                                   "set_sharing_strategy", "spawn", "start_processes"]

get_context = _python.get_context
set_start_method = _python.set_start_method
get_start_method = _python.get_start_method


def set_sharing_strategy(new_strategy):
    """There is one way to share: by file."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError("%r is not one of %s" % (new_strategy, get_all_sharing_strategies()))


def get_sharing_strategy():
    return "file_system"


def get_all_sharing_strategies():
    return {"file_descriptor", "file_system"}


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""


class ProcessExitedException(ProcessException):
    """A process was killed, or left with a code that is not 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(function, index, args, pipe):
    """What a child does. An exception travels to the parent as text."""
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback
        pipe.send(traceback.format_exc())
        pipe.close()
        _sys.exit(1)


class ProcessContext:
    """Processes that run, and what became of them."""

    def __init__(self, processes, pipes):
        self.processes = processes
        self._pipes = pipes

    def pids(self):
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """True when all are done; False when the time is over. The first failure ends the others and is raised."""
        from multiprocessing import connection
        waiting = [process.sentinel for process in self.processes if process.exitcode is None]
        if waiting:
            connection.wait(waiting, timeout)
        failed = next((i for i, process in enumerate(self.processes) if process.exitcode not in (None, 0)), None)
        if failed is None:
            done = all(process.exitcode == 0 for process in self.processes)
            if done:
                for process in self.processes:
                    process.join()
            return done
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period if grace_period is not None else 30)
            if process.is_alive():
                process.kill()
                process.join()
        process = self.processes[failed]
        if self._pipes[failed].poll():
            text = self._pipes[failed].recv()
            raise ProcessRaisedException("\n\n-- Process %d terminated with the following error:\n%s" % (failed, text),
                                         failed, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = _signal.Signals(-code).name
            except ValueError:
                name = "<Unknown signal %d>" % -code
            raise ProcessExitedException("process %d terminated with signal %s" % (failed, name), failed, process.pid,
                                         code, name)
        raise ProcessExitedException("process %d terminated with exit code %d" % (failed, code), failed, process.pid,
                                     code)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", numa_options=None):
    """Run fn(i, *args) in nprocs processes. Returns a ProcessContext when they are not joined."""
    context = _python.get_context(start_method)
    processes, pipes = [], []
    for i in range(nprocs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        pipes.append(ours)
    running = ProcessContext(processes, pipes)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in nprocs fresh processes, and wait for them."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def __getattr__(name):
    return getattr(_python, name)
