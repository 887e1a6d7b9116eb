# SPDX-License-Identifier: MIT
"""CUDA as a machine without a GPU answers: nothing is there, seeds and caches are accepted, devices are refused."""

from contextlib import contextmanager
import sys

import tenon
from tenon._lazy import lazy_modules
from tenon._typing import Any as _Any

_TEXT = "Torch not compiled with CUDA enabled"

default_generators = ()
has_half = True
has_magma = False
OutOfMemoryError = getattr(tenon, "OutOfMemoryError", RuntimeError)


def _refuse():
    raise AssertionError(_TEXT)


def is_available():
    """Whether a CUDA device can be used."""
    return False


_initialized = False


def is_initialized():
    return False


def is_built():
    return False


def device_count():
    """How many devices there are."""
    return 0


def is_bf16_supported(including_emulation=True):
    return False


def is_tf32_supported():
    return False


def get_arch_list():
    return []


def get_gencode_flags():
    return ""


def get_device_arch_list():
    return []


def init():
    _refuse()


def current_device():
    _refuse()


def set_device(device):
    """Refused, unless the device is a negative number, which means none."""
    if isinstance(device, int) and device < 0:
        return
    _refuse()


def synchronize(device=None):
    _refuse()


def get_device_name(device=None):
    _refuse()


def get_device_capability(device=None):
    _refuse()


def get_device_properties(device=None):
    _refuse()


def current_stream(device=None):
    _refuse()


def default_stream(device=None):
    _refuse()


def current_blas_handle():
    _refuse()


def can_device_access_peer(device, peer_device):
    _refuse()


def utilization(device=None):
    _refuse()


def temperature(device=None):
    _refuse()


def power_draw(device=None):
    _refuse()


def clock_rate(device=None):
    _refuse()


def is_current_stream_capturing():
    return False


def get_sync_debug_mode():
    return 0


def set_sync_debug_mode(debug_mode):
    pass


# Seeds are taken, as long before a device is there.


def manual_seed(seed):
    """Nothing to seed."""
    int(seed)


def _lazy_call(callable, **kwargs):
    """For when CUDA starts, which it never does: packages that keep random states of their own put these off."""


def manual_seed_all(seed):
    """Nothing to seed."""
    int(seed)


def seed():
    pass


def seed_all():
    pass


def initial_seed():
    _refuse()


def get_rng_state(device="cuda"):
    _refuse()


def get_rng_state_all():
    return []


def set_rng_state(new_state, device="cuda"):
    _refuse()


def set_rng_state_all(new_states):
    for state in new_states:
        set_rng_state(state)


# Memory: there is none, and none is used.


def empty_cache():
    pass


def ipc_collect():
    pass


def memory_allocated(device=None):
    return 0


def max_memory_allocated(device=None):
    return 0


def memory_reserved(device=None):
    return 0


def max_memory_reserved(device=None):
    return 0


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device=None):
    pass


def reset_max_memory_allocated(device=None):
    pass


def reset_max_memory_cached(device=None):
    pass


def reset_accumulated_memory_stats(device=None):
    pass


def memory_stats(device=None):
    from collections import OrderedDict
    return OrderedDict()


def memory_snapshot(mempool_id=None):
    return []


def memory_summary(device=None, abbreviated=False):
    return ""


def mem_get_info(device=None):
    _refuse()


def set_per_process_memory_fraction(fraction, device=None):
    _refuse()


# Streams, events, graphs: their classes are there to be named.


class device:
    """A context manager that would choose a device; None or a negative number chooses none."""

    def __init__(self, device):
        self.idx = -1 if device is None else device

    def __enter__(self):
        if not (isinstance(self.idx, int) and self.idx < 0):
            _refuse()
        return self

    def __exit__(self, *exception):
        return False


class device_of(device):
    def __init__(self, obj):
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


class Stream:
    def __new__(cls, *args, **kwargs):
        _refuse()


class ExternalStream(Stream):
    pass


class Event:
    """An event that nothing was recorded in."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.enable_timing = enable_timing

    def record(self, stream=None):
        _refuse()

    def wait(self, stream=None):
        _refuse()

    def synchronize(self):
        _refuse()

    def elapsed_time(self, end_event):
        _refuse()

    def query(self):
        return True


class CUDAGraph:
    def __new__(cls, *args, **kwargs):
        _refuse()


@contextmanager
def stream(stream):
    """With None: nothing."""
    if stream is not None:
        _refuse()
    yield


StreamContext = stream


def set_stream(stream):
    if stream is not None:
        _refuse()


def graph(*args, **kwargs):
    _refuse()


def make_graphed_callables(*args, **kwargs):
    _refuse()


class _LegacyTensor:
    """torch.cuda.FloatTensor and its like: types that no tensor here has."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        raise TypeError("type torch.cuda.%s not available. %s." % (self.__name__, _TEXT))

    def __instancecheck__(self, instance):
        return False


_LEGACY = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor",
           "IntTensor", "LongTensor", "BoolTensor")

_modules = lazy_modules(__name__, ("amp", "comm", "memory", "nccl", "nvtx", "profiler", "random", "sparse", "streams"))


def __getattr__(name) -> _Any:
    if name in _LEGACY:
        value = _LegacyTensor(name)
        setattr(sys.modules[__name__], name, value)
        return value
    return _modules(name)
