# SPDX-License-Identifier: MIT
"""Numbers as if they were kept in few bits, for training that allows for it. Loaded when a function is first named."""

import tenon
from tenon._asking import overridable

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


class _FakeQuantize(tenon.autograd.Function):
    """The gradient passes where a value was within the range."""

    @staticmethod
    def forward(ctx, input, scale, zero_point, quant_min, quant_max):
        whole = (input * (1.0 / scale)).round() + zero_point
        ctx.save_for_backward((whole >= quant_min) & (whole <= quant_max))
        return (whole.nan_to_num(nan=quant_min).clamp(quant_min, quant_max) - zero_point) * scale

    @staticmethod
    def backward(ctx, grad):
        mask, = ctx.saved_tensors
        return grad * mask, None, None, None, None


def _check_range(zero_points, quant_min, quant_max):
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if any(not quant_min <= z <= quant_max for z in zero_points):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


@overridable
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """Each value as the nearest of those that whole numbers from quant_min to quant_max stand for."""
    scale = scale.item() if isinstance(scale, tenon.Tensor) else scale
    zero_point = zero_point.item() if isinstance(zero_point, tenon.Tensor) else zero_point
    _check_range([zero_point], quant_min, quant_max)
    return _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)


@overridable
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """The same with a scale and a zero for each slice of a dimension."""
    if scale.dim() != 1 or scale.shape != zero_point.shape or scale.shape[0] != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check_range(zero_point.tolist(), quant_min, quant_max)
    shape = [1] * input.dim()
    shape[axis] = -1
    return _FakeQuantize.apply(input, scale.reshape(shape), zero_point.reshape(shape).to(scale.dtype), quant_min, quant_max)
