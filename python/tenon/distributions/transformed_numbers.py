# SPDX-License-Identifier: MIT
"""Distributions of numbers that transforms make of simpler ones: `base_dist` and `transforms` tell how.

Samples are the base's, transformed; densities and moments are formulas of their own."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from tenon.distributions.distribution import Distribution, broadcast_all
from tenon.distributions.rare import _log_beta
from tenon.distributions.transformed import TransformedDistribution
from tenon.distributions.transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform

__all__ = ["Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "Pareto", "Weibull"]


class _Numbers(TransformedDistribution):
    """Events are numbers. `_own` names the parameters that are kept here beside the base's."""

    _own = ()

    def _check_base(self, base, value):
        """What a value comes from must be one of the base's: else its formulas give numbers that mean nothing."""
        if self._validate_args:
            base._validate_sample(value)

    def expand(self, batch_shape, _instance=None):
        library = next(c for c in type(self).__mro__ if globals().get(c.__name__) is c)
        made = self._get_checked_instance(library, _instance)
        for name in self._own:
            made.__dict__[name] = getattr(self, name).expand(batch_shape)
        return super().expand(batch_shape, _instance=made)

    __repr__ = Distribution.__repr__


class InverseGamma(_Numbers):
    """One over a gamma number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self):
        made = self.rate / (self.concentration - 1)
        return tenon.where(self.concentration > 1, made, tenon.full_like(made, math.inf))

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self):
        made = self.rate ** 2 / ((self.concentration - 1) ** 2 * (self.concentration - 2))
        return tenon.where(self.concentration > 2, made, tenon.full_like(made, math.inf))

    def cdf(self, value):
        self._validate_sample(value)
        return tenon.special.gammaincc(self.concentration, self.rate / value)

    def log_prob(self, value):
        self._validate_sample(value)
        return (self.concentration * self.rate.log() - (self.concentration + 1) * value.log() - self.rate / value
                - tenon.lgamma(self.concentration))

    def entropy(self):
        return (self.concentration + self.rate.log() + tenon.lgamma(self.concentration)
                - (1 + self.concentration) * tenon.digamma(self.concentration))


class HalfNormal(_Numbers):
    """The absolute value of a normal number."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: tenon.zeros_like(self.scale))
    variance = property(lambda self: self.scale ** 2 * (1 - 2 / math.pi))

    def log_prob(self, value):
        self._validate_sample(value)
        made = Normal(0 * self.scale, self.scale, validate_args=False).log_prob(value) + math.log(2)
        return tenon.where(value >= 0, made, tenon.full_like(made, -math.inf))

    def cdf(self, value):
        self._validate_sample(value)
        return tenon.erf(value / self.scale / math.sqrt(2))

    def icdf(self, prob):
        return self.scale * tenon.erfinv(prob) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log() - math.log(2)


class HalfCauchy(_Numbers):
    """The absolute value of a Cauchy number."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: tenon.full_like(self.scale, math.inf))
    mode = property(lambda self: tenon.zeros_like(self.scale))
    variance = property(lambda self: tenon.full_like(self.scale, math.inf))

    def log_prob(self, value):
        self._validate_sample(value)
        made = Cauchy(0 * self.scale, self.scale, validate_args=False).log_prob(value) + math.log(2)
        return tenon.where(value >= 0, made, tenon.full_like(made, -math.inf))

    def cdf(self, value):
        self._validate_sample(value)
        return 2 * tenon.atan(value / self.scale) / math.pi

    def icdf(self, prob):
        return self.scale * tenon.tan(math.pi * prob / 2)

    def entropy(self):
        return math.log(2 * math.pi) + self.scale.log()


class Gumbel(_Numbers):
    """The largest of many numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _own = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = tenon.finfo(self.loc.dtype)
        base = Uniform(tenon.full_like(self.loc, info.tiny), tenon.full_like(self.loc, 1 - info.eps),
                       validate_args=validate_args)
        super().__init__(base, [ExpTransform().inv, AffineTransform(0, -tenon.ones_like(self.scale)),
                                ExpTransform().inv, AffineTransform(self.loc, -self.scale)],
                         validate_args=validate_args)

    mean = property(lambda self: self.loc + self.scale * 0.57721566490153286060)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev ** 2)

    def log_prob(self, value):
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value):
        return tenon.exp(-tenon.exp((self.loc - value) / self.scale))

    def icdf(self, value):
        return self.loc - self.scale * tenon.log(-tenon.log(tenon.as_tensor(value)))

    def entropy(self):
        return self.scale.log() + (1 + 0.57721566490153286060)


class Pareto(_Numbers):
    """Numbers above a scale, whose share falls with a power."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True
    _own = ("scale", "alpha")

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(Exponential(self.alpha, validate_args=validate_args),
                         [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    support = constraints.dependent_property(lambda self: constraints.greater_than_eq(self.scale),
                                             is_discrete=False, event_dim=0)
    mode = property(lambda self: self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale ** 2 * a / ((a - 1) ** 2 * (a - 2))

    def log_prob(self, value):
        self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value):
        self._check_base(Exponential(self.alpha), tenon.log(value / self.scale))
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value):
        return self.scale * (1 - value) ** -self.alpha.reciprocal()

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(_Numbers):
    """A power of an exponential time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _own = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(Exponential(tenon.ones_like(self.scale), validate_args=validate_args),
                         [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)],
                         validate_args=validate_args)

    mean = property(lambda self: self.scale * tenon.exp(tenon.lgamma(1 + self.concentration.reciprocal())))
    mode = property(lambda self: self.scale * (1 - self.concentration.reciprocal()) ** self.concentration.reciprocal())
    variance = property(lambda self: self.scale ** 2 * (
        tenon.exp(tenon.lgamma(1 + 2 / self.concentration))
        - tenon.exp(2 * tenon.lgamma(1 + 1 / self.concentration))))

    def log_prob(self, value):
        self._validate_sample(value)
        k, x = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * x.log() - x ** k

    def cdf(self, value):
        time = (value / self.scale) ** self.concentration
        self._check_base(Exponential(tenon.ones_like(self.scale)), time)
        return 1 - tenon.exp(-time)

    def icdf(self, value):
        return self.scale * (-tenon.log1p(-tenon.as_tensor(value))) ** self.concentration.reciprocal()

    def entropy(self):
        k = self.concentration.reciprocal()
        return 0.57721566490153286060 * (1 - k) + tenon.log(self.scale * k) + 1


class Kumaraswamy(_Numbers):
    """Numbers between 0 and 1 whose distribution function is 1 - (1 - x^a)^b."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _own = ("concentration1", "concentration0")

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(tenon.full_like(self.concentration0, 0), tenon.full_like(self.concentration0, 1),
                       validate_args=validate_args)
        super().__init__(base, [PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
                                PowerTransform(self.concentration1.reciprocal())], validate_args=validate_args)

    def _moment(self, n):
        """The expectation of the n-th power: b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        return tenon.exp(b.log() + _log_beta(1 + n / a, b))

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        mode = ((1 - 1 / a) / (b - 1 / a)) ** (1 / a)
        return tenon.where((a < 1) | (b < 1), tenon.full_like(mode, math.nan), mode)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * tenon.log1p(-value ** a)

    def cdf(self, value):
        share = (1 - value ** self.concentration1) ** self.concentration0
        zeros = tenon.zeros_like(self.concentration0)
        self._check_base(Uniform(zeros, zeros + 1), share)
        return 1 - share

    def icdf(self, value):
        return (1 - (1 - value) ** (1 / self.concentration0)) ** (1 / self.concentration1)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = tenon.digamma(b + 1) + 0.57721566490153286060
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
