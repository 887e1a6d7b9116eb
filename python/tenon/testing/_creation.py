# SPDX-License-Identifier: MIT
"""make_tensor: a tensor of random values of any dtype."""

import math
import warnings

import tenon

__all__ = ["make_tensor"]

_WHOLE = (tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64, tenon.uint16, tenon.uint32, tenon.uint64)
_REAL = {tenon.float16: tenon.float16, tenon.bfloat16: tenon.bfloat16, tenon.float32: tenon.float32, tenon.float64: tenon.float64,
         tenon.complex64: tenon.float32, tenon.complex128: tenon.float64}
_FLOAT8 = (tenon.float8_e4m3fn, tenon.float8_e5m2, tenon.float8_e4m3fnuz, tenon.float8_e5m2fnuz)


def _bounds(low, high, least, most, default_low, default_high, dtype):
    """The interval to draw from, inside what the dtype holds."""
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError("`low` and `high` cannot be NaN, but got low=%s and high=%s" % (low, high))
    if low == high and dtype in _REAL:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and "
                      "will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError("`low` must be less than `high`, but got %s >= %s" % (low, high))
    elif high < least or low >= most:
        raise ValueError("The value interval specified by `low` and `high` is [%s, %s), but %s only supports [%s, %s)"
                         % (low, high, dtype, least, most))
    return max(least, min(low, most)), max(least, min(high, most))


def _fill_evenly(made, low, high):
    """uniform_ takes no interval that is longer than the largest number."""
    if high - low >= tenon.finfo(made.dtype).max:
        made.uniform_(low / 2, high / 2).mul_(2)
    else:
        made.uniform_(low, high)


def _whole_numbers(size, dtype, device, low, high):
    info = tenon.iinfo(dtype)
    # randint takes its bounds as int64.
    most = min(info.max + 1, 2 ** 63 - 1) if dtype != tenon.uint64 else info.max + 1
    low, high = _bounds(low, high, info.min, most, -9, 10, dtype)
    low, high = math.ceil(low), min(math.ceil(high), 2 ** 63 - 1)
    return tenon.randint(low, max(high, low + 1), size, device=device, dtype=dtype)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False,
                exclude_zero=False, memory_format=None):
    """Values drawn evenly from [low, high): by default [-9, 9) for floats, [-9, 10) for whole numbers, [0, 10) for
    those without a sign, [0, 2) for bool. With exclude_zero, zeros become the smallest positive value."""
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
    noncontiguous = noncontiguous and math.prod(size) > 1
    if noncontiguous:
        size[-1] *= 2
    if dtype == tenon.bool:
        low, high = _bounds(low, high, 0, 2, 0, 2, dtype)
        low, high = math.ceil(low), math.ceil(high)
        made = tenon.randint(low, max(high, low + 1), size, device=device, dtype=tenon.uint8).to(dtype)
    elif dtype in _WHOLE:
        made = _whole_numbers(size, dtype, device, low, high)
    elif dtype in _REAL or dtype in _FLOAT8:
        most = tenon.finfo(_REAL.get(dtype, dtype)).max
        low, high = _bounds(low, high, -most, most, -9, 9, dtype)
        made = tenon.empty(size, dtype=dtype if dtype in _REAL else tenon.float32, device=device)
        _fill_evenly(tenon.view_as_real(made) if dtype.is_complex else made, low, high)
        made = made.to(dtype)
    else:
        raise TypeError("The requested dtype '%s' is not supported by torch.testing.make_tensor()." % (dtype,))
    if noncontiguous:  # not from the first one on: an offset that is forgotten shows
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if dtype in _WHOLE or dtype == tenon.bool else tenon.finfo(dtype).tiny
    return made.requires_grad_() if requires_grad and dtype in _REAL else made
