# SPDX-License-Identifier: MIT
"""Shapes as tensors, which a tracer would keep in its graph."""

import tenon


def shape_as_tensor(x):
    """The sizes of x, a tensor of int64."""
    return tenon.tensor(x.shape, dtype=tenon.int64)


def reshape_from_tensor_shape(x, shape):
    """x with the sizes that stand in the tensor `shape`."""
    return x.reshape(shape.tolist())
