# SPDX-License-Identifier: MIT
"""Tensors over other libraries' memory, and theirs over ours."""

from tenon._C import from_dlpack  # noqa: F401


def to_dlpack(tensor):
    """A capsule over the memory of a tensor. It can be taken once."""
    return tensor.__dlpack__()
