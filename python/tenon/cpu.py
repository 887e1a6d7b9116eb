# SPDX-License-Identifier: MIT
"""The processor, asked as if it were an accelerator."""

from contextlib import contextmanager


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    pass


def synchronize(device=None):
    """Nothing runs beside the caller."""


class Stream:
    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        pass


class Event:
    def query(self):
        return True

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass


_stream = Stream()


def current_stream(device=None):
    return _stream


@contextmanager
def stream(stream):
    yield


class amp:
    """tenon.cpu.amp: autocast and GradScaler by their older names."""

    @staticmethod
    def GradScaler(init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        import warnings

        import tenon
        warnings.warn("`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use "
                      "`torch.amp.GradScaler('cpu', args...)` instead.", FutureWarning, stacklevel=2)
        return tenon.amp.GradScaler("cpu", init_scale=init_scale, growth_factor=growth_factor,
                                    backoff_factor=backoff_factor, growth_interval=growth_interval, enabled=enabled)

    @staticmethod
    def autocast(enabled=True, dtype=None, cache_enabled=True):
        import warnings

        import tenon
        warnings.warn("`torch.cpu.amp.autocast(args...)` is deprecated. Please use "
                      "`torch.amp.autocast('cpu', args...)` instead.", FutureWarning, stacklevel=2)
        return tenon.amp.autocast("cpu", enabled=enabled, dtype=tenon.bfloat16 if dtype is None else dtype,
                                  cache_enabled=cache_enabled)
