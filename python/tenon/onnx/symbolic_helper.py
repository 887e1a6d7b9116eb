# SPDX-License-Identifier: MIT
"""Decorators of functions that would write an operator into an ONNX file. Packages define such functions when they are
imported; Tenon writes no ONNX, and never calls them."""

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors):
    """Leaves the function as it is."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors, scale=None, zero_point=None, quantize_output=True):
    """Leaves the function as it is."""
    return lambda fn: fn
