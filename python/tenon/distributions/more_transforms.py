# SPDX-License-Identifier: MIT
"""Transforms to matrices, by a distribution function, and of parts of a tensor."""

import tenon
from tenon.distributions import constraints
from tenon.distributions.transforms import Transform, _Plain

__all__ = ["CatTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "LowerCholeskyTransform",
           "PositiveDefiniteTransform", "StackTransform"]


class CorrCholeskyTransform(_Plain):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors of n by n correlation matrices."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    @staticmethod
    def _size(length):
        n = round((0.25 + 2 * length) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != length:
            raise ValueError("Input is not a flattend lower-diagonal number")
        return n

    def _call(self, x):
        n = self._size(x.shape[-1])
        eps = tenon.finfo(x.dtype).eps
        flat = tenon.tanh(x).clamp(-1 + eps, 1 - eps)
        rows, cols = tenon.tril_indices(n, n, -1)
        lower = tenon.zeros(tuple(x.shape[:-1]) + (n, n), dtype=x.dtype).index_put(
            self._at(x, rows, cols), flat)
        left = (1 - lower ** 2).sqrt().cumprod(-1)
        lower = lower + tenon.eye(n, dtype=x.dtype)
        return lower * tenon.nn.functional.pad(left[..., :-1], [1, 0], value=1)

    @staticmethod
    def _at(x, rows, cols):
        """Places of the strict lower triangle in every matrix of a batch."""
        batch = x.shape[:-1]
        index = [tenon.arange(k).reshape((k,) + (1,) * (len(batch) - i)) for i, k in enumerate(batch)]
        return tuple(index) + (rows, cols)

    def _inverse(self, y):
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        left = tenon.nn.functional.pad(left[..., :-1], [1, 0], value=1)
        rows, cols = tenon.tril_indices(n, n, -1)
        t = y[..., rows, cols] / left[..., rows, cols].sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        rows, cols = tenon.tril_indices(n - 1, n - 1, -1)
        stick = 0.5 * left[..., 1:, :-1][..., rows, cols].log().sum(-1) if n > 2 else 0.0
        soft = x + tenon.nn.functional.softplus(-2 * x) - 0.6931471805599453
        return stick - 2 * soft.sum(-1)

    def forward_shape(self, shape):
        n = self._size(shape[-1])
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(_Plain):
    """Matrices to lower triangles with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + tenon.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y):
        return y.tril(-1) + tenon.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(_Plain):
    """Matrices to positive-definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(tenon.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """A distribution's own distribution function."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


class CatTransform(Transform):
    """A transform for each part of a dimension."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths,
                                                                        cache_size)

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def _parts(self, x):
        if x.shape[self.dim] != self.length:
            raise AssertionError
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        return tenon.cat([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y):
        return tenon.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        return tenon.cat([t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, self._parts(x),
                                                                          self._parts(y))], self.dim)


class StackTransform(Transform):
    """A transform for each slice of a dimension."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _slices(self, value, name):
        """One for each transform."""
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for {name} with {value.dim()} dimensions")
        if value.size(self.dim) != len(self.transforms):
            raise AssertionError(f"{name}.size({self.dim}) = {value.size(self.dim)} must equal len(transforms) "
                                 f"{len(self.transforms)}")
        return value.unbind(self.dim)

    def _call(self, x):
        return tenon.stack([t(part) for t, part in zip(self.transforms, self._slices(x, "x"))], self.dim)

    def _inverse(self, y):
        return tenon.stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y, "y"))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        return tenon.stack([t.log_abs_det_jacobian(a, b) for t, a, b in zip(
            self.transforms, self._slices(x, "x"), self._slices(y, "y"))], self.dim)
