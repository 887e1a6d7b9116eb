# SPDX-License-Identifier: MIT
"""lobpcg: a few of the largest or smallest eigenvalues of a symmetric matrix, which is only multiplied with."""

import tenon

__all__ = ["lobpcg"]


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
           ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """The `k` largest eigenvalues of A x = e B x, or the smallest where `largest` is False, and their vectors in columns, which
    are orthonormal (in B). A is symmetric, dense or sparse, or a batch of dense matrices."""
    if any(t is not None and t.requires_grad for t in (A, B)) and tenon.is_grad_enabled():
        raise NotImplementedError("lobpcg: a matrix that requires grad; torch.linalg.eigh has a gradient")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not supported")
    if method not in (None, "basic", "ortho"):
        raise NotImplementedError("lobpcg: method must be 'basic' or 'ortho', got %r" % (method,))
    rows = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if rows < 3 * n:
        raise ValueError("LPBPCG algorithm is not applicable when the number of A rows (=%d) is smaller than 3 x the number of "
                         "requested eigenpairs (=%d)" % (rows, n))
    dtype = A.dtype if A.dtype in (tenon.float32, tenon.float64) else tenon.float32
    if X is None:
        X = tenon.randn(A.shape[:-1] + (n,), dtype=dtype, device=A.device)
    X = X.to(dtype)
    if X.shape != A.shape[:-1] + (n,):
        raise ValueError("lobpcg: X has sizes %s, expected %s" % (tuple(X.shape), tuple(A.shape[:-1]) + (n,)))
    tol = tenon.finfo(dtype).eps ** 0.5 if tol is None else tol
    niter = 1000 if niter is None or niter < 0 else niter
    largest = True if largest is None else largest
    with tenon.no_grad():
        if A.dim() == 2:
            return _eigenpairs(A, B, X, iK, k, niter, tol, largest)
        flat = [None if t is None else t.expand(A.shape[:-2] + t.shape[-2:]).reshape((-1,) + t.shape[-2:]) for t in (A, B, X, iK)]
        found = [_eigenpairs(*(None if t is None else t[i] for t in flat), k, niter, tol, largest) for i in range(len(flat[0]))]
        values = tenon.stack([e for e, _ in found]).reshape(A.shape[:-2] + (k,))
        return values, tenon.stack([x for _, x in found]).reshape(A.shape[:-1] + (k,))


def _times(matrix, x):
    return x if matrix is None else matrix @ x


def _orthonormal(S, B):
    """A basis of what the columns of S span, orthonormal in B: those that depend on others are left out."""
    for _ in range(2):
        gram = S.mT @ _times(B, S)
        scale = gram.diagonal().clamp(min=tenon.finfo(S.dtype).tiny).rsqrt()
        e, z = tenon.linalg.eigh(gram * scale * scale.unsqueeze(-1))
        kept = e > e[-1] * e.shape[0] * tenon.finfo(S.dtype).eps
        S = (S * scale) @ (z[:, kept] * e[kept].rsqrt())
    return S


def _best(A, S, n, largest):
    """The eigenpairs within what the columns of S span."""
    e, z = tenon.linalg.eigh(S.mT @ (A @ S))
    if largest:
        e, z = e.flip(0), z.flip(1)
    return e[:n], S @ z[:, :n]


def _eigenpairs(A, B, X, iK, k, niter, tol, largest):
    n = X.shape[1]
    e, X = _best(A, _orthonormal(X, B), n, largest)
    P = None
    for _ in range(niter):
        BX = _times(B, X)
        AX = A @ X
        R = AX - BX * e
        size = AX.norm() / X.norm() + e.abs() * (BX.norm() / X.norm())
        if bool((R.norm(dim=0) <= tol * X.norm(dim=0) * size)[:k].all()):
            break
        S = tenon.cat([X, _times(iK, R)] + ([] if P is None else [P]), 1)
        e, new = _best(A, _orthonormal(S, B), n, largest)
        P = new - X @ (BX.mT @ new)
        X = new
    return e[:k], X[:, :k]
