# SPDX-License-Identifier: MIT
"""Runs a graph and writes each value's shape and dtype into its node."""

import collections

import tenon
from tenon.fx.interpreter import Interpreter
from tenon.fx.node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]

TensorMetadata = collections.namedtuple(
    "TensorMetadata", ("shape", "dtype", "requires_grad", "stride", "memory_format", "is_quantized", "qparams"))


def _extract_tensor_metadata(result, include_contiguity=True):
    layout = None
    if include_contiguity:
        for kind in (tenon.contiguous_format, tenon.channels_last):
            if result.is_contiguous(memory_format=kind) if kind is not tenon.channels_last or result.dim() == 4 else False:
                layout = kind
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """`ShapeProp(module).propagate(*inputs)`: node.meta["tensor_meta"] and node.meta["type"]."""

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n):
        result = super().run_node(n)
        seen = []

        def look(value):
            if isinstance(value, tenon.Tensor):
                seen.append(value)
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, look)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        return super().run(*args)
