# SPDX-License-Identifier: MIT
"""Distances of pairs of vectors."""

import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept
from tenon.nn.modules.module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


class PairwiseDistance(Module):
    """The p-norm of the difference of vectors: (N, D) and (N, D) to (N)."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Kept, args="dim=1, eps=1e-8"):
    """The cosine of the angle of vectors along `dim`."""

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self):
        return ""
