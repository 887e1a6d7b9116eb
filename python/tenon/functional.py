# SPDX-License-Identifier: MIT
"""The functions that PyTorch keeps in torch.functional: the same as in the package itself."""

from tenon import (atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_shapes, broadcast_tensors, cartesian_prod,
                   cdist, chain_matmul, einsum, istft, lu, meshgrid, norm, pca_lowrank, split, stft, svd_lowrank,
                   tensordot, unique, unique_consecutive, unravel_index)
from tenon.nn import functional as F  # noqa: F401  (scripts take it from here)

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors",
           "cartesian_prod", "block_diag", "cdist", "chain_matmul", "einsum", "istft", "lu", "norm", "meshgrid", "pca_lowrank",
           "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index"]
