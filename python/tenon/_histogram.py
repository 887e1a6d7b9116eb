# SPDX-License-Identifier: MIT
"""histogramdd: how many points are in each box of a grid."""

import collections
import math

import tenon
from tenon._asking import overridable
from tenon._dtype_info import text_of


class _Histogram(collections.namedtuple("histogramdd", ("hist", "bin_edges"))):
    __slots__ = ()

    def __repr__(self):
        return "torch.return_types.histogramdd(\nhist=%r,\nbin_edges=%r)" % self


_CPP = {tenon.float32: "float", tenon.float64: "double"}


def _check_histogram(input, weight):
    if input.dtype not in _CPP:
        raise NotImplementedError("\"histogramdd\" not implemented for '%s'" % text_of(input.dtype))
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                           "dtype, but got input(%s), and weight(%s)" % (_CPP[input.dtype], _CPP.get(weight.dtype, str(weight.dtype)[6:])))
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                           "its innermost dimension, but got input with shape %s and weight with shape %s"
                           % (list(input.shape), list(weight.shape)))


def _even_edges(points, bins, range):
    """Edges of as many bins of one width as each dimension has, over what is there or over a range."""
    n = points.shape[1]
    if len(bins) != n:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    for d, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError("torch.histogram(): bins must be > 0, but got %d for dimension %d" % (count, d))
    if range is not None and len(range) != 2 * n:
        raise RuntimeError("torch.histogramdd: for a %d-dimensional histogram range should have %d elements, but got %d"
                           % (n, 2 * n, len(range)))
    edges = []
    for d, count in enumerate(bins):
        if range is not None:
            low, high = range[2 * d], range[2 * d + 1]
        else:
            low, high = (points[:, d].min().item(), points[:, d].max().item()) if points.shape[0] else (0.0, 1.0)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError("torch.histogramdd: dimension %d's range [%g, %g] is not finite" % (d, low, high))
        if low > high:
            raise RuntimeError("torch.histogramdd: min should not exceed max, but got min %g max %g for dimension %d" % (low, high, d))
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(tenon.linspace(low, high, count + 1, dtype=points.dtype))
    return edges


def _given_edges(points, bins):
    if len(bins) != points.shape[1]:
        raise RuntimeError("torch.histogramdd: expected %d sequences of bin edges for a %d-dimensional histogram but got %d"
                           % (points.shape[1], points.shape[1], len(bins)))
    for d, edge in enumerate(bins):
        if edge.dtype != points.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s "
                               "and bins for dimension %d with dtype %s"
                               % (_CPP[points.dtype], d, _CPP.get(edge.dtype, str(edge.dtype)[6:])))
    return list(bins)


@overridable
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many points, the last dimension of `input`, are in each box of a grid: (hist, bin_edges). `bins` is a number, one
    number a dimension, or the edges of each dimension. The last bin of a dimension has its upper edge too; what is outside counts nothing."""
    _check_histogram(input, weight)
    points = input.detach().reshape(math.prod(input.shape[:-1]), input.shape[-1])
    if isinstance(bins, int):
        bins = [bins] * points.shape[1]
    if len(bins) and isinstance(bins[0], tenon.Tensor):
        edges = _given_edges(points, bins)
    else:
        edges = _even_edges(points, bins, range)
    sizes = [edge.numel() - 1 for edge in edges]
    place = tenon.zeros(points.shape[0], dtype=tenon.int64)
    inside = tenon.full((points.shape[0],), bool(edges))  # without dimensions there is no box to be in
    for d, edge in enumerate(edges):
        x = points[:, d].contiguous()
        inside &= (x >= edge[0]) & (x <= edge[-1])
        place = place * sizes[d] + (tenon.bucketize(x, edge.contiguous(), right=True) - 1).clamp(0, sizes[d] - 1)
    share = tenon.ones(points.shape[0], dtype=input.dtype) if weight is None else weight.detach().reshape(-1)
    hist = tenon.zeros(math.prod(sizes), dtype=input.dtype).index_add(0, place[inside], share[inside]).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1 if i == d else 1 for i, _ in enumerate(edges)])
    return _Histogram(hist, tuple(edges))
