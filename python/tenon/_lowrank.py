# SPDX-License-Identifier: MIT
"""Singular values of a matrix that is nearly of low rank, from its action on a few random vectors (Halko, Martinsson and
Tropp, Finding structure with randomness, algorithms 4.4 and 5.1)."""

import tenon


def get_approximate_basis(A, q, niter=2, M=None):
    """A matrix of q orthonormal columns whose span nearly holds the columns of A - M."""
    if not A.is_complex():
        A = A if A.is_floating_point() else A.to(tenon.get_default_dtype())
    if M is not None:
        A = A - M
    Q = tenon.linalg.qr(A @ tenon.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        Q = tenon.linalg.qr(A.mH @ Q).Q
        Q = tenon.linalg.qr(A @ Q).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) of q columns, so that U diag(S) V^H is nearly A - M."""
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    wide = m < n
    if wide:  # work on the shorter side
        A = A.mH
    Q = get_approximate_basis(A, q, niter=niter)
    U, S, Vh = tenon.linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """svd_lowrank of A with the mean of each column taken away: V has the principal directions."""
    if not A.is_floating_point() and not A.is_complex():
        raise ValueError("input must be a floating point tensor, but got %s" % A.dtype)
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError("q(=%d) must be non-negative integer and not greater than min(m, n)=%d" % (q, min(m, n)))
    if not niter >= 0:
        raise ValueError("niter(=%d) must be non-negative integer" % niter)
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter=niter)
