# SPDX-License-Identifier: MIT
"""Dropout: of elements, of whole channels, and the kind that keeps mean and variance (for SELU networks)."""

import math
import warnings

import tenon
from tenon.nn.functional._shared import give_way, overridable, overridden


def _check(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(input, keep, channels):
    shape = [input.size(0), input.size(1)] + [1] * (input.dim() - 2) if channels else input.shape
    return tenon.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(keep)


def _apply(input, p, training, inplace, channels=False, alpha=False):
    """Dropout composed from a mask; `channels` gives one draw for each of (N, C)."""
    if p != p:
        raise RuntimeError("dropout probability has to be between 0 and 1, but got nan")
    if p == 0 or not training or input.numel() == 0:
        return input
    if channels and input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = _noise(input, 1 - p, channels)
    if not alpha:
        noise.div_(1 - p)
        return input.mul_(noise) if inplace else input * noise
    dropped = 1.7580993408473766  # where SELU goes for very negative inputs, without the sign
    a = 1.0 / math.sqrt((dropped * dropped * p + 1) * (1 - p))
    shift = (noise - 1).mul_(dropped * a).add_(dropped * a * p)
    noise.mul_(a)
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability `p` and scale the rest by `1 / (1 - p)`; the input itself when not training."""
    if overridden(input):
        return give_way(dropout, input, p=p, training=training, inplace=inplace)
    _check(p)
    return tenon.dropout_(input, p, training) if inplace else tenon.dropout(input, p, training)


@overridable
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps zero mean and unit variance."""
    _check(p)
    return _apply(input, p, training, inplace, alpha=True)


@overridable
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels."""
    _check(p)
    return _apply(input, p, training, inplace, channels=True, alpha=True)


def _feature(input, p, training, inplace, batched):
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _apply(input, p, training, inplace, channels=True)
    if not batched:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


@overridable
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _feature(input, p, training, inplace, input.dim() == 3)


def _warn_dims(n, dims):
    warnings.warn(
        f"dropout{n}d: Received a {dims}-D input to dropout{n}d, which is deprecated and will result in an error in a future "
        "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"dropout{n}d exists to provide channel-wise dropout on inputs with {n} spatial dimensions, a channel dimension, and "
        f"an optional batch dimension (i.e. {n + 1}D or {n + 2}D inputs).",
        stacklevel=4,
    )


@overridable
def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    _check(p)
    if input.dim() not in (3, 4):
        _warn_dims(2, input.dim())
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
            "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=3,
        )
    return _apply(input, p, training, inplace, channels=True)


@overridable
def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check(p)
    if input.dim() not in (4, 5):
        _warn_dims(3, input.dim())
    return _feature(input, p, training, inplace, input.dim() == 5)
