# SPDX-License-Identifier: MIT
"""Quantization, as far as it needs no quantized tensors."""

from .fake_quantize import (FakeQuantize, FakeQuantizeBase, default_fake_quant, default_weight_fake_quant, disable_fake_quant,
                            disable_observer, enable_fake_quant, enable_observer)
from .observer import (MinMaxObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, NoopObserver,
                       ObserverBase, PerChannelMinMaxObserver, PlaceholderObserver, default_dynamic_quant_observer,
                       default_observer, default_per_channel_weight_observer, default_placeholder_observer,
                       default_weight_observer)
from .qconfig import QConfig, default_dynamic_qconfig, default_qconfig, float16_dynamic_qconfig
from .quantize import quantize_dynamic
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "DeQuantStub", "FakeQuantize", "FakeQuantizeBase", "MinMaxObserver", "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver",
    "QConfig", "QuantStub", "QuantWrapper", "default_dynamic_qconfig", "default_dynamic_quant_observer", "default_fake_quant",
    "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer", "default_qconfig",
    "default_weight_fake_quant", "default_weight_observer", "disable_fake_quant", "disable_observer", "enable_fake_quant",
    "enable_observer", "float16_dynamic_qconfig", "quantize_dynamic"]
