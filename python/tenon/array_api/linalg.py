# SPDX-License-Identifier: MIT
"""Linear algebra by the names and arguments of the array-API standard."""

import tenon
from tenon.array_api import matmul, tensordot, vecdot  # noqa: F401

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


def cholesky(x, /, *, upper=False):
    return tenon.linalg.cholesky(x, upper=upper)


def cross(x1, x2, /, *, axis=-1):
    return tenon.linalg.cross(x1, x2, dim=axis)


def det(x, /):
    return tenon.linalg.det(x)


def diagonal(x, /, *, offset=0):
    return tenon.diagonal(x, offset, -2, -1)


def eigh(x, /):
    return tenon.linalg.eigh(x)


def eigvalsh(x, /):
    return tenon.linalg.eigvalsh(x)


def inv(x, /):
    return tenon.linalg.inv(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return tenon.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x, n, /):
    return tenon.linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    return tenon.linalg.matrix_rank(x) if rtol is None else tenon.linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x, /):
    return x.mT


def outer(x1, x2, /):
    return tenon.outer(x1, x2)


def pinv(x, /, *, rtol=None):
    return tenon.linalg.pinv(x) if rtol is None else tenon.linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    return tenon.linalg.qr(x, mode)


def slogdet(x, /):
    return tenon.linalg.slogdet(x)


def solve(x1, x2, /):
    """The standard takes ``x2`` for a vector only when it has one dimension."""
    if x2.dim() == 1:
        return tenon.linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = tuple(tenon.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
    return tenon.linalg.solve(x1.expand(batch + tuple(x1.shape[-2:])), x2.expand(batch + tuple(x2.shape[-2:])))


def svd(x, /, *, full_matrices=True):
    return tenon.linalg.svd(x, full_matrices=full_matrices)


def svdvals(x, /):
    return tenon.linalg.svdvals(x)


def trace(x, /, *, offset=0, dtype=None):
    return tenon.sum(tenon.diagonal(x, offset, -2, -1), -1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return tenon.linalg.vector_norm(x, ord, axis if axis != () else list(range(x.dim())), keepdims)
