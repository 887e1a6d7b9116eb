# SPDX-License-Identifier: MIT
"""A mode that masks of attention are made under."""

import tenon
from tenon.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """x[i, j] with tensors of one number gathers, so that it works on whole batches under vmap too."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is tenon.Tensor.__getitem__:
            index = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
            if index and all(isinstance(i, tenon.Tensor) for i in index):
                return tenon.ops.aten.index(args[0], list(index))
        return func(*args, **(kwargs or {}))
