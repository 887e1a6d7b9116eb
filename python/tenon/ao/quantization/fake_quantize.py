# SPDX-License-Identifier: MIT
"""Fake quantization: numbers are rounded to those that a quantized tensor would have, and stay what they are."""

import functools

import tenon
from tenon import nn

from .observer import MovingAverageMinMaxObserver, _Maker

__all__ = ["FakeQuantize", "FakeQuantizeBase", "default_fake_quant", "default_weight_fake_quant", "disable_fake_quant",
           "disable_observer", "enable_fake_quant", "enable_observer"]


class FakeQuantizeBase(nn.Module):
    """Two switches: whether numbers are observed, and whether they are rounded."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", tenon.tensor([1], dtype=tenon.uint8))
        self.register_buffer("observer_enabled", tenon.tensor([1], dtype=tenon.uint8))

    def enable_fake_quant(self, enabled=True):
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        return _Maker(functools.partial(cls, **kwargs))


class FakeQuantize(FakeQuantizeBase):
    """Rounds by the scale and zero point of an observer."""

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.is_dynamic = is_dynamic
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        seen = self.activation_post_process
        self.quant_min, self.quant_max, self.dtype, self.qscheme = seen.quant_min, seen.quant_max, seen.dtype, seen.qscheme
        self.ch_axis = getattr(seen, "ch_axis", -1)
        self.is_per_channel = self.qscheme in (tenon.per_channel_affine, tenon.per_channel_symmetric)
        self.register_buffer("scale", tenon.tensor([1.0]))
        self.register_buffer("zero_point", tenon.tensor([0], dtype=tenon.int32))

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            self.scale, zero = self.calculate_qparams()
            self.zero_point = zero.to(tenon.int32)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return tenon.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, self.quant_min,
                                                          self.quant_max)
        return tenon.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, self.quant_min, self.quant_max)

    def extra_repr(self):
        return ("fake_quant_enabled=%s, observer_enabled=%s, quant_min=%s, quant_max=%s, dtype=%s, qscheme=%s, ch_axis=%s, scale=%s, "
                "zero_point=%s" % (self.fake_quant_enabled, self.observer_enabled, self.quant_min, self.quant_max, self.dtype,
                                   self.qscheme, self.ch_axis, self.scale, self.zero_point))


def _switch(name):
    def call(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "For Module.apply: %s() of each fake quantizer." % name
    return call


disable_fake_quant, enable_fake_quant = _switch("disable_fake_quant"), _switch("enable_fake_quant")
disable_observer, enable_observer = _switch("disable_observer"), _switch("enable_observer")
default_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=tenon.quint8,
                                            qscheme=tenon.per_tensor_affine, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127,
                                                   dtype=tenon.qint8, qscheme=tenon.per_tensor_symmetric, reduce_range=False)
