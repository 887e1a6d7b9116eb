# SPDX-License-Identifier: MIT
"""A profiler with a schedule: which steps to measure, and what to do with the result."""

from enum import Enum
import os
import time

from tenon.autograd import profiler as _profiler
from tenon.autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """What to look at. There is the CPU; the others are accepted and have no events."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    return {ProfilerActivity.CPU}


def kineto_available():
    return False


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """For each step: skip, then in turns wait, warm up, and record; the last one recorded is saved."""
    def action(step):
        if step < 0:
            raise AssertionError("Step must be non-negative. Got %d." % step)
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        length = wait + warmup + active
        if skip_first_wait != 0:
            step += wait
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    if wait < 0 or warmup < 0 or active < 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments. Got wait=%d (need >= 0), warmup=%d (need >= 0), "
                             "active=%d (need > 0), repeat=%d (need >= 0), skip_first=%d (need >= 0)."
                             % (wait, warmup, active, repeat, skip_first))
    return action


def _default_schedule_fn(step):
    """Every step is recorded."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready: writes each trace into the folder."""
    def handler(prof):
        import socket
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or "%s_%d" % (socket.gethostname(), os.getpid())
        end = ".json.gz" if use_gzip else ".json"
        prof.export_chrome_trace(os.path.join(dir_name, "%s.%d.pt.trace%s" % (name, time.time_ns(), end)))
    return handler


class profile:
    """Measures the steps that the schedule names, or all; `step()` ends one."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False, experimental_config=None,
                 execution_trace_observer=None, acc_events=False, use_cuda=None, custom_trace_id_callback=None,
                 post_processing_timeout_s=None):
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready, self.record_shapes, self.profile_memory = on_trace_ready, record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self._metadata = {}
        self.step_num = 0
        self.profiler = None
        self._range = None

    def start(self):
        try:
            self.current_action = self.schedule(self.step_num)
            self._go()
        except BaseException:
            self._abandon()
            raise

    def _go(self):
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            if self.profiler is None or self._done:
                self.profiler = _profiler.profile(record_shapes=self.record_shapes, profile_memory=self.profile_memory,
                                                  with_stack=self.with_stack, with_flops=self.with_flops)
                self.profiler.metadata = self._metadata
                self.profiler.__enter__()
                self._done = False
            if self.record_steps:
                self._range = record_function("ProfilerStep#%d" % self.step_num)
                self._range.__enter__()

    _done = True

    def _end_range(self):
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def _finish(self):
        if not self._done:
            self.profiler.__exit__(None, None, None)
            self._done = True
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self):
        """One step is over."""
        self._end_range()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before == ProfilerAction.RECORD_AND_SAVE:
            self._finish()
        self._go()

    def stop(self):
        try:
            self._end_range()
            self._finish()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self):
        if self.profiler is not None:
            self.profiler._abandon()
            self._done = True

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()
        return False

    def events(self):
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        return self.profiler.function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        self.events()
        self.profiler.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self.profiler.export_stacks(path, metric)

    def add_metadata(self, key, value):
        """A text beside the events of the trace."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """The same with a value in JSON."""
        import json
        self._metadata[key] = json.loads(value)

    def toggle_collection_dynamic(self, enable, activities):
        raise NotImplementedError("toggle_collection_dynamic: a recording cannot be interrupted; use a schedule, "
                                  "or one profile for each part")

    def export_memory_timeline(self, path, device=None):
        raise NotImplementedError(
            "export_memory_timeline: memory is not told apart by category (parameters, activations, gradients). With "
            "profile_memory=True, the bytes in use over time are the counter 'tensor bytes' of "
            "export_chrome_trace('trace.json') and a lane of the page that export_chrome_trace('trace.html') writes, and "
            "cpu_memory_usage of each event is what it allocated")
