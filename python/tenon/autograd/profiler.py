# SPDX-License-Identifier: MIT
"""A profiler of what Python calls: each call of a function or method of a tensor, and ranges that record_function names.

It sees calls as a mode of __torch_function__ sees them, on the thread that profiles. What an operator calls inside, and
backward as a whole, is part of the call that made it.
"""

from contextlib import ContextDecorator
import json
import os
import threading
import time

import tenon

__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]

_active = threading.local()


class FunctionEvent:
    """A call, or the sum of calls of one name. Times are in microseconds."""

    def __init__(self, key, start, shapes=()):
        self.key = self.name = key
        self.start, self.end = start, start
        self.inner = 0.0
        self.count = 1
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes = list(shapes)
        self.thread = threading.get_ident()
        self.device_time_total = self.self_device_time_total = self.cuda_time_total = self.self_cuda_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.device_memory_usage = 0
        self.flops = 0
        self.stack = []

    def close(self, end):
        self.end = end
        self.cpu_time_total = (end - self.start) * 1e6
        self.self_cpu_time_total = self.cpu_time_total - self.inner

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count

    cuda_time = device_time = 0.0

    def __repr__(self):
        return "<FunctionEventAvg key=%s self_cpu_time=%s cpu_time=%s >" % (
            self.key, _text(self.self_cpu_time_total), _text(self.cpu_time))


def _text(microseconds):
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= limit:
            return "%.3f%s" % (microseconds / limit, unit)
    return "%.3fus" % microseconds


class EventList(list):
    """Events, with a table and a trace."""

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        sums = {}
        for event in self:
            name = (event.key, str(event.input_shapes) if group_by_input_shape else "")
            found = sums.get(name)
            if found is None:
                found = sums[name] = FunctionEvent(event.key, event.start, event.input_shapes)
                found.count = 0
            found.count += event.count
            found.cpu_time_total += event.cpu_time_total
            found.self_cpu_time_total += event.self_cpu_time_total
        return EventList(sums.values())

    def total_average(self):
        total = FunctionEvent("Total", 0.0)
        total.count = sum(event.count for event in self)
        total.cpu_time_total = total.self_cpu_time_total = self.self_cpu_time_total
        return total

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None):
        """Columns as PyTorch's table has them for the CPU."""
        rows = list(self)
        if sort_by is not None:
            # There is no device: what is sorted by its time is sorted by the CPU's.
            name = str(sort_by).replace("cuda", "cpu").replace("device", "cpu")
            rows.sort(key=lambda event: getattr(event, name, 0), reverse=True)
        total = self.self_cpu_time_total or 1.0
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        wide = min(max_name_column_width, max([len(event.key) for event in rows[:row_limit]] + [len("Name")]) + 4)
        line = "  ".join(["-" * wide] + ["-" * 12] * 6) + "  "
        out = [line, "  ".join([columns[0].rjust(wide)] + [c.rjust(12) for c in columns[1:]]) + "  ", line]
        for event in rows[:row_limit]:
            cells = ["%.2f%%" % (100 * event.self_cpu_time_total / total), _text(event.self_cpu_time_total),
                     "%.2f%%" % (100 * event.cpu_time_total / total), _text(event.cpu_time_total),
                     _text(event.cpu_time), str(event.count)]
            out.append("  ".join([event.key[:wide].rjust(wide)] + [cell.rjust(12) for cell in cells]) + "  ")
        out += [line, "Self CPU time total: " + _text(self.self_cpu_time_total), ""]
        return (header + "\n" if header else "") + "\n".join(out)

    def export_chrome_trace(self, path):
        """Write the events for chrome://tracing and Perfetto."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [
                {"name": event.key, "ph": "X", "cat": "cpu_op", "ts": event.start * 1e6, "dur": event.cpu_time_total,
                 "pid": os.getpid(), "tid": event.thread} for event in self]}, file)

    def __str__(self):
        return self.table()


class _Watch:
    """The mode that measures every call."""

    def __init__(self, owner):
        self.owner = owner

    def __torch_function__(self, function, types, args=(), kwargs=None):
        owner = self.owner
        name = getattr(function, "__name__", str(function))
        shapes = [list(a.shape) if isinstance(a, tenon.Tensor) else [] for a in args] if owner.record_shapes else ()
        owner._enter("aten::" + name, shapes)
        try:
            return function(*args, **(kwargs or {}))
        finally:
            owner._leave()


class profile:
    """Measures what is called inside."""

    def __init__(self, enabled=True, *, use_device=None, record_shapes=False, with_flops=False, profile_memory=False,
                 with_stack=False, with_modules=False, use_kineto=False, use_cpu=True, experimental_config=None,
                 acc_events=False, use_cuda=False, custom_trace_id_callback=None):
        self.enabled, self.record_shapes = enabled, record_shapes
        self._events, self._open = EventList(), []

    def _enter(self, name, shapes=()):
        self._open.append(FunctionEvent(name, time.perf_counter(), shapes))

    def _leave(self):
        event = self._open.pop()
        event.close(time.perf_counter())
        if self._open:
            self._open[-1].inner += event.cpu_time_total
        self._events.append(event)

    def __enter__(self):
        if self.enabled:
            self._outer = getattr(_active, "profile", None)
            if self._outer is not None:
                raise RuntimeError("Can't start a profiler when another one is running")
            _active.profile = self
            tenon._C._push_on_torch_function_stack(_Watch(self))
        return self

    def __exit__(self, *exception):
        if self.enabled:
            tenon._C._pop_torch_function_stack()
            _active.profile = None
            while self._open:
                self._leave()
            self._events.sort(key=lambda event: event.start)
        return False

    @property
    def function_events(self):
        return self._events

    def events(self):
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._events.key_averages(group_by_input_shape)

    def total_average(self):
        return self._events.total_average()

    def table(self, *args, **options):
        return self._events.table(*args, **options)

    def export_chrome_trace(self, path):
        self._events.export_chrome_trace(path)

    @property
    def self_cpu_time_total(self):
        return self._events.self_cpu_time_total

    def __str__(self):
        return self._events.table()


class record_function(ContextDecorator):
    """A range with a name, while a profiler runs; nothing otherwise."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        self._profile = getattr(_active, "profile", None)
        if self._profile is not None:
            self._profile._enter(self.name)
        return self

    def __exit__(self, *exception):
        if self._profile is not None and getattr(_active, "profile", None) is self._profile:
            self._profile._leave()
        return False


class emit_nvtx:
    """Marks for NVIDIA's profilers: nobody listens."""

    def __init__(self, enabled=True, record_shapes=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False
