# SPDX-License-Identifier: MIT
"""Reductions and normalisations that leave out what a mask says: True means that an element counts."""

import functools

import tenon
from tenon._typing import Any as _Any

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
           "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _dims(x, dim):
    """The dimensions meant: all of them by None or an empty tuple."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(x.dim()))
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _mask(x, mask):
    return tenon.ones((), dtype=tenon.bool).expand(x.shape) if mask is None else mask.to(tenon.bool).expand(x.shape)


def _filled(x, mask, value):
    return x if mask is None else tenon.where(_mask(x, mask), x, tenon.full((), value, dtype=x.dtype))


def _least(x):
    return -tenon.inf if x.is_floating_point() or x.is_complex() else False if x.dtype == tenon.bool else tenon.iinfo(x.dtype).min


def _largest(x):
    return tenon.inf if x.is_floating_point() else True if x.dtype == tenon.bool else tenon.iinfo(x.dtype).max


def _typed(input, dtype):
    return input if dtype is None else input.to(dtype)


def _unwrapped(function):
    """The function, taking masked tensors too: their masks count, together with one that is given; the result is ordinary."""
    @functools.wraps(function)
    def call(input, *args, mask=None, **kwargs):
        if hasattr(input, "_masked_mask"):
            input = input.to_dense()
            mask = input._masked_mask if mask is None else input._masked_mask & mask
            input = input._masked_data
        return function(input, *args, mask=mask, **kwargs)
    return call


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sums of what counts; 0 where nothing does."""
    x = _filled(input, mask, 0)
    return x.sum(_dims(x, dim), keepdim=keepdim, dtype=dtype) if x.dim() else _typed(x, dtype).sum()


def _over_each(op, input, dim, keepdim):
    for d in sorted((d % input.dim() for d in _dims(input, dim)), reverse=True):
        input = op(input, d, keepdim)
    return input


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Products of what counts; 1 where nothing does."""
    x = _typed(_filled(input, mask, 1), dtype)
    return _over_each(lambda t, d, keep: t.prod(d, keepdim=keep), x, dim, keepdim) if x.dim() else x.prod()


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, _least(x)).amax(_dims(x, dim), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, _largest(x)).amin(_dims(x, dim), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, _least(x)).argmax(dim, keepdim).to(x.dtype)  # as the reference has it


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, _largest(x)).argmin(dim, keepdim).to(x.dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, 0).cumsum(dim).to(x.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, 1).cumprod(dim).to(x.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return _filled(x, mask, _least(x)).logsumexp(_dims(x, dim), keepdim).to(x.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    return tenon.logaddexp(_filled(_typed(input, dtype), input_mask, -tenon.inf),
                           _filled(_typed(other, dtype), other_mask, -tenon.inf))


def _count(x, dim, keepdim, mask):
    return _mask(x, mask).sum(_dims(x, dim), keepdim=keepdim)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Means of what counts; nan where nothing does."""
    if not (dtype or input.dtype).is_floating_point and not (dtype or input.dtype).is_complex:
        raise ValueError("input must be a floating point or complex tensor, got %s" % input.dtype)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower one of two in the middle; nan where nothing counts."""
    x = _filled(_typed(input, dtype), mask, tenon.nan)
    return x.nanmedian(dim, keepdim).values


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = _typed(input, dtype)
    return tenon.linalg.vector_norm(_filled(x, mask, tenon.inf if ord == -tenon.inf else 0), ord, _dims(x, dim), keepdim)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variances of what counts, its number less ``correction`` (1) being divided by."""
    if correction is None:
        correction = 0 if unbiased is False else 1
    x = _typed(input, dtype)
    x = x if x.is_floating_point() or x.is_complex() else x.to(tenon.get_default_dtype())
    gap = x - mean(x, dim, keepdim=True, mask=mask)
    count = (_count(x, dim, keepdim, mask) - correction).clamp(min=0)
    return sum(gap * gap.conj() if x.is_complex() else gap * gap, dim, keepdim=keepdim, mask=mask) / count


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def softmax(input, dim, *, dtype=None, mask=None):
    return _filled(_typed(input, dtype), mask, -tenon.inf).softmax(dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    return _filled(_typed(input, dtype), mask, -tenon.inf).log_softmax(dim)


def softmin(input, dim, *, dtype=None, mask=None):
    return (-_filled(_typed(input, dtype), mask, tenon.inf)).softmax(dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    x = _filled(_typed(input, dtype), mask, 0)
    return x / norm(x, ord, dim, keepdim=True).clamp(min=eps)


for _name in __all__:
    if _name != "logaddexp":
        globals()[_name] = _unwrapped(globals()[_name])


def __getattr__(name) -> _Any:
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        from tenon.masked import maskedtensor
        return getattr(maskedtensor, name)
    raise AttributeError("module 'torch.masked' has no attribute '%s'" % name)
