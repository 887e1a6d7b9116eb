# SPDX-License-Identifier: MIT
"""The markers that a model carries which could be quantized. Until it is converted they pass on what they are given, and
Tenon converts none."""

from tenon import nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(nn.Module):
    """Where quantized numbers would begin."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where quantized numbers would end."""


class QuantWrapper(nn.Module):
    """A module between the two markers."""

    def __init__(self, module):
        super().__init__()
        self.add_module("quant", QuantStub(getattr(module, "qconfig", None)))
        self.add_module("dequant", DeQuantStub(getattr(module, "qconfig", None)))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
