# SPDX-License-Identifier: MIT
"""cuDNN's switches. They are kept, and change nothing where there is no device."""

from contextlib import contextmanager

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
CUDNN_TENSOR_DTYPES = set()


def is_available():
    """Whether cuDNN can be used."""
    return False


def version():
    """The version of cuDNN, or None."""
    return None


def is_acceptable(tensor):
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None,
              _fp32_precision="none"):
    """Set those that are given, and return what all were."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    here = globals()
    before = tuple(here[name] for name in names)
    for name, value in zip(names, (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)):
        if value is not None:
            here[name] = value
    return before


@contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
          fp32_precision="none"):
    """The switches as given, inside."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
