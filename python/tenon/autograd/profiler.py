# SPDX-License-Identifier: MIT
"""The profiler: what ran, how often, for how long. Recording is the core's; here is what users ask of it."""
import functools

from tenon import _C, _place, _python_stack

__all__ = ["profile", "record_function", "FunctionEvent", "FunctionEventAvg", "EventList", "emit_nvtx", "emit_itt"]

_CALL, _REDISPATCH, _BACKWARD, _RANGE = range(4)
_METRICS = ["self_cpu_time_total", "self_cuda_time_total"]


def _time_text(us):
    """Microseconds as people read them."""
    if us >= 1e6:
        return "%.3fs" % (us / 1e6)
    return "%.3fms" % (us / 1e3) if us >= 1e3 else "%.3fus" % us


def _bytes_text(n):
    for factor, unit in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if abs(n) >= factor:
            return "%.2f %s" % (n / factor, unit)
    return "%d B" % n


def _shortened(place, width):
    """The end of a place, which tells most."""
    return place if width is None or len(place) <= width else "..." + place[3 - width:]


def _shapes_of(text):
    """"float32[8, 16], float32[], int[2, 2]" as [[8, 16], []] and, of integers among the arguments, [[2, 2]]."""
    shapes, integers = [], []
    for item in text.split("]")[:-1]:
        dtype, _, sizes = item.lstrip(", ").partition("[")
        (integers if dtype == "int" else shapes).append([int(n) for n in sizes.split(",") if n])
    return shapes, integers


def _product(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def _flops_of(name, shapes, integers):
    """An estimate from the arguments: two for each multiplication and addition of a product, one for each element of a sum."""
    if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
        left, right = shapes[-2:] if len(shapes) >= 2 else ((), ())
        return 2 * _product(left) * right[-1] if left and right else 0
    if name == "aten::conv2d" and len(shapes) >= 2 and len(shapes[0]) == len(shapes[1]) == 4 and len(integers) == 4:
        # A padding that is a word is not among the integers: nothing is said then, as in torch.
        stride, padding, dilation, (groups,) = ([n] * 2 if len(n) == 1 and n is not integers[3] else n for n in integers)
        (batch, channels, *sizes), (out_channels, _, *kernel) = shapes[:2]
        out = [(sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)]
        return 2 * batch * channels * out_channels * _product(kernel) * _product(out) // groups
    return _product(shapes[0]) if name in ("aten::add", "aten::mul") and shapes else 0


class Interval:
    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class _Times:
    """What an event and an average of events both say: each time as text, too; of a device, nothing."""

    device_time = device_time_total = self_device_time_total = 0
    cuda_time = cuda_time_total = self_cuda_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    flops = 0
    is_async = is_remote = is_legacy = False
    node_id = -1
    use_device = None


for _name in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total",
              "self_device_time_total"):
    setattr(_Times, _name + "_str", property(lambda self, name=_name: _time_text(getattr(self, name))))


class FunctionEvent(_Times):
    """One event; times are in microseconds."""

    def __init__(self, id, record):
        (kind, self.name, shapes, kernel, start, duration, own, self.thread, self.depth, self.parent, seq,
         self.memory) = record
        self.overload_name = ""
        if kind in (_CALL, _REDISPATCH):  # torch's events have the operator's name alone
            self.name, _, self.overload_name = self.name.partition(".")
        self.kernels = [kernel] if kernel else []  # with_stack: those that it went through, "name (file:line)"
        self.stack = []  # with_stack: the Python functions around it, innermost first, "file(line): name"
        self.id, self.sequence_nr, self.kind = id, seq, kind
        self.time_range = Interval(start / 1e3, (start + duration) / 1e3)
        self.cpu_time_total = duration / 1e3
        self.self_cpu_time_total = own / 1e3
        self.input_shapes, self._integers = _shapes_of(shapes)
        self.is_user_annotation = kind == _RANGE
        self.cpu_children = []
        self.cpu_parent = None
        self.count = 1

    key = property(lambda self: self.name)
    cpu_time = property(lambda self: self.cpu_time_total)
    cpu_memory_usage = property(lambda self: self.memory)

    @property
    def self_cpu_memory_usage(self):
        """What it allocated itself, less what it freed: without the events inside."""
        return self.memory - sum(child.memory for child in self.cpu_children)

    def __repr__(self):
        return "<FunctionEvent id=%d name=%s cpu_time=%s thread=%s input_shapes=%s>" % (
            self.id, self.name, _time_text(self.cpu_time_total), self.thread, self.input_shapes)


class FunctionEventAvg(_Times):
    """All events of one name, and of one set of shapes where that was asked for."""

    def __init__(self, key):
        self.key, self.count = key, 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes, self.is_user_annotation = None, False
        self.flops, self.overload_name = 0, ""

    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    stack, cpu_parent = [], None

    def add(self, event):
        if not self.count:
            self.cpu_parent = event.cpu_parent
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        self.input_shapes = event.input_shapes
        self.is_user_annotation = event.is_user_annotation
        return self

    def __repr__(self):
        return ("<FunctionEventAvg key=%s self_cpu_time=%s cpu_time=%s  self_cuda_time=%s cuda_time=%s input_shapes=%s "
                "cpu_memory_usage=%d cuda_memory_usage=0>" % (
                    self.key, self.self_cpu_time_total_str, self.cpu_time_str, self.self_device_time_total_str,
                    self.device_time_str, self.input_shapes, self.cpu_memory_usage))


def _unit_text(us, unit):
    """Microseconds in a unit, or in the one that fits."""
    factor = {"s": 1e6, "ms": 1e3, "us": 1.0}.get(unit)
    return _time_text(us) if factor is None else "%.3f%s" % (us / factor, unit)


def _columns(events, memory, total, unit, max_name, max_shapes, max_source):
    """(head, width, text of an event) of each column of a table."""

    def at_most(width, limit):
        return width if limit is None else min(width, limit)

    def cut(name):
        name = _place.plain(name)
        return name if max_name is None or len(name) < max_name - 3 else name[:max_name - 3] + "..."

    def share(us):
        return "%.2f%%" % (us * 100.0 / total) if total else "NaN"

    width = at_most(max(len(e.key) for e in events) + 4, max_name)
    columns = [("Name", width, lambda e: cut(e.key))]
    if any(isinstance(e, FunctionEventAvg) and e.overload_name for e in events):
        columns.append(("Overload Name", width, lambda e: cut(e.overload_name)))
    plain = [("Self CPU %", lambda e: share(e.self_cpu_time_total)),
             ("Self CPU", lambda e: _unit_text(e.self_cpu_time_total, unit)),
             ("CPU total %", lambda e: share(e.cpu_time_total)),
             ("CPU total", lambda e: _unit_text(e.cpu_time_total, unit)),
             ("CPU time avg", lambda e: _unit_text(e.cpu_time, unit))]
    if memory:
        plain += [("CPU Mem", lambda e: _bytes_text(e.cpu_memory_usage)),
                  ("Self CPU Mem", lambda e: _bytes_text(e.self_cpu_memory_usage))]
    plain.append(("# of Calls", lambda e: str(e.count)))
    columns += [(head, 12, text) for head, text in plain]
    if any(e.input_shapes for e in events):
        shapes = at_most(max(len(str(e.input_shapes)) for e in events) + 4, max_shapes)
        columns.append(("Input Shapes", shapes, lambda e: str(e.input_shapes)[:shapes]))
    if any(e.flops > 0 for e in events):
        power, least = 0, min(e.flops for e in events if e.flops > 0)
        while power < 5 and least >= 1000 ** (power + 1):
            power += 1
        columns.append(("Total %sFLOPs" % "_KMGTP"[power].strip("_"), 12,
                        lambda e: "%8.3f" % (e.flops / 1000 ** power) if e.flops > 0 else "--"))
    places = [place for e in events for place in e.stack]
    if places:
        source = at_most(max(map(len, places)) + 4, max_source)
        columns.append(("Source Location", source, lambda e: _shortened(e.stack[0], source) if e.stack else ""))
    return columns


class EventList(list):
    """Events or averages, and ways to show them."""

    def __init__(self, items=(), profile=None, profile_memory=False):
        super().__init__(items)
        self._profile, self._profile_memory = profile, profile_memory

    @property
    def self_cpu_time_total(self):
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One line a name; sorted as they first appeared."""
        found = {}
        for e in self:
            stack = e.stack[:group_by_stack_n]
            overload = e.overload_name if group_by_overload_name else ""
            key = (e.key, overload, str(e.input_shapes) if group_by_input_shapes else "", *stack)
            if key not in found:
                found[key] = FunctionEventAvg(e.key)
                found[key].overload_name = overload
                found[key].stack = stack
            found[key].add(e)
        for average in found.values() if not group_by_input_shapes else ():
            average.input_shapes = ""  # those of one call would say nothing of the others
        return EventList(found.values(), self._profile, self._profile_memory)

    def total_average(self):
        total = FunctionEventAvg("Total")
        for e in self:
            total.add(e)
        return total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None):
        """The table as text, laid out as torch's."""
        if not self:
            return ""
        rows = list(self)
        if sort_by is not None:
            # There is no device: what is sorted by its time is sorted by the CPU's.
            attribute = str(sort_by).replace("cuda", "cpu").replace("device", "cpu")
            for e in rows:
                if not hasattr(e, attribute):
                    raise AttributeError("%r object has no attribute %r" % (type(e).__name__, str(sort_by)))
            rows.sort(key=lambda e: getattr(e, attribute), reverse=True)
        total = sum(e.self_cpu_time_total for e in self)
        columns = _columns(self, self._profile_memory, total, time_unit, max_name_column_width, max_shapes_column_width,
                           max_src_column_width)
        sources = columns[-1][0] == "Source Location"
        rule = "".join("-" * width + "  " for _, width, _ in columns)

        def line(cells):
            return "".join((text.ljust(width) if head == "Source Location" else text.rjust(width)) + "  "
                           for text, (head, width, _) in zip(cells, columns))

        double = "=" * (len(rule) - 2)
        lines = [] if header is None else [double, header]
        if top_level_events_only:
            lines += [double, "This report only display top-level ops statistics"]
            rows = [e for e in rows if e.cpu_parent is None]
        lines += [rule, line([head for head, _, _ in columns]), rule]
        for e in rows[:row_limit] if row_limit >= 0 else rows:
            lines.append(line([text(e) for _, _, text in columns]))
            if sources:
                rest = [_shortened(place, columns[-1][1]) for place in e.stack[1:]] + [""]
                lines += [line([""] * (len(columns) - 1) + [place]) for place in rest]
        return "\n".join(lines + [rule, "Self CPU time total: " + _unit_text(total, time_unit), ""])

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """A line for each event with a stack, outermost function first, and its time in microseconds: what makes flame graphs."""
        if metric not in _METRICS:
            raise ValueError("metric should be one of: " + str(_METRICS))
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for e in self:
                value = int(getattr(e, metric.replace("cuda", "device")))
                if e.stack and value > 0:
                    file.write(";".join(place.translate(blanks) for place in reversed(e.stack)) + " %d\n" % value)

    def export_chrome_trace(self, path):
        """A file that Perfetto and chrome://tracing open."""
        if self._profile is None:
            raise RuntimeError("there is no recording behind these events")
        _export(self._profile, path)

    def __str__(self):
        return self.table()


def _export(profile, path, metadata=()):
    """As a trace for Chrome; the core writes pages and tables too, by the ending of the name."""
    import json
    import os
    path = os.fspath(path)
    if path.endswith((".html", ".txt")):
        profile.write(path)
        return
    text = profile.trace(json.dumps(dict(metadata))[1:-1])
    if path.endswith(".gz"):
        import gzip
        with gzip.open(path, "wb", compresslevel=6) as target:
            target.write(text)
    else:
        with open(path, "wb") as target:
            target.write(text)


class profile:
    """Record what happens inside a with statement."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None):
        self.enabled = enabled
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes or with_flops, profile_memory, with_stack
        self.with_flops = with_flops
        self.metadata = {}  # for the trace, beside its events
        self.entered = False
        self._recording = self._python = None
        self.function_events = None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = self._runs = True  # before it does: Ctrl+C may come as soon as it runs
        try:
            try:
                _C._profiler_start(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
            except Exception:
                self._runs = False
                raise
            if self.with_stack:
                self._python = _python_stack.PythonStacks()
                self._python.start()
        except BaseException:
            self._abandon()
            raise
        return self

    _runs = False

    def _abandon(self):
        """Nobody will end this recording: it would be in the way of every other."""
        if self._runs:
            self._runs = False
            if _C._profiler_running():
                _C._profiler_stop()
            if self._python is not None:
                self._python.stop()

    __del__ = _abandon

    def __exit__(self, *args):
        if not self.enabled:
            return False
        try:
            if self._python is not None:
                self._python.stop()
            self._runs, self._recording = False, _C._profiler_stop()
        except BaseException:
            self._abandon()
            raise
        events = [FunctionEvent(i, r) for i, r in enumerate(self._recording.events())]
        for e in events if self.with_flops else ():
            e.flops = _flops_of(e.name, e.input_shapes, e._integers)
        if self._python is not None:
            for e, stack in zip(events, self._python.around(events)):
                e.stack = stack
        for e in events:  # parents come first
            e.cpu_parent = events[e.parent] if e.parent >= 0 else None
            if e.cpu_parent is not None and self._is_told(e.cpu_parent):
                e.cpu_parent = e.cpu_parent.cpu_parent
            if e.cpu_parent is None:
                continue
            if self._is_told(e):
                e.cpu_parent.self_cpu_time_total += e.self_cpu_time_total
                e.cpu_parent.kernels += e.kernels
            else:
                e.cpu_parent.cpu_children.append(e)
        self.function_events = EventList([e for e in events if not self._is_told(e)], self._recording,
                                         self.profile_memory)
        return False

    def _is_told(self, event):
        """Is it no event of its own, but told of by others: a redispatch, or a Python function?"""
        return event.kind == _REDISPATCH or (self._python is not None and self._python.made(event))

    def _check_finished(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")

    def events(self):
        self._check_finished()
        return self.function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        self._check_finished()
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        self._check_finished()
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        self._check_finished()
        return self.function_events.self_cpu_time_total

    def table(self, sort_by=None, row_limit=100, **kwargs):
        self._check_finished()
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **kwargs)

    def export_chrome_trace(self, path):
        self._check_finished()
        _export(self._recording, path, self.metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._check_finished()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)


class record_function:
    """A range of one's own in the recording: a with statement, or in front of a function."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        _python_stack.range_begin(self.name)
        return self

    def __exit__(self, *args):
        _python_stack.range_end()

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with record_function(self.name):
                return fn(*args, **kwargs)
        return wrapper


class emit_nvtx:
    """Accepted: there is no NVTX here."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False


class emit_itt(emit_nvtx):
    """Accepted: there is no ITT here."""
