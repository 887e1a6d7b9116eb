# SPDX-License-Identifier: MIT
"""Distributions over numbers on a line."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.distribution import Distribution, ExponentialFamily, broadcast_all

__all__ = ["Beta", "Cauchy", "Chi2", "Exponential", "Gamma", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]


def standard_gamma(concentration):
    """Samples of Gamma(concentration, 1) that carry a gradient."""
    return tenon._C._VariableFunctions._standard_gamma(concentration)


class _Scalar(Distribution):
    """Parameters of one shape, which is the batch's; events are numbers."""

    def _init(self, validate_args, **parameters):
        made = broadcast_all(*parameters.values())
        for name, value in zip(parameters, made):
            setattr(self, name, value)
        Distribution.__init__(self, made[0].shape, validate_args=validate_args)

    def _noise(self, sample_shape, like):
        return tenon.empty(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)

    def _open_uniform(self, sample_shape, like):
        """Uniform numbers that are neither 0 nor 1."""
        info = tenon.finfo(like.dtype)
        return self._noise(sample_shape, like).uniform_(info.tiny, 1 - info.eps)


class Normal(_Scalar, ExponentialFamily):
    """The bell curve."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._init(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale ** 2)

    def rsample(self, sample_shape=()):
        return self.loc + self._noise(sample_shape, self.loc).normal_() * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        self._validate_sample(value)
        return 0.5 * (1 + tenon.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * tenon.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(_Scalar):
    """Two exponentials, back to back."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._init(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale ** 2)
    stddev = property(lambda self: self.scale * math.sqrt(2))

    def rsample(self, sample_shape=()):
        u = self._noise(sample_shape, self.loc).uniform_(tenon.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * tenon.log1p(-u.abs().clamp(min=tenon.finfo(u.dtype).tiny))

    def log_prob(self, value):
        self._validate_sample(value)
        return -tenon.log(2 * self.scale) - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        self._validate_sample(value)
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * tenon.expm1(-x.abs() / self.scale)

    def icdf(self, value):
        x = value - 0.5
        return self.loc - self.scale * x.sign() * tenon.log1p(-2 * x.abs())

    def entropy(self):
        return 1 + tenon.log(2 * self.scale)


class Cauchy(_Scalar):
    """The ratio of two normal numbers: it has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._init(validate_args, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)
    mean = property(lambda self: tenon.full_like(self.loc, math.nan))
    variance = property(lambda self: tenon.full_like(self.loc, math.inf))

    def rsample(self, sample_shape=()):
        return self.loc + self._noise(sample_shape, self.loc).cauchy_() * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._validate_sample(value)
        return tenon.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return tenon.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(_Scalar):
    """Every number from low up to high."""

    has_rsample = True

    @property
    def arg_constraints(self):
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low, high, validate_args=None):
        self._init(validate_args, low=low, high=high)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12 ** 0.5)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape=()):
        return self.low + self._noise(sample_shape, self.low).uniform_() * (self.high - self.low)

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return tenon.log(inside.to(self.low.dtype)) - tenon.log(self.high - self.low)

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return tenon.log(self.high - self.low)


class Exponential(_Scalar, ExponentialFamily):
    """The time until something happens that happens at a steady rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self._init(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: tenon.zeros_like(self.rate))
    variance = property(lambda self: self.rate ** -2)

    def rsample(self, sample_shape=()):
        return self._noise(sample_shape, self.rate).exponential_() / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_sample(value)
        return 1 - tenon.exp(-self.rate * value)

    def icdf(self, value):
        return -tenon.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - tenon.log(self.rate)


class Gamma(_Scalar, ExponentialFamily):
    """Sums of exponential times; the concentration is how many."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self._init(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate ** 2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        made = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return made.clamp(min=tenon.finfo(made.dtype).tiny)

    def log_prob(self, value):
        value = tenon.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        return (tenon.xlogy(self.concentration, self.rate) + tenon.xlogy(self.concentration - 1, value)
                - self.rate * value - tenon.lgamma(self.concentration))

    def entropy(self):
        return (self.concentration - self.rate.log() + tenon.lgamma(self.concentration)
                + (1.0 - self.concentration) * tenon.digamma(self.concentration))

    def cdf(self, value):
        self._validate_sample(value)
        return tenon.special.gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
    """Sums of squares of normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)


class Beta(_Scalar, ExponentialFamily):
    """Numbers between 0 and 1: a share of two gamma numbers."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        try:
            self._init(validate_args, concentration1=concentration1, concentration0=concentration0)
        except ValueError:  # in the words of the pair
            from tenon.distributions.multivariate import Dirichlet

            Dirichlet(tenon.stack([self.concentration1, self.concentration0], -1), validate_args=validate_args)
            raise

    _shows_parameters = False
    _total = property(lambda self: self.concentration1 + self.concentration0)
    mean = property(lambda self: self.concentration1 / self._total)

    @property
    def mode(self):
        a, b = (self.concentration1 - 1).clamp(min=0), (self.concentration0 - 1).clamp(min=0)
        ends = (self.concentration1 >= self.concentration0).to(a.dtype)
        return tenon.where((self.concentration1 < 1) & (self.concentration0 < 1), ends, a / (a + b))

    variance = property(lambda self: self.concentration1 * self.concentration0
                        / (self._total ** 2 * (self._total + 1)))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        # Not by two gamma numbers: small ones are too small for their dtype, and their share is lost.
        both = tenon.stack((self.concentration1.expand(shape), self.concentration0.expand(shape)), -1)
        return tenon._sample_dirichlet(both).select(-1, 0)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (tenon.xlogy(a - 1, value) + tenon.special.xlog1py(b - 1, -value)
                + tenon.lgamma(a + b) - tenon.lgamma(a) - tenon.lgamma(b))

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return (tenon.lgamma(a) + tenon.lgamma(b) - tenon.lgamma(a + b) - (a - 1) * tenon.digamma(a)
                - (b - 1) * tenon.digamma(b) + (a + b - 2) * tenon.digamma(a + b))


class StudentT(_Scalar):
    """A normal number over the root of the mean of squares of others."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        try:
            self._init(validate_args, df=df, loc=loc, scale=scale)
        except ValueError:
            Chi2(self.df, validate_args=validate_args)  # in the words of the squares, where it is those that cannot be
            raise

    mean = property(lambda self: tenon.where(self.df > 1, self.loc, tenon.full_like(self.loc, math.nan)))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        made = self.scale ** 2 * self.df / (self.df - 2)
        made = tenon.where(self.df > 2, made, tenon.full_like(made, math.inf))
        return tenon.where(self.df > 1, made, tenon.full_like(made, math.nan))

    def rsample(self, sample_shape=()):
        x = self._noise(sample_shape, self.loc).normal_()
        z = 2 * standard_gamma((0.5 * self.df).expand(x.shape))
        return self.loc + self.scale * x * tenon.rsqrt(z / self.df)

    def log_prob(self, value):
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        return (-0.5 * (self.df + 1.0) * tenon.log1p(y ** 2 / self.df) - self.scale.log() - 0.5 * self.df.log()
                - 0.5 * math.log(math.pi) - tenon.lgamma(0.5 * self.df) + tenon.lgamma(0.5 * (self.df + 1.0)))

    def entropy(self):
        a, b = 0.5 * (self.df + 1), 0.5 * self.df
        beta = tenon.lgamma(b) + math.lgamma(0.5) - tenon.lgamma(a)
        return self.scale.log() + a * (tenon.digamma(a) - tenon.digamma(b)) + 0.5 * self.df.log() + beta


class VonMises(_Scalar):
    """A bell curve on the circle."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self._init(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - tenon.special.i1e(self.concentration) / tenon.special.i0e(self.concentration))

    def sample(self, sample_shape=()):
        """Best and Fisher's rejection method."""
        with tenon.no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.to(tenon.float64).expand(shape)
            tau = 1 + (1 + 4 * k ** 2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = tenon.where(k < 1e-5, 1 / k + k, (1 + rho ** 2) / (2 * rho))
            made, waiting = tenon.zeros_like(k), tenon.ones_like(k, dtype=tenon.bool)
            while bool(waiting.any()):
                u1, u2, u3 = (tenon.rand_like(k) for _ in range(3))
                z = tenon.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                good = (c * (2 - c) - u2 > 0) | (tenon.log(c / u2) + 1 - c >= 0)
                made = tenon.where(waiting & good, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), made)
                waiting = waiting & ~good
            return ((made + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value):
        self._validate_sample(value)
        bessel = tenon.special.i0e(self.concentration).log() + self.concentration
        return self.concentration * tenon.cos(value - self.loc) - math.log(2 * math.pi) - bessel
