# SPDX-License-Identifier: MIT
"""Helpers, at the path where scripts look for them."""

from tenon.distributions.distribution import (_standard_normal, broadcast_all, clamp_probs, lazy_property,
                                              logits_to_probs, probs_to_logits, sum_rightmost)

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
           "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060
_sum_rightmost = sum_rightmost


def vec_to_tril_matrix(vec, diag=0):
    """Lower triangles from vectors of their elements, row by row, up to a diagonal."""
    import tenon
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = tenon.finfo(vec.dtype).eps
    if not tenon._C._get_tracing_state() and round(n) - n > eps:
        raise ValueError("The size of last dimension is %d which cannot be expressed as the lower triangular part of a "
                         "square D x D matrix." % vec.shape[-1])
    n = int(round(n))
    out = vec.new_zeros(tuple(vec.shape[:-1]) + (n, n))
    rows, cols = tenon.tril_indices(n, n, diag)
    out[..., rows, cols] = vec
    return out


def tril_matrix_to_vec(mat, diag=0):
    """The elements of lower triangles, row by row, up to a diagonal."""
    import tenon
    n = mat.shape[-1]
    if not tenon._C._get_tracing_state() and (diag < -n or diag >= n):
        raise ValueError("diag (%d) provided is outside [%d, %d]." % (diag, -n, n - 1))
    rows, cols = tenon.tril_indices(n, n, diag)
    return mat[..., rows, cols]
