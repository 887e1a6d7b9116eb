# SPDX-License-Identifier: MIT
"""Distributions over vectors, and distributions that are made of others."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.distribution import (Distribution, ExponentialFamily, _standard_normal, lazy_property,
                                              sum_rightmost)

__all__ = ["Dirichlet", "Independent", "MixtureSameFamily", "MultivariateNormal"]


def solve_lower(lower, vector):
    """x with lower x = vector, for the last dimension of vector."""
    return tenon.linalg.solve_triangular(lower, vector.unsqueeze(-1), upper=False).squeeze(-1)


def _batch_mv(bmat, bvec):
    """Products of a batch of matrices with a batch of vectors."""
    return tenon.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """The squared length of x in the measure that a Cholesky factor gives."""
    return (solve_lower(bL, bx) ** 2).sum(-1)


def _precision_to_scale_tril(P):
    """The Cholesky factor of the inverse of a matrix: that of the matrix, turned around, gives it by one solution."""
    upper = tenon.linalg.cholesky(P.flip((-2, -1))).flip((-2, -1)).mT
    return tenon.linalg.solve_triangular(upper, tenon.eye(P.shape[-1], dtype=P.dtype, device=P.device), upper=False)


class Dirichlet(ExponentialFamily):
    """Probabilities that sum to 1."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        """Where all concentrations are below 1 there is none inside: the corner of the largest."""
        above = (self.concentration - 1).clamp(min=0)
        corner = tenon.nn.functional.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1]).to(above.dtype)
        return tenon.where((self.concentration < 1).all(-1, keepdim=True), corner, above / above.sum(-1, True))

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    def rsample(self, sample_shape=()):
        return tenon._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return tenon.xlogy(a - 1.0, value).sum(-1) + tenon.lgamma(a.sum(-1)) - tenon.lgamma(a).sum(-1)

    def entropy(self):
        k, a = self.concentration.shape[-1], self.concentration
        total = a.sum(-1)
        return (tenon.lgamma(a).sum(-1) - tenon.lgamma(total) - (k - total) * tenon.digamma(total)
                - ((a - 1.0) * tenon.digamma(a)).sum(-1))


class MultivariateNormal(Distribution):
    """A normal vector, by its covariance, its inverse or the covariance's Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if given[0].dim() < 2:
            raise ValueError("%s matrix must be at least two-dimensional, with optional leading batch dimensions"
                             % ("covariance" if covariance_matrix is not None else
                                "precision" if precision_matrix is not None else "scale_tril"))
        batch = tenon.broadcast_shapes(given[0].shape[:-2], loc.shape[:-1])
        n = loc.shape[-1]
        matrix = given[0].expand(tuple(batch) + (n, n))
        self.loc = loc.expand(tuple(batch) + (n,))
        if scale_tril is not None:
            self.scale_tril, self._unbroadcasted_scale_tril = matrix, scale_tril
        elif covariance_matrix is not None:
            self.covariance_matrix = matrix
        else:
            self.precision_matrix = matrix
        super().__init__(batch, (n,), validate_args=validate_args)
        if scale_tril is None and covariance_matrix is not None:
            self._unbroadcasted_scale_tril = tenon.linalg.cholesky(covariance_matrix)
        elif scale_tril is None:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        made = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = tenon.Size(batch_shape)
        made.loc = self.loc.expand(tuple(batch_shape) + tuple(self._event_shape))
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name].expand(tuple(batch_shape) + tuple(self._event_shape) * 2)
        Distribution.__init__(made, batch_shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._matrices)

    @lazy_property
    def covariance_matrix(self):
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand(self._matrices)

    @lazy_property
    def precision_matrix(self):
        return tenon.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrices)

    _matrices = property(lambda self: tuple(self._batch_shape) + tuple(self._event_shape) * 2)
    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self._unbroadcasted_scale_tril ** 2).sum(-1).expand(
        tuple(self._batch_shape) + tuple(self._event_shape)))

    def rsample(self, sample_shape=()):
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value):
        self._validate_sample(value)
        x = solve_lower(self._unbroadcasted_scale_tril, value - self.loc)
        half = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + (x ** 2).sum(-1)) - half

    def entropy(self):
        half = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half).expand(self._batch_shape)


class Independent(Distribution):
    """Another distribution, the last dimensions of whose batch belong to the event."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch = tuple(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual %d vs %d"
                             % (reinterpreted_batch_ndims, len(batch)))
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + tuple(base_distribution.event_shape), validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)
    support = constraints.dependent_property(
        lambda self: constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)
        if self.reinterpreted_batch_ndims else self.base_dist.support)

    has_enumerate_support = property(lambda self: self.reinterpreted_batch_ndims == 0
                                     and self.base_dist.has_enumerate_support)

    def expand(self, batch_shape, _instance=None):
        made = self._get_checked_instance(Independent, _instance)
        batch_shape = tenon.Size(batch_shape)
        made.base_dist = self.base_dist.expand(
            tuple(batch_shape) + tuple(self._event_shape[:self.reinterpreted_batch_ndims]))
        made.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(made, batch_shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return "Independent(%s, %d)" % (self.base_dist, self.reinterpreted_batch_ndims)


class MixtureSameFamily(Distribution):
    """A categorical choice among the last dimension of a batch of distributions."""

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        from tenon.distributions.discrete import Categorical
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch, own = tuple(component_distribution.batch_shape), mixture_distribution.batch_shape
        for a, b in zip(reversed(own), reversed(batch[:-1])):
            if a != 1 and b != 1 and a != b:
                raise ValueError("`mixture_distribution.batch_shape` (%r) is not compatible with "
                                 "`component_distribution.batch_shape`(%r)" % (own, tenon.Size(batch[:-1])))
        choices = mixture_distribution.logits.shape[-1]
        if batch and choices != batch[-1]:
            raise ValueError("`mixture_distribution component` (%d) does not equal "
                             "`component_distribution.batch_shape[-1]` (%d)" % (choices, batch[-1]))
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    support = constraints.dependent_property(lambda self: constraints.MixtureSameFamilyConstraint(
        self._component_distribution.support))

    def _pad(self, value):
        return value.unsqueeze(-1 - self._event_ndims)

    def _weights(self):
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self):
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        w = self._weights()
        inner = (w * self._component_distribution.variance).sum(-1 - self._event_ndims)
        outer = (w * (self._component_distribution.mean - self._pad(self.mean)) ** 2).sum(-1 - self._event_ndims)
        return inner + outer

    def log_prob(self, x):
        self._validate_sample(x)
        each = self._component_distribution.log_prob(self._pad(x))
        return tenon.logsumexp(each + tenon.log_softmax(self._mixture_distribution.logits, -1), -1)

    def cdf(self, x):
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape=()):
        with tenon.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            each = self._component_distribution.sample(sample_shape)
            at = len(tuple(sample_shape)) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand(chosen.shape + (1,) + tuple(self._event_shape))
            return tenon.gather(each, at, index).squeeze(at)

    def __repr__(self):
        return "MixtureSameFamily(\n  %s,\n  %s)" % (self._mixture_distribution, self._component_distribution)
