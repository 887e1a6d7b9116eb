# SPDX-License-Identifier: MIT
"""How masked tensors are made."""
from .core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A masked tensor with a copy of `data`; it is a leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """`data` seen through a mask: gradients go to it."""
    return MaskedTensor._from_values(data, mask)
