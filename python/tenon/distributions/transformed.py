# SPDX-License-Identifier: MIT
"""Distributions of values that a transform makes of others' samples."""

import tenon
from tenon.distributions import constraints
from tenon.distributions.continuous import Normal
from tenon.distributions.distribution import Distribution, sum_rightmost
from tenon.distributions.multivariate import Independent
from tenon.distributions.transforms import ComposeTransform, ExpTransform, StickBreakingTransform, Transform

__all__ = ["LogNormal", "LogisticNormal", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """transforms(x), where x has base_distribution."""

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list) or not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms, but was %s" % (transforms,))
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        shape = tenon.Size(tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape))
        own = len(base_distribution.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError("base_distribution needs to have shape with size at least %d, but got %s."
                             % (whole.domain.event_dim, shape))
        made = tuple(whole.forward_shape(shape))
        wanted = tuple(whole.inverse_shape(tenon.Size(made)))
        if wanted != tuple(shape):  # parameters of the transforms have more dimensions
            base_distribution = base_distribution.expand(wanted[:len(wanted) - own])
        extra = whole.domain.event_dim - own
        self.base_dist = Independent(base_distribution, extra) if extra > 0 else base_distribution
        cut = len(made) - (whole.codomain.event_dim + max(own - whole.domain.event_dim, 0))
        super().__init__(made[:cut], made[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        made = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = tenon.Size(batch_shape)
        shape = tenon.Size(tuple(batch_shape) + tuple(self._event_shape))
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        made.base_dist = self.base_dist.expand(tuple(shape[:len(shape) - len(self.base_dist.event_shape)]))
        made.transforms = self.transforms
        Distribution.__init__(made, batch_shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        made = self.transforms[-1].codomain
        more = len(self._event_shape) - made.event_dim
        return constraints.independent(made, more) if more > 0 else made

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=()):
        with tenon.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        event, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), event - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape))

    def _monotone(self, value, question):
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return question
        return sign * (question - 0.5) + 0.5

    def cdf(self, value):
        y = value
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return self._monotone(value, self.base_dist.cdf(y))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotone(value, value)))

    def __repr__(self):
        return type(self).__name__ + "()"


class LogNormal(TransformedDistribution):
    """Numbers whose logarithm is normal."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogNormal, _instance))
    mean = property(lambda self: (self.loc + self.scale ** 2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale ** 2).exp())
    variance = property(lambda self: (self.scale ** 2).expm1() * (2 * self.loc + self.scale ** 2).exp())

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Points of a simplex from normal vectors."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))
