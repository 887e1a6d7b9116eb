# SPDX-License-Identifier: MIT
"""Which implementations `scaled_dot_product_attention` may choose. All give the same values here, so the choice is kept and
reported, and nothing else depends on it."""

from contextlib import contextmanager
from enum import IntEnum
from tenon._typing import Any as _Any

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """The implementations of attention by name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self):
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self):
        return f"SDPBackend.{self.name}"


_ALL = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
)
_allowed = _ALL


def _cur_sdpa_kernel_backends(with_priority=False):
    """Those that are allowed now."""
    return list(_allowed)


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Within the block only the given implementations may be chosen."""
    global _allowed
    if isinstance(backends, SDPBackend):
        backends = [backends]
    elif not isinstance(backends, (list, tuple, set, frozenset)) or not all(
        isinstance(b, SDPBackend) for b in backends
    ):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    backends = list(dict.fromkeys(backends))
    before = _allowed
    _allowed = tuple(backends)
    try:
        yield {}
    finally:
        _allowed = before


def __getattr__(name) -> _Any:
    if name not in ("bias", "flex_attention"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
