# SPDX-License-Identifier: MIT
"""Merging dimensions and splitting one."""

from tenon.nn.modules._kept import Kept
from tenon.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Kept, args="start_dim=1, end_dim=-1"):
    """The dimensions from `start_dim` to `end_dim` as one."""

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """The dimension `dim` split into `unflattened_size`."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input):
        if not isinstance(input, tuple):
            raise TypeError(f"unflattened_size must be a tuple of tuples, but found type {type(input).__name__}")
        for i, e in enumerate(input):
            if not isinstance(e, tuple):
                raise TypeError(
                    f"unflattened_size must be tuple of tuples, but found element of type {type(e).__name__} at pos {i}"
                )

    def _require_tuple_int(self, input):
        if not isinstance(input, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}")
        for i, e in enumerate(input):
            if not isinstance(e, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(e).__name__} at pos {i}"
                )

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
