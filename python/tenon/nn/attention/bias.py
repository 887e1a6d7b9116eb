# SPDX-License-Identifier: MIT
"""Causal masks for attention between sequences of different lengths."""

import tenon

__all__ = ["causal_upper_left", "causal_lower_right"]


def _causal(rows, cols, diagonal):
    return tenon.ones(rows, cols, dtype=tenon.bool).tril(diagonal=diagonal)


def causal_upper_left(*size):
    """(rows, cols) True where a query may look, the diagonal starting in the upper left corner."""
    rows, cols = size
    return _causal(rows, cols, 0)


def causal_lower_right(*size):
    """(rows, cols) True where a query may look, the diagonal ending in the lower right corner."""
    rows, cols = size
    return _causal(rows, cols, cols - rows)
