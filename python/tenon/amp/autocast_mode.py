# SPDX-License-Identifier: MIT
"""autocast: a region in which products compute in a smaller dtype. The work is the core's."""
import functools
import warnings

import tenon
from tenon import _C

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type):
    """Whether autocast can be asked for on this kind of device, which may stand with its number: ``cuda:0``."""
    kind = tenon.device(device_type).type
    return kind in ("cpu", "cuda") or kind in _ELSEWHERE


#: Devices that this build has not, and the dtype that a region for them has: one changes nothing here.
_ELSEWHERE = {"mps": tenon.float16, "xpu": tenon.float16, "mtia": tenon.float16, "ipu": tenon.float16,
              "hpu": tenon.bfloat16, "xla": tenon.bfloat16}


class autocast(_C._Scope):
    """A region: as a with statement, or in front of a function."""

    _leaves = _C._autocast_leave

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError("Expected `device_type` of type `str`, got: `%s`" % type(device_type))
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError("User specified an unsupported autocast device_type '%s'" % device_type)
        self._kind = device_type = tenon.device(device_type).type
        if dtype is None:
            dtype = _ELSEWHERE.get(device_type) or _C.get_autocast_dtype(device_type)
        self.fast_dtype = dtype
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not tenon.cuda.is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled and device_type == "cpu" and self.fast_dtype not in (tenon.bfloat16, tenon.float16):
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast "
                          "only supports dtypes of torch.bfloat16, torch.float16 currently.", stacklevel=2)
            enabled = False
        if enabled and device_type in _ELSEWHERE and dtype not in (tenon.bfloat16, tenon.float16):
            name = device_type.upper()
            warnings.warn("In %s autocast, but the target dtype is not supported. Disabling autocast.\n%s Autocast only "
                          "supports dtypes of torch.bfloat16, torch.float16 currently." % (name, name), stacklevel=2)
            enabled = False
        self._enabled = bool(enabled)
        self._guards = []
        self._enters = None
        if device_type not in _ELSEWHERE:
            dtype = self.fast_dtype if self.fast_dtype in (tenon.bfloat16, tenon.float16, tenon.float32) else None
            self._enters = functools.partial(_C._autocast_enter, device_type, self._enabled, dtype, self._cache_enabled)

    def __call__(self, func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with autocast(self.device, dtype=self.fast_dtype, enabled=self._enabled,
                          cache_enabled=self._cache_enabled):
                return func(*args, **kwargs)
        return wrapper


def _cast(value, device_type, dtype):
    if isinstance(value, tenon.Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not tenon.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, device_type, dtype) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def _check_device(device_type):
    if not isinstance(device_type, str):
        raise ValueError("Expected `device_type` of type `str`, got: `%s`" % type(device_type))


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """In front of the forward of a Function: how it runs in a region. With ``cast_inputs`` floating arguments are cast
    to that dtype and the body runs without autocast."""
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapper(*args, **kwargs):
        args[0]._dtype = _C.get_autocast_dtype(device_type)
        on = _C.is_autocast_enabled(device_type)
        if cast_inputs is None or not on:
            args[0]._fwd_used_autocast = on if cast_inputs is None else False
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))
    return wrapper


def custom_bwd(bwd=None, *, device_type):
    """In front of its backward: it runs with the autocast state of its forward."""
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)
    return wrapper
