# SPDX-License-Identifier: MIT
"""Timer, as timeit.Timer with a median over blocks; Measurement, what it found; Compare, a table of several."""

import enum
import statistics
import time
import timeit

__all__ = ["Compare", "Measurement", "Timer", "timer"]

timer = time.perf_counter
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def select_unit(seconds):
    """The unit that fits: (name, its length in seconds)."""
    for length, name in _UNITS:
        if seconds >= length:
            return name, length
    return "ns", 1e-9


class Measurement:
    """Seconds of several runs of a statement."""

    def __init__(self, number_per_run, raw_times, label=None, sub_label=None, description=None, env=None, num_threads=1,
                 stmt="pass"):
        self.number_per_run, self.raw_times = number_per_run, list(raw_times)
        self.label, self.sub_label, self.description, self.env = label, sub_label, description, env
        self.num_threads, self.stmt = num_threads, stmt

    @property
    def times(self):
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def iqr(self):
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self):
        return self.iqr > 0.25 * self.median

    @property
    def title(self):
        title = self.label or self.stmt
        return title + (": " + self.sub_label if self.sub_label else "")

    def __repr__(self):
        name, unit = select_unit(self.median)
        lines = ["<%s.%s object at 0x%x>" % (type(self).__module__, type(self).__name__, id(self)), self.title]
        if len(self.raw_times) > 1:
            lines.append("  Median: %.2f %s" % (self.median / unit, name))
            lines.append("  IQR:    %.2f %s" % (self.iqr / unit, name))
        else:
            lines.append("  %.2f %s" % (self.median / unit, name))
        lines.append("  %d measurement%s, %d runs %s, %d thread%s"
                     % (len(self.raw_times), "s" if len(self.raw_times) > 1 else "", self.number_per_run,
                        "per measurement" if len(self.raw_times) > 1 else "", self.num_threads,
                        "s" if self.num_threads > 1 else ""))
        return "\n".join(lines)


def _dedent(text):
    """Statements as they stand in a program: without the empty lines and the margin around them."""
    import textwrap
    return textwrap.dedent(text).strip("\n ")


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, with num_threads threads."""

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None,
                 sub_label=None, description=None, env=None, num_threads=1, language="python"):
        if language not in (Language.PYTHON, "py", "python"):
            if language not in (Language.CPP, "cpp", "c++"):
                raise ValueError("Invalid language `%s`." % (language,))
            raise NotImplementedError("Timer measures Python statements, not C++")
        stmt, setup = (_dedent(text) if isinstance(text, str) else text for text in (stmt, setup))
        names = dict(globals or {})
        import tenon
        names.setdefault("torch", tenon)
        names.setdefault("tenon", tenon)
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._stmt, self._num_threads = stmt, num_threads
        self._about = dict(label=label, sub_label=sub_label, description=description, env=env, num_threads=num_threads,
                           stmt=stmt)

    def _time(self, number):
        import tenon
        before = tenon.get_num_threads()
        tenon.set_num_threads(self._num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            tenon.set_num_threads(before)

    def timeit(self, number=1000000):
        """One measurement of `number` runs."""
        self._time(max(number // 100, 2))
        return Measurement(number, [self._time(number)], **self._about)

    def _block(self, shortest):
        """How often to run so that one measurement takes long enough."""
        number = 1
        while True:
            seconds = self._time(number)
            if seconds >= shortest or number >= 1000000:
                return number
            number = min(max(number * 2, int(number * shortest / seconds)), number * 10)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements until min_run_time seconds are over."""
        number = self._block(min_run_time / 1000)
        times, total = [], 0.0
        while total < min_run_time or len(times) < 2:
            seconds = self._time(number)
            times.append(seconds)
            total += seconds
            if callback is not None:
                callback(number, seconds)
        return Measurement(number, times, **self._about)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measurements until they agree within the threshold."""
        number, times, total = self._block(0.05 / 1000), [], 0.0
        while total < max_run_time:
            seconds = self._time(number)
            times.append(seconds)
            total += seconds
            if callback is not None:
                callback(number, seconds)
            if total > min_run_time and len(times) >= 4:
                found = Measurement(number, times, **self._about)
                if found.iqr < threshold * found.median:
                    break
        return Measurement(number, times, **self._about)


_WORDS = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}


def _first_of_each(items):
    return list(dict.fromkeys(items))


class Compare:
    """Tables of medians, one for each label: a row for each number of threads, env and sub_label, a column for each description."""

    def __init__(self, results):
        self._results = list(results)

    def extend_results(self, results):
        self._results.extend(results)

    def trim_significant_figures(self):
        pass

    def colorize(self, rowwise=False):
        pass

    def highlight_warnings(self):
        pass

    def __str__(self):
        labels = _first_of_each(one.label for one in self._results)
        return "\n".join(_table(label, [one for one in self._results if one.label == label]) for label in labels)

    def print(self):
        print(str(self))


def _table(label, results):
    unit, length = select_unit(min(one.median for one in results))
    rows = sorted(_first_of_each((one.num_threads, one.env or "", one.sub_label or one.stmt) for one in results),
                  key=lambda row: row[:2])
    columns = _first_of_each(one.description for one in results)
    cells = {(one.num_threads, one.env or "", one.sub_label or one.stmt, one.description): "%.1f" % (one.median / length)
             for one in results}
    named = len({env for _, env, _ in rows}) > 1
    wide = max(len(env) for _, env, _ in rows) + 4 if named else 4
    names = ["  " + ("(%s)" % env if named else "").ljust(wide) + name for _, env, name in rows]
    texts = [[cells.get(row + (column,), "") for column in columns] for row in rows]
    widths = [max(len(name) for name in names)]
    for i, column in enumerate(columns):
        digits = max(len(text[i]) for text in texts)
        for text in texts:
            text[i] = text[i].rjust(digits)
        widths.append(max(digits, len(column or "")))
    lines = ["  |  ".join(text.center(width) for text, width in zip([""] + [c or "" for c in columns], widths))]
    whole, threads = len(lines[0]), None
    for row, name, text in zip(rows, names, texts):
        if row[0] != threads:
            threads = row[0]
            lines.append(("%d threads: " % threads).ljust(whole, "-"))
        lines.append("  |  ".join([name.ljust(widths[0])] + [t.center(width) for t, width in zip(text, widths[1:])]))
    title = "[%s]" % (" %s " % (label or "")).center(whole - 2, "-")
    return "%s\n%s\n\nTimes are in %s.\n" % (title, "\n".join(lines), _WORDS[unit])
