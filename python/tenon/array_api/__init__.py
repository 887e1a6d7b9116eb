# SPDX-License-Identifier: MIT
"""The namespace of the Python array-API standard, over Tenon's tensors: what
`x.__array_namespace__()` returns. Names, argument names and defaults are the standard's; names that
are the same in Tenon are Tenon's own."""

import builtins

import tenon
from tenon import (bool, complex64, complex128, float32, float64, int8, int16, int32,  # noqa: F401,A004
                   int64, uint8)

__array_api_version__ = "2023.12"

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

# Functions of Tenon that already are what the standard wants.
_SAME = frozenset("""
    abs acos acosh add asin asinh asarray atan atan2 atanh bitwise_and bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor broadcast_to can_cast ceil cos cosh empty empty_like exp expm1
    finfo floor floor_divide from_dlpack full full_like hypot iinfo imag isfinite isinf isnan log
    log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul maximum minimum
    moveaxis ones ones_like real reciprocal remainder reshape result_type round searchsorted sign
    signbit sin sinh sqrt square tan tanh tril triu trunc where zeros zeros_like copysign nextafter
    arange linspace
""".split())

# Other names for the same functions: {standard: Tenon}.
_RENAMED = {
    "bitwise_invert": "bitwise_not", "divide": "div", "equal": "eq", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg",
    "not_equal": "ne", "pow": "pow", "subtract": "sub", "conj": "conj",
}


_MODULES = ("fft", "linalg")


def __getattr__(name):
    if name in _MODULES:
        return __import__(__name__ + "." + name, None, None, ["*"])
    source = name if name in _SAME else _RENAMED.get(name)
    if source is None:
        raise AttributeError(f"module 'tenon.array_api' has no attribute {name!r}")
    value = getattr(tenon, source)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | _SAME | set(_RENAMED) | set(_MODULES))


# ---- data types ----

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8",),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def isdtype(dtype, kind):
    """Is `dtype` of a kind: a dtype, the name of a kind, or a tuple of them?"""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"unknown kind of dtype: {kind!r}")
        return builtins.any(dtype == getattr(tenon, name) for name in _KINDS[kind])
    return dtype == kind


def astype(x, dtype, /, *, copy=True, device=None):
    return x.to(dtype=dtype, device=device or x.device, copy=copy)


# ---- creation ----

def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    n_cols = n_rows if n_cols is None else n_cols
    out = tenon.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        out.diagonal(k).fill_(1)
    return out


def meshgrid(*arrays, indexing="xy"):
    return list(tenon.meshgrid(*arrays, indexing=indexing))


# ---- elementwise ----

def positive(x, /):
    return x.clone()


def clip(x, /, min=None, max=None):
    return x.clone() if min is None and max is None else tenon.clamp(x, min, max)


# ---- reductions ----

def _axes(x, axis):
    return tuple(range(x.dim())) if axis is None else axis


def _over(x, axis, keepdims, one):
    """Apply a reduction of one dimension over several."""
    axes = _axes(x, axis)
    axes = (axes,) if isinstance(axes, int) else axes
    for d in sorted((a % x.dim() if x.dim() else a for a in axes), reverse=True):
        x = one(x, d, keepdims)
    return x


def all(x, /, *, axis=None, keepdims=False):
    return _over(x.to(tenon.bool), axis, keepdims, lambda t, d, k: tenon.all(t, d, k))


def any(x, /, *, axis=None, keepdims=False):
    return _over(x.to(tenon.bool), axis, keepdims, lambda t, d, k: tenon.any(t, d, k))


def max(x, /, *, axis=None, keepdims=False):
    return x.clone() if x.dim() == 0 else tenon.amax(x, _axes(x, axis), keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return x.clone() if x.dim() == 0 else tenon.amin(x, _axes(x, axis), keepdims)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    return tenon.sum(x, _axes(x, axis), keepdims, dtype=dtype) if axis != () else x.clone()


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    if dtype is None and not x.is_floating_point() and not x.is_complex():
        dtype = tenon.int64
    x = x if dtype is None else x.to(dtype)
    return _over(x, axis, keepdims, lambda t, d, k: tenon.prod(t, d, k))


def mean(x, /, *, axis=None, keepdims=False):
    return tenon.mean(x, _axes(x, axis), keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    return tenon.var(x, _axes(x, axis), correction=correction, keepdim=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return tenon.std(x, _axes(x, axis), correction=correction, keepdim=keepdims)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    if axis is None:
        if x.dim() != 1:
            raise ValueError("axis must be given for an array of more than one dimension")
        axis = 0
    out = tenon.cumsum(x, axis, dtype=dtype)
    if include_initial:
        shape = list(out.shape)
        shape[axis] = 1
        out = tenon.cat([tenon.zeros(shape, dtype=out.dtype, device=out.device), out], axis)
    return out


def argmax(x, /, *, axis=None, keepdims=False):
    return tenon.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return tenon.argmin(x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return sum((x != 0).to(tenon.int64), axis=axis, keepdims=keepdims)


def nonzero(x, /):
    return tuple(x.nonzero().unbind(1))


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    return tenon.diff(x, n, axis, prepend, append)


# ---- shapes ----

def broadcast_arrays(*arrays):
    return list(tenon.broadcast_tensors(*arrays))


def concat(arrays, /, *, axis=0):
    if axis is None:
        return tenon.cat([a.reshape(-1) for a in arrays], 0)
    return tenon.cat(list(arrays), axis)


def stack(arrays, /, *, axis=0):
    return tenon.stack(list(arrays), axis)


def unstack(x, /, *, axis=0):
    return tuple(x.unbind(axis))


def expand_dims(x, /, *, axis=0):
    return x.unsqueeze(axis)


def squeeze(x, /, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    for a in sorted((d % x.dim() for d in axes), reverse=True):
        if x.shape[a] != 1:
            raise ValueError(f"dimension {a} has size {x.shape[a]}, not 1")
        x = x.squeeze(a)
    return x


def permute_dims(x, /, axes):
    return x.permute(axes)


def matrix_transpose(x, /):
    return x.transpose(-2, -1)


def flip(x, /, *, axis=None):
    axes = _axes(x, axis)
    return tenon.flip(x, (axes,) if isinstance(axes, int) else tuple(axes))


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return tenon.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    return tenon.roll(x, shift, axis)


def repeat(x, repeats, /, *, axis=None):
    return tenon.repeat_interleave(x if axis is not None else x.reshape(-1), repeats,
                                   0 if axis is None else axis)


def tile(x, repetitions, /):
    return tenon.tile(x, tuple(repetitions))


def take(x, indices, /, *, axis=None):
    if axis is None:
        if x.dim() != 1:
            raise ValueError("axis must be given for an array of more than one dimension")
        axis = 0
    return tenon.index_select(x, axis, indices)


def take_along_axis(x, indices, /, *, axis=-1):
    return tenon.take_along_dim(x, indices, axis)


# ---- products, sorting, sets ----

def tensordot(x1, x2, /, *, axes=2):
    return tenon.tensordot(x1, x2, axes)


def vecdot(x1, x2, /, *, axis=-1):
    x1, x2 = tenon.broadcast_tensors(x1, x2)
    return tenon.sum((x1.conj() if x1.is_complex() else x1) * x2, axis)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return tenon.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return tenon.sort(x, dim=axis, descending=descending, stable=stable)[1]


def unique_values(x, /):
    return tenon.unique(x)


def unique_counts(x, /):
    return _named("unique_counts_result", ("values", "counts"),
                  tenon.unique(x, return_counts=True))


def unique_inverse(x, /):
    return _named("unique_inverse_result", ("values", "inverse_indices"),
                  tenon.unique(x, return_inverse=True))


def _named(name, fields, values):
    from collections import namedtuple

    return namedtuple(name, fields)(*values)
