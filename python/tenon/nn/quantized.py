# SPDX-License-Identifier: MIT
"""Operations as modules, as models carry them that could be quantized. They compute with the numbers they are given."""

import tenon
from tenon import nn

__all__ = ["FloatFunctional"]


def __getattr__(name):
    if name == "dynamic":
        from tenon.ao.nn.quantized import dynamic
        return dynamic
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class FloatFunctional(nn.Module):
    """add, mul, cat and others, with a place for what would observe their results."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the forward. Please use the underlying operation")

    def add(self, x, y):
        return self.activation_post_process(tenon.add(x, y))

    add_scalar = add

    def mul(self, x, y):
        return self.activation_post_process(tenon.mul(x, y))

    mul_scalar = mul

    def cat(self, x, dim=0):
        return self.activation_post_process(tenon.cat(x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(tenon.relu(tenon.add(x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(tenon.matmul(x, y))
