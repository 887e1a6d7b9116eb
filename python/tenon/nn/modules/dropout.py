# SPDX-License-Identifier: MIT
"""Dropout layers: active in training, the identity otherwise."""

import tenon.nn.functional as F
from tenon.nn.modules.module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """`_drop` of the class, with probability `p`."""

    __constants__ = ["p", "inplace"]
    _drop = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return type(self)._drop(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p` and scales the rest by `1 / (1 - p)`."""

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    _drop = F.dropout1d


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W)."""

    _drop = F.dropout2d


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _drop = F.dropout3d


class AlphaDropout(_DropoutNd):
    """Dropout that keeps zero mean and unit variance, for SELU networks."""

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
