# SPDX-License-Identifier: MIT
"""Parametrizations that come ready: weight norm, spectral norm, orthogonality."""

from enum import Enum, auto

import tenon
import tenon.nn.functional as F
from tenon.nn.init import _orthonormal
from tenon.nn.modules.module import Module
from tenon.nn.utils import parametrize
from tenon.nn.utils.weight_norm import norm_except_dim, weight_from

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _held(module, name):
    found = getattr(module, name, None)
    if not isinstance(found, tenon.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _solve(M, B):
    """`M^-1 @ B` by elimination without pivots, which is safe where the symmetric part of `M` is positive definite."""
    n = M.size(-1)
    eye = tenon.eye(n, dtype=M.dtype, device=M.device)
    T = tenon.cat([M, B.expand_as(M)], dim=-1)
    for j in range(n):
        row = T[..., j : j + 1, :] / T[..., j : j + 1, j : j + 1]
        T = T - (T[..., :, j : j + 1] - eye[:, j : j + 1]) * row
    return T[..., n:]


class _Orthogonal(Module):
    """A matrix with orthonormal columns (rows, if it is wide) computed from a free one."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.size(-2), X.size(-1)
        wide = n < k
        if wide:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == _OrthMaps.householder:
            eye = tenon.eye(n, k, dtype=X.dtype, device=X.device)
            Q = eye
            for j in range(k - 1, -1, -1):  # reflections from the last to the first, as they stand below the diagonal
                v = self._reflector(X, j)
                tau = 2.0 / (1.0 + (v[..., j + 1 :] ** 2).sum(-1))
                Q = Q - tau[..., None, None] * v.unsqueeze(-1) @ (v.unsqueeze(-2) @ Q)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = tenon.cat([X, X.new_zeros(*X.shape[:-2], n, n - k)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                Q = tenon.matrix_exp(A)
            else:
                eye = tenon.eye(n, dtype=A.dtype, device=A.device)
                Q = _solve(eye - 0.5 * A, eye + 0.5 * A)
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base"):
            Q = self.base @ Q if self.base is not None else Q
        return Q.mT if wide else Q

    @staticmethod
    def _reflector(X, j):
        """The j-th column below the diagonal, with 1 on it and 0 above."""
        head = X.new_zeros(*X.shape[:-2], j)
        one = X.new_ones(*X.shape[:-2], 1)
        return tenon.cat([head, one, X[..., j + 1 :, j]], dim=-1)

    @tenon.no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        Q_init = Q
        Q = Q.mT if wide else Q
        n, k = Q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map in (_OrthMaps.cayley, _OrthMaps.matrix_exp):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = tenon.geqrf(Q)
            signs = A.diagonal(dim1=-2, dim2=-1)  # those of the triangle, which is to have none but positive ones there
            signs.sign_()
            signs[tau == 0.0] *= -1  # where no reflection was needed
            return A.mT if wide else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _orthonormal(Q)
        else:
            extra = tenon.randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _orthonormal(tenon.cat([Q, extra], dim=-1))
        self.base = Q
        neg_id = tenon.zeros_like(Q_init)
        neg_id.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return neg_id


def _is_orthogonal(Q, eps=None):
    n, k = Q.size(-2), Q.size(-1)
    eye = tenon.eye(k, dtype=Q.dtype, device=Q.device)
    eps = 10.0 * n * tenon.finfo(Q.dtype).eps
    return tenon.allclose(Q.mH @ Q, eye, atol=eps)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep the matrix `name` orthogonal, by 'matrix_exp', 'cayley' or 'householder'."""
    weight = _held(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    """A weight from its length (original0) and its direction (original1)."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_from(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Parametrize `name` by its length along `dim` (original0) and its direction (original1)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        # Files of the older weight norm have <name>_g and <name>_v.
        old_g, old_v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if old_g in state_dict and old_v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(old_g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(old_v)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iteration follows in training."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            mat = self._reshape_weight_to_matrix(weight)
            h, w = mat.size()
            self.register_buffer("_u", F.normalize(mat.new_empty(h).normal_(0, 1), dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(mat.new_empty(w).normal_(0, 1), dim=0, eps=eps))
            self._power_method(mat, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, weight_mat, n_power_iterations):
        with tenon.no_grad():
            for _ in range(n_power_iterations):
                F.normalize(tenon.mv(weight_mat, self._v), dim=0, eps=self.eps, out=self._u)
                F.normalize(tenon.mv(weight_mat.mH, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        mat = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(mat, self.n_power_iterations)
        u = self._u.clone()
        v = self._v.clone()
        return weight / tenon.vdot(u, tenon.mv(mat, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide `name` by its largest singular value."""
    weight = _held(module, name)
    if dim is None:
        from tenon.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
