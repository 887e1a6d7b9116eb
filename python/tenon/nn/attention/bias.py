# SPDX-License-Identifier: MIT
"""Causal masks for attention between sequences of different lengths."""

from enum import IntEnum, auto

import tenon

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """In which corner the diagonal of a causal mask starts, or ends."""
    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(tenon.Tensor):
    """A causal mask that knows what it is: (seq_len_q, seq_len_kv), True where a query may look. What is computed from it is
    an ordinary tensor."""

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        diagonal = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        return tenon.ones(seq_len_q, seq_len_kv, dtype=tenon.bool).tril(diagonal=diagonal).as_subclass(cls)

    def __init__(self, variant, seq_len_q, seq_len_kv):
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def _materialize(self, device=None):
        return self.as_subclass(tenon.Tensor).to(device)

    def __repr__(self):
        return repr(self._materialize())

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is tenon.nn.functional.scaled_dot_product_attention and (
                kwargs.get("is_causal") or len(args) > 5 and args[5]):
            raise ValueError("CausalBias should not be used with causal=True")
        with tenon._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def causal_upper_left(*size):
    """(rows, cols) True where a query may look, the diagonal starting in the upper left corner."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """(rows, cols) True where a query may look, the diagonal ending in the lower right corner."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
