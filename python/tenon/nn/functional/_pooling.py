# SPDX-License-Identifier: MIT
"""Pooling over windows of (N, C, *spatial) or (C, *spatial) inputs."""

import functools
import operator

import tenon
from tenon.nn.functional._shared import op, overridable
from tenon.nn.modules.utils import _list_with_default, _ntuple, _pair, _single, _triple

_nn = tenon._C._nn

avg_pool1d = op("avg_pool1d")
avg_pool2d = op("avg_pool2d")
avg_pool3d = op("avg_pool3d")
adaptive_avg_pool1d = op("adaptive_avg_pool1d")


def _max_pool_pair(n):
    """`max_poolNd` and `max_poolNd_with_indices`."""
    plain = op(f"max_pool{n}d")
    with_indices = op(f"max_pool{n}d_with_indices")

    def max_pool_with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        return with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        run = with_indices if return_indices else plain
        return run(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    return _named(n, max_pool, "max_pool", "The largest of each window"), _named(
        n, max_pool_with_indices, "max_pool", "The largest of each window and where it is", "_with_indices"
    )


def _adaptive_max_pool_pair(n):
    run = op(f"adaptive_max_pool{n}d")

    def adaptive_max_pool_with_indices(input, output_size, return_indices=False):
        return run(input, _list_with_default(output_size, input.size()))

    def adaptive_max_pool(input, output_size, return_indices=False):
        both = adaptive_max_pool_with_indices(input, output_size)
        return both if return_indices else both[0]

    return _named(n, adaptive_max_pool, "adaptive_max_pool", "The largest of windows cut to give `output_size`"), _named(
        n, adaptive_max_pool_with_indices, "adaptive_max_pool", "The largest of each window and where it is", "_with_indices"
    )


def _named(n, fn, name, doc, suffix=""):
    fn.__name__ = fn.__qualname__ = f"{name}{n}d{suffix}"
    fn.__doc__ = f"{doc}, over {n} spatial dimension{'s' if n > 1 else ''}."
    return overridable(fn)


max_pool1d, max_pool1d_with_indices = _max_pool_pair(1)
max_pool2d, max_pool2d_with_indices = _max_pool_pair(2)
max_pool3d, max_pool3d_with_indices = _max_pool_pair(3)
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool_pair(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool_pair(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool_pair(3)


@overridable
def adaptive_avg_pool2d(input, output_size):
    """The mean of windows cut so that the result has `output_size`; None keeps a dimension."""
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


@overridable
def adaptive_avg_pool3d(input, output_size):
    """The mean of windows cut so that the result has `output_size`; None keeps a dimension."""
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def _lp(pool, input, norm_type, sizes, stride, ceil_mode):
    """The p-norm of each window, through the mean of its p-th powers."""
    out = pool(input.pow(norm_type), sizes, sizes if stride is None else stride, 0, ceil_mode)
    count = functools.reduce(operator.mul, sizes)
    return (out.sign() * tenon.relu(out.abs())).mul(count).pow(1.0 / norm_type)


@overridable
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, L)."""
    return _lp(avg_pool1d, input, norm_type, _single(kernel_size), stride, ceil_mode)


@overridable
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, H, W)."""
    return _lp(avg_pool2d, input, norm_type, _pair(kernel_size), stride, ceil_mode)


@overridable
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, D, H, W)."""
    return _lp(avg_pool3d, input, norm_type, _triple(kernel_size), stride, ceil_mode)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    size = input.size()
    n = len(kernel_size)
    default = [(size[d - n] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return output_size


def _unpool(n, input, indices, kernel_size, stride, padding, output_size):
    """Zeros of the larger shape, with the values where `indices`, counted in one flat channel, say."""
    each = _ntuple(n)
    kernel_size = each(kernel_size)
    stride = kernel_size if stride is None else each(stride)
    shape = list(_unpool_output_size(input, kernel_size, stride, each(padding), output_size))
    if n == 3:
        return _nn.max_unpool3d(input, indices, shape, stride, each(padding))
    if n == 2:
        return _nn.max_unpool2d(input, indices, shape)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*shape, 1]).squeeze(-1)


@overridable
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """A partial inverse of `max_pool1d`: what was not the largest is zero."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """A partial inverse of `max_pool2d`: what was not the largest is zero."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """A partial inverse of `max_pool3d`: what was not the largest is zero."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _fractional(n, input, kernel_size, output_size, output_ratio, samples):
    """Max pooling over windows of one size at random, spread places (Graham's fractional pooling)."""
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    each = _ntuple(n)
    kernel_size = each(kernel_size)
    if output_size is None:
        output_size = [int(input.size(d - n) * r) for d, r in enumerate(each(output_ratio))]
    output_size = each(output_size)
    if samples is None:
        batch = input.size(0) if input.dim() == n + 2 else 1
        samples = tenon.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    return getattr(_nn, name)(input, kernel_size, output_size, samples)


@overridable
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Fractional max pooling and where the largest were."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Fractional max pooling and where the largest were."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Max pooling of random windows to `output_size`, or to `output_ratio` of the input's."""
    both = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


@overridable
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Max pooling of random windows to `output_size`, or to `output_ratio` of the input's."""
    both = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]
