# SPDX-License-Identifier: MIT
"""Where PyTorch's class of tensors lives, for those who import it from there."""

from tenon import Tensor
from tenon._utils import _rebuild_from_type_v2

__all__ = ["Tensor"]


def _rebuild_from_type(func, type, args, dict):  # noqa: A002
    """A tensor of a class with attributes, as files from before PyTorch 1.11 have it."""
    return _rebuild_from_type_v2(func, type, args, dict)
