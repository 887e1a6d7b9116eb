# SPDX-License-Identifier: MIT
"""Which observers a layer's numbers go through."""

from collections import namedtuple

import tenon
from tenon import nn

from .observer import (default_dynamic_quant_observer, default_observer, default_placeholder_observer, default_weight_observer,
                       PlaceholderObserver)

__all__ = ["QConfig", "default_dynamic_qconfig", "default_qconfig", "float16_dynamic_qconfig"]


class QConfig(namedtuple("QConfig", ("activation", "weight"))):
    """Makers of the observers of activations and of weights."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("QConfig received observer instance, please pass observer class instead. Use "
                             "MyObserver.with_args(x=1) to override arguments to constructor if needed")
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(activation=default_observer, weight=default_weight_observer)
default_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_weight_observer)
float16_dynamic_qconfig = QConfig(activation=default_placeholder_observer,
                                  weight=PlaceholderObserver.with_args(dtype=tenon.float16))
