# SPDX-License-Identifier: MIT
"""Automatic mixed precision under its older, CUDA-only names."""

import warnings

import tenon
from tenon.amp import GradScaler as _GradScaler, autocast as _autocast

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """tenon.amp.autocast("cuda", …)."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        warnings.warn("`torch.cuda.amp.autocast(args...)` is deprecated. Please use "
                      "`torch.amp.autocast('cuda', args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cuda", enabled=enabled, dtype=tenon.float16 if dtype is None else dtype,
                         cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """tenon.amp.GradScaler("cuda", …)."""

    def __init__(self, init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warnings.warn("`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use "
                      "`torch.amp.GradScaler('cuda', args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cuda", init_scale=init_scale, growth_factor=growth_factor, backoff_factor=backoff_factor,
                         growth_interval=growth_interval, enabled=enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """A decorator for the forward of a Function; there is nothing to cast without a device."""
    from tenon.amp import custom_fwd as general
    import functools
    if fwd is None:
        return functools.partial(general, device_type="cuda", cast_inputs=cast_inputs)
    return general(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """A decorator for the backward of a Function."""
    from tenon.amp import custom_bwd as general
    return general(bwd, device_type="cuda")
