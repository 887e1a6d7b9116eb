# SPDX-License-Identifier: MIT
"""make_tensor: a tensor of random values of any dtype."""

import math

import tenon

__all__ = ["make_tensor"]

_WHOLE = (tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64)


def _bounds(low, high, least, most, default_low, default_high, dtype):
    """The interval to draw from, inside what the dtype holds."""
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError("`low` and `high` cannot be NaN, but got low=%s and high=%s" % (low, high))
    if low >= high:
        raise ValueError("`low` must be less than `high`, but got %s >= %s" % (low, high))
    return max(least, min(low, most)), max(least, min(high, most))


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False,
                exclude_zero=False, memory_format=None):
    """Values drawn evenly from [low, high): by default [-9, 9) for floats, [-9, 10) for whole numbers, [0, 10) for
    uint8, [0, 2) for bool. With exclude_zero, zeros become the smallest positive value."""
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         "noncontiguous=%s and memory_format=%s" % (noncontiguous, memory_format))
    if requires_grad and (dtype in _WHOLE or dtype == tenon.bool):
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype=%s"
                         % (dtype,))
    # Room for every second element of a longer last dimension.
    size = list(shape)
    if noncontiguous and size and math.prod(size) > 1:
        size[-1] *= 2
    if dtype == tenon.bool:
        low, high = _bounds(low, high, 0, 2, 0, 2, dtype)
        made = tenon.randint(int(low), max(int(high), int(low) + 1), size, device=device, dtype=tenon.uint8).to(dtype)
    elif dtype in _WHOLE:
        info = tenon.iinfo(dtype)
        low, high = _bounds(low, high, info.min, info.max + (1 if dtype != tenon.int64 else 0),
                            0 if dtype == tenon.uint8 else -9, 10, dtype)
        low, high = math.ceil(low), math.ceil(high)
        made = tenon.randint(low, max(high, low + 1), size, device=device, dtype=dtype)
    else:
        real = {tenon.complex64: tenon.float32, tenon.complex128: tenon.float64}.get(dtype)
        most = tenon.finfo(real or dtype).max
        low, high = _bounds(low, high, -most, most, -9, 9, dtype)
        if real is not None:
            parts = tenon.empty(size + [2], dtype=real, device=device).uniform_(low, high)
            made = tenon.view_as_complex(parts)
        else:
            made = tenon.empty(size, dtype=dtype, device=device).uniform_(low, high)
    if len(size) and size != list(shape):
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = 1 if dtype in _WHOLE or dtype == tenon.bool else tenon.finfo(dtype).tiny
        made[made == 0] = tiny
    return made.requires_grad_() if requires_grad else made
