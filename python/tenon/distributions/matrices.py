# SPDX-License-Identifier: MIT
"""Distributions over matrices, and normal vectors whose covariance has few large directions."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.continuous import Beta, Gamma
from tenon.distributions.distribution import Distribution, ExponentialFamily

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "Wishart"]


def _mvlgamma(a, p):
    """The logarithm of the multivariate gamma function."""
    return tenon.lgamma(a.unsqueeze(-1) - 0.5 * tenon.arange(p, dtype=a.dtype)).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices: the density of a matrix is its determinant to a power."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError("Expected dim to be an integer greater than or equal to 2. Found dim=%d." % dim)
        self.dim = dim
        self.concentration = tenon.as_tensor(concentration, dtype=None if isinstance(concentration, tenon.Tensor)
                                             else tenon.get_default_dtype())
        offset = tenon.cat([tenon.zeros(1), tenon.arange(dim - 1, dtype=tenon.get_default_dtype())])
        offset = offset.to(self.concentration.dtype)
        self._beta = Beta(offset + 0.5, self.concentration.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * offset)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return LKJCholesky(self.dim, self.concentration.expand(tuple(batch_shape)), validate_args=False)

    def sample(self, sample_shape=()):
        """Row by row: a direction on a sphere, and how far the row is from the diagonal (the onion method)."""
        with tenon.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = tenon.randn(self._extended_shape(sample_shape), dtype=self.concentration.dtype).tril(-1)
            direction = u / u.norm(dim=-1, keepdim=True).clamp(min=tenon.finfo(u.dtype).tiny)
            w = tenon.sqrt(y) * direction
            diagonal = (1 - (w ** 2).sum(-1)).clamp(min=tenon.finfo(w.dtype).tiny).sqrt()
            first = tenon.arange(self.dim) == 0
            w = tenon.where(first.unsqueeze(-1), tenon.zeros_like(w), w)
            diagonal = tenon.where(first, tenon.ones_like(diagonal), diagonal)
            return w + tenon.diag_embed(diagonal)

    def log_prob(self, value):
        self._validate_sample(value)
        n, dtype = self.dim, self.concentration.dtype
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (self.concentration - 1).unsqueeze(-1) + n - tenon.arange(2, n + 1, dtype=dtype)
        kernel = (order * diagonal.log()).sum(-1)
        m = n - 1
        alpha = self.concentration + 0.5 * m
        norm = 0.5 * m * math.log(math.pi) + _mvlgamma(alpha - 0.5, m) - tenon.lgamma(alpha) * m
        return kernel - norm


class Wishart(ExponentialFamily):
    """Sums of outer products of normal vectors."""

    arg_constraints = {"covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
                       "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [(n, m) for n, m in (("covariance_matrix", covariance_matrix), ("precision_matrix", precision_matrix),
                                     ("scale_tril", scale_tril)) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = tenon.as_tensor(df, dtype=matrix.dtype)
        batch = tuple(tenon.broadcast_shapes(df.shape, matrix.shape[:-2]))
        n = matrix.shape[-1]
        self.df = df.expand(batch)
        matrix = matrix.expand(batch + (n, n))
        setattr(self, name, matrix)
        if bool((self.df <= n - 1).any()):
            raise ValueError("Value of df=%s expected to be greater than ndim - 1 = %d." % (df, n - 1))
        self.arg_constraints = {**self.arg_constraints, "df": constraints.greater_than(n - 1)}
        super().__init__(batch, (n, n), validate_args=validate_args)
        if name == "scale_tril":
            self._lower = matrix
        elif name == "covariance_matrix":
            self._lower = tenon.linalg.cholesky(matrix)
        else:
            self._lower = tenon.linalg.cholesky(tenon.linalg.inv(matrix))

    def __getattr__(self, name):
        lower = self.__dict__.get("_lower")
        if lower is not None and name == "scale_tril":
            return lower
        if lower is not None and name == "covariance_matrix":
            return lower @ lower.mT
        if lower is not None and name == "precision_matrix":
            return tenon.cholesky_inverse(lower)
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        n = self._event_shape[-1]
        factor = tenon.where(self.df - n - 1 > 0, self.df - n - 1, tenon.full_like(self.df, math.nan))
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v ** 2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Bartlett's factors: chi-squared numbers on the diagonal, normal ones below it."""
        n = self._event_shape[-1]
        half = (self.df.unsqueeze(-1) - tenon.arange(n, dtype=self.df.dtype)) / 2
        diagonal = Gamma(half, 0.5, validate_args=False).rsample(sample_shape).sqrt()
        noise = tenon.randn(self._extended_shape(sample_shape), dtype=self.df.dtype).tril(-1)
        factor = self._lower @ (noise + tenon.diag_embed(diagonal))
        return factor @ factor.mT

    def _half_log_det(self):
        return self._lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        n, df = self._event_shape[-1], self.df
        inside = tenon.cholesky_solve(value, self._lower).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (-df * (n * math.log(2.0) / 2 + self._half_log_det()) - _mvlgamma(df / 2, n)
                + (df - n - 1) / 2 * tenon.linalg.slogdet(value).logabsdet - inside / 2)

    def entropy(self):
        n, df = self._event_shape[-1], self.df
        digammas = tenon.digamma((df.unsqueeze(-1) - tenon.arange(n, dtype=df.dtype)) / 2).sum(-1)
        return ((n + 1) * (n * math.log(2.0) / 2 + self._half_log_det()) + _mvlgamma(df / 2, n)
                - (df - n - 1) / 2 * digammas + n * df / 2)


class LowRankMultivariateNormal(Distribution):
    """A normal vector with the covariance W W' + diag(D), where W has few columns."""

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError("cov_factor must be a batch of matrices with shape %d x m" % n)
        if cov_diag.shape[-1] != n:
            raise ValueError("cov_diag must be a batch of vectors with shape %s" % ((n,),))
        try:
            batch = tuple(tenon.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        except RuntimeError as e:
            raise ValueError("Incompatible batch shapes: loc %s, cov_factor %s, cov_diag %s"
                             % (loc.shape, cov_factor.shape, cov_diag.shape)) from e
        self.loc, self.cov_diag = loc.expand(batch + (n,)), cov_diag.expand(batch + (n,))
        self.cov_factor = cov_factor.expand(batch + tuple(cov_factor.shape[-2:]))
        super().__init__(batch, (n,), validate_args=validate_args)

    def _capacitance(self):
        """The Cholesky factor of I + W' D^-1 W."""
        w = self.cov_factor
        return tenon.linalg.cholesky(tenon.eye(w.shape[-1], dtype=w.dtype) + w.mT @ (w / self.cov_diag.unsqueeze(-1)))

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.cov_factor ** 2).sum(-1) + self.cov_diag)

    @property
    def covariance_matrix(self):
        return self.cov_factor @ self.cov_factor.mT + tenon.diag_embed(self.cov_diag)

    @property
    def precision_matrix(self):
        return tenon.linalg.inv(self.covariance_matrix)

    @property
    def scale_tril(self):
        return tenon.linalg.cholesky(self.covariance_matrix)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        few = tenon.randn(tuple(shape[:-1]) + (self.cov_factor.shape[-1],), dtype=self.loc.dtype)
        own = tenon.randn(shape, dtype=self.loc.dtype)
        return self.loc + (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * own

    def _log_det(self, lower):
        return 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        gap, lower = value - self.loc, self._capacitance()
        seen = self.cov_factor.mT @ (gap / self.cov_diag).unsqueeze(-1)
        part = tenon.linalg.solve_triangular(lower, seen, upper=False).squeeze(-1)
        distance = (gap ** 2 / self.cov_diag).sum(-1) - (part ** 2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det(lower) + distance)

    def entropy(self):
        made = 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det(self._capacitance()))
        return made.expand(self._batch_shape)
