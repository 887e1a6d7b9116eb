# SPDX-License-Identifier: MIT
"""SummaryWriter: scalars, histograms, images and text into event files that TensorBoard reads. Pure Python."""

import os
import socket
import struct
import sys
import threading
import time
import zlib

from tenon.utils.tensorboard import record
from tenon.utils.tensorboard.more import MoreSummaries

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file. Records are kept in memory and written when there are max_queue of them, every flush_secs
    seconds, and at the end."""

    _count = 0

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.log_dir = os.fspath(log_dir)
        os.makedirs(self.log_dir, exist_ok=True)
        name = "events.out.tfevents.%010d.%s.%d.%d%s" % (time.time(), socket.gethostname(), os.getpid(),
                                                        FileWriter._count, filename_suffix)
        FileWriter._count += 1
        self._path = os.path.join(self.log_dir, name)
        self._file = open(self._path, "ab")
        self._lock = threading.Lock()
        self._waiting, self._max, self._seconds = [], max_queue, flush_secs
        self._last = time.monotonic()
        self._waiting.append(record.frame(record.event(time.time(), file_version="brain.Event:2")))
        self.flush()

    def get_logdir(self):
        return self.log_dir

    def add_event(self, event):
        """Take the bytes of an Event."""
        with self._lock:
            if self._file is None:
                self._file = open(self._path, "ab")
            self._waiting.append(record.frame(event))
            if len(self._waiting) >= self._max or time.monotonic() - self._last > self._seconds:
                self._write()

    def add_summary(self, summary, global_step=None, walltime=None):
        self.add_event(record.event(time.time() if walltime is None else walltime, global_step, summary))

    def _write(self):
        self._file.write(b"".join(self._waiting))
        self._file.flush()
        self._waiting.clear()
        self._last = time.monotonic()

    def flush(self):
        with self._lock:
            if self._file is not None:
                self._write()

    def close(self):
        with self._lock:
            if self._file is not None:
                self._write()
                self._file.close()
                self._file = None


class SummaryWriter(MoreSummaries):
    """Writes to log_dir, or to runs/DATE_HOST."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.all_writers = {}
        self.file_writer = self._writer(self.log_dir)

    def _writer(self, folder):
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
        return self.all_writers[folder]

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def _get_file_writer(self):
        return self.file_writer

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """One number."""
        self.file_writer.add_summary(record.scalar(_clean(tag), _number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers that are shown in one picture."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            self._writer(folder).add_summary(record.scalar(_clean(main_tag), _number(value)), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are distributed."""
        numbers = sorted(_numbers(values))
        if not numbers:
            raise ValueError("The input has no element.")
        edges = _edges() if bins in ("tensorflow", "auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt") \
            else list(bins) if not isinstance(bins, int) else _even_edges(numbers, bins)
        limits, buckets, at = [], [], 0
        for edge in edges:
            count = 0
            while at < len(numbers) and numbers[at] < edge:
                count, at = count + 1, at + 1
            if count or limits:
                limits.append(edge)
                buckets.append(count)
            if at == len(numbers):
                break
        if at < len(numbers):
            limits.append(sys.float_info.max)
            buckets.append(len(numbers) - at)
        self.file_writer.add_summary(
            record.histogram(_clean(tag), numbers[0], numbers[-1], len(numbers), sum(numbers),
                             sum(x * x for x in numbers), limits, buckets), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """One picture, from bytes or from numbers between 0 and 1."""
        height, width, rows = _pixels(img_tensor, dataformats)
        self.file_writer.add_summary(record.image(_clean(tag), height, width, 3, _png(height, width, rows)),
                                     global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Markdown."""
        self.file_writer.add_summary(record.text(_clean(tag), text_string), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters and the metrics that they gave, as a run of its own in a folder below."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        from tenon.utils.tensorboard.summary import hparams
        summaries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for summary in summaries:
                writer.file_writer.add_summary(summary)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The model's structure, as text."""
        self.add_text("model", "\n".join("    " + line for line in repr(model).splitlines()))

    def flush(self):
        """Write what is waiting."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self):
        """Write what is waiting and close the files. A later call opens them again."""
        for writer in self.all_writers.values():
            writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _clean(tag):
    return str(tag).lstrip("/")


def _number(value):
    return float(value.item() if hasattr(value, "item") else value)


def _numbers(values):
    if hasattr(values, "detach"):
        values = values.detach().reshape(-1).tolist()
    elif hasattr(values, "reshape"):
        values = values.reshape(-1).tolist()
    return [float(value) for value in values]


def _edges():
    """TensorBoard's usual bins: 10 % wider each, on both sides of 0."""
    positive, value = [], 1e-12
    while value < 1e20:
        positive.append(value)
        value *= 1.1
    return [-value for value in reversed(positive)] + [0.0] + positive


def _even_edges(numbers, count):
    width = (numbers[-1] - numbers[0]) / count or 1.0
    return [numbers[0] + width * (i + 1) for i in range(count)]


def _pixels(picture, layout):
    """Height, width, and rows of RGB bytes."""
    data = picture.detach().tolist() if hasattr(picture, "detach") else picture.tolist()
    whole = "int" in str(picture.dtype)

    def pixel(value):
        return max(0, min(255, int(value if whole else value * 255)))

    layout = layout.upper()
    if layout == "HW":
        data, layout = [data], "CHW"
    if layout == "CHW":
        channels = [data[0], data[0], data[0]] if len(data) == 1 else data[:3]
        height, width = len(data[0]), len(data[0][0])
        rows = [bytes(pixel(channel[y][x]) for x in range(width) for channel in channels) for y in range(height)]
    elif layout == "HWC":
        height, width = len(data), len(data[0])
        rows = [bytes(pixel(point[min(c, len(point) - 1)]) for point in row for c in range(3)) for row in data]
    else:
        raise ValueError("dataformats must be CHW, HWC or HW, but got %s" % layout)
    return height, width, rows


def _png(height, width, rows):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + part(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + part(b"IEND", b""))
