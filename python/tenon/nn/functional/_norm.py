# SPDX-License-Identifier: MIT
"""Normalizations."""

import tenon
from tenon.nn.functional._shared import give_way, one_overridden, overridable

_nn = tenon._C._nn


def _verify_batch_size(size):
    count = size[0]
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size):
    count = 1
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """(N, C, *) normalized over everything but channels: by the batch's statistics when training, else by the running ones."""
    if one_overridden(input, running_mean, running_var, weight, bias):
        more = {"weight": weight, "bias": bias, "training": training, "momentum": momentum, "eps": eps}
        return give_way(batch_norm, input, running_mean, running_var, **more)
    if training:
        _verify_batch_size(input.size())
    if eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive, but got {eps}")
    return tenon.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@overridable
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """(N, C, *) normalized over each sample's channel alone."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return tenon.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalized over the last dimensions, which are `normalized_shape`."""
    if one_overridden(input, weight, bias):
        return give_way(layer_norm, input, normalized_shape, weight=weight, bias=bias, eps=eps)
    return tenon.layer_norm(input, normalized_shape, weight, bias, eps, False)


@overridable
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divided by the root mean square over the last dimensions."""
    return tenon.rms_norm(input, normalized_shape, weight, eps)


@overridable
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """(N, C, *) normalized over `num_groups` groups of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return tenon.group_norm(input, num_groups, weight, bias, eps, False)


@overridable
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """(N, C, *) divided by a power of the mean square over `size` neighbouring channels."""
    dim = input.dim()
    if dim < 3:
        raise ValueError("Expected 3D or higher dimensionality" + " " * 26 + f"input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    n, c = input.size(0), input.size(1)
    # Channels become a spatial dimension, over which a pool takes the mean of each neighbourhood.
    padded = tenon.constant_pad_nd(squares.reshape(n, 1, c, -1), (0, 0, size // 2, (size - 1) // 2))
    mean = _nn.avg_pool2d(padded, (size, 1), 1).reshape(input.size())
    return input / mean.mul(alpha).add(k).pow(beta)


@overridable
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """`input` divided by its p-norm along `dim`, where that is above `eps`."""
    denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom if out is None else tenon.div(input, denom, out=out)
