# SPDX-License-Identifier: MIT
"""Observers: modules that note between which numbers a tensor lies, and say what scale and zero point fit it."""

import functools
import warnings

import tenon
from tenon import nn

__all__ = ["MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase",
           "PerChannelMinMaxObserver", "PlaceholderObserver", "default_dynamic_quant_observer", "default_observer",
           "default_per_channel_weight_observer", "default_placeholder_observer", "default_weight_observer"]

# dtype -> the whole numbers that it has, and those of one bit less
_RANGES = {
    tenon.qint8: ((-128, 127), (-64, 63)), tenon.int8: ((-128, 127), (-64, 63)), tenon.quint8: ((0, 255), (0, 127)),
    tenon.uint8: ((0, 255), (0, 127)), tenon.qint32: ((-2**31, 2**31 - 1),) * 2, tenon.int32: ((-2**31, 2**31 - 1),) * 2,
    tenon.int16: ((-2**15, 2**15 - 1),) * 2, tenon.uint16: ((0, 2**16 - 1),) * 2, tenon.quint4x2: ((0, 15),) * 2}
_SYMMETRIC = (tenon.per_tensor_symmetric, tenon.per_channel_symmetric)


class _Maker:
    """A class with some of its arguments: called, it makes an object."""

    def __init__(self, make):
        self.make = make

    def __call__(self, *args, **kwargs):
        return self.make(*args, **kwargs)

    def __repr__(self):
        return repr(self.make)

    def with_args(self, **kwargs):
        return _Maker(functools.partial(self.make, **kwargs))


class ObserverBase(nn.Module):
    """An observer: forward looks at a tensor and returns it."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **kwargs):
        """A maker of observers of these arguments."""
        return _Maker(functools.partial(cls, **kwargs))

    def calculate_qparams(self, **kwargs):
        raise NotImplementedError


class _Bounds(ObserverBase):
    """Between which numbers what was seen lies, as min_val and max_val."""

    _schemes = ()
    _nothing = ((), ())

    def __init__(self, dtype=tenon.quint8, qscheme=None, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None,
                 eps=tenon.finfo(tenon.float32).eps, is_dynamic=False, **kwargs):
        qscheme = self._schemes[0] if qscheme is None else qscheme
        if qscheme not in self._schemes:
            raise NotImplementedError(self._refused)
        super().__init__(dtype, is_dynamic)
        if dtype not in _RANGES:
            raise AssertionError("Default Observer only works for (%s) data type" % ", ".join(str(d) for d in _RANGES))
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if quant_min >= quant_max:
                raise AssertionError("qmin must be less than qmax for user-specified quantization range.")
            self.quant_min, self.quant_max = quant_min, quant_max
        else:
            self.quant_min, self.quant_max = _RANGES[dtype][bool(reduce_range)]
        self.register_buffer("eps", tenon.tensor([eps], dtype=tenon.float32))
        self.reset_min_max_vals()

    def reset_min_max_vals(self):
        low, high = self._nothing
        for name, value in (("min_val", low), ("max_val", high)):
            if name in self._buffers:
                setattr(self, name, tenon.tensor(value))
            else:
                self.register_buffer(name, tenon.tensor(value))

    def _joined(self, low, high):
        """What is noted after a tensor with these bounds was seen."""
        return tenon.minimum(self.min_val, low), tenon.maximum(self.max_val, high)

    def forward(self, x):
        if x.numel():
            low, high = self._bounds_of(x.detach().to(self.min_val.dtype))
            if self._is_new():
                self.min_val, self.max_val = low, high
            else:
                self.min_val, self.max_val = self._joined(low, high)
        return x

    def calculate_qparams(self):
        """Scale and zero point: x is about (q - zero point) * scale."""
        if self._is_new():
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
            return tenon.tensor([1.0]), tenon.tensor([0])
        low, high = self.min_val.clamp(max=0.0).reshape(-1), self.max_val.clamp(min=0.0).reshape(-1)
        span = float(self.quant_max - self.quant_min)
        if self.qscheme in _SYMMETRIC:
            scale = tenon.maximum(tenon.maximum(-low, high) / (span / 2), self.eps)
            zero = 0
            if self.dtype in (tenon.quint8, tenon.uint8):
                zero = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            return scale, tenon.full(scale.shape, zero, dtype=tenon.int64)
        scale = tenon.maximum((high - low) / span, self.eps)
        zero = self.quant_min - tenon.round(low / scale).to(tenon.int32)
        return scale, zero.clamp(self.quant_min, self.quant_max)


class MinMaxObserver(_Bounds):
    """The smallest and the largest of all numbers that were seen."""

    _schemes = (tenon.per_tensor_affine, tenon.per_tensor_symmetric)
    _refused = "MinMaxObserver's qscheme only support torch.per_tensor_symmetric                     and torch.per_tensor_affine."
    _nothing = (float("inf"), float("-inf"))

    def _is_new(self):
        return self.min_val.item() == float("inf") and self.max_val.item() == float("-inf")

    def _bounds_of(self, x):
        return tenon.aminmax(x)

    def extra_repr(self):
        return "min_val=%s, max_val=%s" % (self.min_val.item(), self.max_val.item())


class PerChannelMinMaxObserver(_Bounds):
    """The same for each slice of a dimension."""

    _schemes = (tenon.per_channel_affine, tenon.per_channel_symmetric)
    _refused = ("PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams.")

    def __init__(self, ch_axis=0, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ch_axis = ch_axis

    def _is_new(self):
        return self.min_val.numel() == 0

    def _bounds_of(self, x):
        return tenon.aminmax(x.movedim(self.ch_axis, 0).flatten(1), dim=1)

    def extra_repr(self):
        return "min_val=%s, max_val=%s" % (self.min_val, self.max_val)


class _Moving:
    """Bounds that move towards those of each new tensor."""

    def __init__(self, averaging_constant=0.01, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low, high):
        return (self.min_val + self.averaging_constant * (low - self.min_val),
                self.max_val + self.averaging_constant * (high - self.max_val))


class MovingAverageMinMaxObserver(_Moving, MinMaxObserver):
    """A moving average of the smallest and the largest number of each tensor."""


class MovingAveragePerChannelMinMaxObserver(_Moving, PerChannelMinMaxObserver):
    """The same for each slice of a dimension."""

    def __init__(self, averaging_constant=0.01, ch_axis=0, *args, **kwargs):
        super().__init__(averaging_constant, ch_axis, *args, **kwargs)


class PlaceholderObserver(ObserverBase):
    """Keeps a dtype, and looks at nothing."""

    def __init__(self, dtype=tenon.float32, custom_op_name="", compute_dtype=None, quant_min=None, quant_max=None, qscheme=None,
                 eps=None, is_dynamic=False):
        super().__init__(dtype, is_dynamic or bool(compute_dtype))
        self.qscheme = tenon.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps, self.custom_op = quant_min, quant_max, eps, custom_op_name

    def forward(self, x):
        return x

    def extra_repr(self):
        return "dtype=%s, is_dynamic=%s" % (self.dtype, self.is_dynamic)

    def calculate_qparams(self):
        raise RuntimeError("calculate_qparams should not be called for PlaceholderObserver")


class NoopObserver(ObserverBase):
    """Does nothing."""

    def __init__(self, dtype=tenon.float16, custom_op_name=""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_weight_observer = MinMaxObserver.with_args(dtype=tenon.qint8, qscheme=tenon.per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=tenon.qint8, qscheme=tenon.per_channel_symmetric)
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=tenon.quint8, quant_min=0, quant_max=255, is_dynamic=True)
