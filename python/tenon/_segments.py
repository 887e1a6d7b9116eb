# SPDX-License-Identifier: MIT
"""segment_reduce: neighbours along a dimension, reduced together."""

import math

import tenon
from tenon._dtype_info import text_of


def _segment_ends(lengths, offsets, rows, size, unsafe):
    """Where each segment of each row ends, from 0 on."""
    if lengths is None:
        return offsets.reshape(rows, offsets.shape[-1])
    lengths = lengths.reshape(rows, lengths.shape[-1])
    if not unsafe and not lengths.is_meta and not tenon._C._is_fake(lengths):
        if bool((lengths < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        if bool((lengths.sum(-1) != size).any()):
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
    return tenon.nn.functional.pad(lengths.cumsum(-1), (1, 0))


def _check_segments(data, reduce, given, indices, axis):
    if reduce not in ("sum", "mean", "amax", "amin", "prod"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got %s" % reduce)
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.dim() < given.dim():
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    if axis != given.dim() - 1:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of lengths but got %d." % axis)
    if not data.is_floating_point():
        raise NotImplementedError("\"_segment_reduce_cpu\" not implemented for '%s'" % text_of(data.dtype))
    if given.dtype not in (tenon.int32, tenon.int64):
        raise NotImplementedError("\"_segment_reduce_lengths_cpu_kernel1\" not implemented for '%s'" % text_of(given.dtype))


def _reduce_with_nans(out, which, flat, how):
    """A NaN is an element like others for the gradient: it is the one that max and min pick, and has the product of the others."""
    nans = flat.isnan()
    others = flat.masked_fill(nans, 1.0 if how == "prod" else -math.inf if how == "amax" else math.inf)
    reduced = out.scatter_reduce(0, which.unsqueeze(-1).expand_as(flat), others, how)
    count = tenon.zeros_like(out).index_add(0, which, nans.to(flat.dtype))
    picked = tenon.zeros_like(out).index_add(0, which, flat.masked_fill(~nans, 0.0))
    if how == "prod":
        picked = reduced * picked * tenon.ones_like(out).masked_fill(count > 1, math.nan)
    else:
        picked = picked / count.clamp(min=1)
    return tenon.where(count > 0, picked, reduced)


def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Neighbours along an axis, reduced together: "sum", "mean", "max", "min" or "prod" of each segment, whose lengths
    (or where each begins and the last ends) are given for each part of the dimensions before the axis."""
    how = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    ndim = max(data.dim(), 1)
    if not -ndim <= axis < ndim:
        raise IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)" % (-ndim, ndim - 1, axis))
    axis %= ndim
    given = offsets if lengths is None else lengths if offsets is None else None
    _check_segments(data, how, given, indices, axis)
    rows, size, inner = math.prod(data.shape[:axis]), data.shape[axis], math.prod(data.shape[axis + 1:])
    ends = _segment_ends(lengths, offsets, rows, size, unsafe)
    n = ends.shape[-1] - 1
    places = tenon.arange(size, dtype=ends.dtype, device=ends.device).expand(rows, size).contiguous()
    at = tenon.searchsorted(ends, places, right=True) - 1
    # What lies before the first offset or after the last goes to one more segment, which is left out.
    at = tenon.where(at < 0, n, at) + (n + 1) * tenon.arange(rows, device=ends.device).unsqueeze(-1)
    which, flat = at.reshape(rows * size), data.reshape(rows * size, inner)
    start = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}[how]
    start = start if initial is None or how in ("amax", "amin") else initial
    out = tenon.full((rows * (n + 1), inner), float(start), dtype=data.dtype, device=data.device)
    if how in ("sum", "mean"):
        out = out.index_add(0, which, flat)
    elif data.requires_grad and not data.is_meta and not tenon._C._is_fake(data) and bool(flat.isnan().any()):
        out = _reduce_with_nans(out, which, flat, how)
    else:
        out = out.scatter_reduce(0, which.unsqueeze(-1).expand_as(flat), flat, how)
    if initial is not None and how in ("amax", "amin"):  # of equals, the elements take the gradient
        out = tenon.where(out < initial if how == "amax" else out > initial, float(initial), out)
    out = out.reshape(rows, n + 1, inner).narrow(1, 0, n)
    if how == "mean":
        count = ends.diff(dim=-1).unsqueeze(-1)
        out = tenon.where(count > 0, out / count.clamp(min=1), tenon.full_like(out, math.nan if initial is None else start))
    return out.reshape(tuple(data.shape[:axis]) + (n,) + tuple(data.shape[axis + 1:])).contiguous()


_segment_reduce = segment_reduce
