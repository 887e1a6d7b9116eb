# SPDX-License-Identifier: MIT
"""SummaryWriter: scalars, histograms, images and text into event files that TensorBoard reads. Pure Python."""

import math
import numbers
import os
import socket
import struct
import threading
import time
import weakref
import zlib

import tenon
from tenon.utils.tensorboard import record
from tenon.utils.tensorboard.more import MoreSummaries

__all__ = ["FileWriter", "SummaryWriter"]


class _EventFile:
    """A file, and the records that wait to be written to it. It knows nothing of the writer, which closes it when it
    goes away, at the latest when the process ends."""

    def __init__(self, path, max_queue, flush_secs):
        self._path, self._max, self._seconds = path, max_queue, flush_secs
        self._process, self._lock, self._waiting = os.getpid(), threading.Lock(), []
        self._file, self._last = open(path, "ab"), time.monotonic()

    def add(self, frame):
        with self._lock:
            if self._file is None:
                self._file = open(self._path, "ab")
            self._waiting.append(frame)
            if len(self._waiting) >= self._max or time.monotonic() - self._last > self._seconds:
                self._write()

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

    def end(self):
        """Close it. What waits in a process that was forked is the other's to write."""
        if os.getpid() != self._process:
            self._waiting.clear()
        self.close()


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
        self._out = _EventFile(os.path.join(self.log_dir, name), max_queue, flush_secs)
        weakref.finalize(self, self._out.end)
        self._out.add(record.frame(record.event(time.time(), file_version="brain.Event:2")))
        self.flush()

    def get_logdir(self):
        return self.log_dir

    def add_event(self, event):
        """Take the bytes of an Event."""
        self._out.add(record.frame(event))

    def add_summary(self, summary, global_step=None, walltime=None):
        self.add_event(record.event(time.time() if walltime is None else walltime, global_step, summary))

    def flush(self):
        self._out.flush()

    def close(self):
        self._out.close()


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
        """How values are distributed: counts between the edges of bins, from the first to the last that has any."""
        numbers = _numbers(values)
        if numbers.numel() == 0:
            raise ValueError("The input has no element.")
        if isinstance(bins, int):
            edges = _even_edges(numbers, bins)
        else:
            edges = _edges() if isinstance(bins, str) else tenon.as_tensor(bins).to(tenon.float64)
        counts = _counts(numbers, edges)
        if max_bins is not None and len(counts) > max_bins:
            step = len(counts) // max_bins
            counts = tenon.nn.functional.pad(counts, (0, -len(counts) % step)).view(-1, step).sum(1)
            edges = tenon.cat([edges[:-1:step], edges[-1:]])
        some = counts.nonzero().flatten().tolist()
        if not some:
            raise ValueError("The histogram is empty, please file a bug report.")
        first, last = some[0], some[-1]
        self.add_histogram_raw(tag, numbers.min().item(), numbers.max().item(), numbers.numel(), numbers.sum().item(),
                               numbers.dot(numbers).item(), edges[first:last + 2].tolist(),
                               [0] + counts[first:last + 1].tolist(), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None,  # noqa: A002
                          walltime=None):
        """A distribution that is known: right edges of bins, and how many values lie in each."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self.file_writer.add_summary(
            record.histogram(_clean(tag), min, max, num, sum, sum_squares, [float(x) for x in bucket_limits],
                             [float(x) for x in bucket_counts]), global_step, walltime)

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
    """One number, however it is wrapped."""
    if hasattr(value, "item") and hasattr(value, "ndim"):
        size = math.prod(value.shape)
        if size != 1:
            raise AssertionError("Tensor should contain one element (0 dimensions). Was given size: %d and %d dimensions."
                                 % (size, sum(n != 1 for n in value.shape)))
        return float(value.item())
    if not isinstance(value, (numbers.Number, str, bytes)):
        raise NotImplementedError("Got %s, but numpy array or torch tensor are expected." % type(value))
    return float(value)


def _numbers(values):
    """The values, in one row."""
    values = values.detach() if isinstance(values, tenon.Tensor) else tenon.as_tensor(values)
    return values.cpu().to(tenon.float64).reshape(-1)


def _edges():
    """TensorBoard's usual bins: 10 % wider each, on both sides of 0."""
    positive, value = [], 1e-12
    while value < 1e20:
        positive.append(value)
        value *= 1.1
    return tenon.tensor([-value for value in reversed(positive)] + [0.0] + positive, dtype=tenon.float64)


def _even_edges(numbers, count):
    low, high = numbers.min(), numbers.max()
    if low == high:
        low, high = low - 0.5, high + 0.5
    return tenon.linspace(low.item(), high.item(), count + 1, dtype=tenon.float64)


def _counts(numbers, edges):
    """How many lie in each bin, which has its left edge; the last has both. What lies outside is not counted."""
    bins = len(edges) - 1
    at = tenon.searchsorted(edges, numbers, right=True) - 1
    at = tenon.where(numbers == edges[-1], bins - 1, at)
    return tenon.bincount(at[(at >= 0) & (at < bins)], minlength=bins)


def _pixels(picture, layout):
    """Height, width, and rows of RGB bytes, from bytes or from numbers between 0 and 1."""
    picture = picture.detach() if isinstance(picture, tenon.Tensor) else tenon.as_tensor(picture)
    layout = layout.upper()
    if layout == "HW":
        picture = picture.unsqueeze(-1)
    elif layout == "CHW":
        picture = picture.permute(1, 2, 0)
    elif layout != "HWC":
        raise ValueError("dataformats must be CHW, HWC or HW, but got %s" % layout)
    if picture.is_floating_point():
        picture = picture.to(tenon.float32) * 255
    height, width, channels = picture.shape
    picture = picture.clamp(0, 255).to(tenon.uint8)
    picture = picture[:, :, :3] if channels >= 3 else picture[:, :, :1].expand(height, width, 3)
    flat = bytes(picture.flatten().tolist())
    return height, width, [flat[y * width * 3:(y + 1) * width * 3] for y in range(height)]


def _png(height, width, rows):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + part(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + part(b"IEND", b""))
