# SPDX-License-Identifier: MIT
"""Distributions of numbers that are used less often."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.continuous import Gamma, _Scalar
from tenon.distributions.distribution import ExponentialFamily, clamp_probs

__all__ = ["ContinuousBernoulli", "FisherSnedecor", "GeneralizedPareto"]


def _log_beta(a, b):
    return tenon.lgamma(a) + tenon.lgamma(b) - tenon.lgamma(a + b)


class FisherSnedecor(_Scalar):
    """The ratio of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        try:
            self._init(validate_args, df1=df1, df2=df2)
        except ValueError:  # in the words of the numbers that it is the ratio of
            for df in (self.df1, self.df2):
                Gamma(df * 0.5, df * 0.5, validate_args=validate_args)
            raise

    @property
    def mean(self):
        df2 = tenon.where(self.df2 > 2, self.df2, tenon.full_like(self.df2, math.nan))
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return tenon.where(self.df1 > 2, mode, tenon.full_like(mode, math.nan))

    @property
    def variance(self):
        df2 = tenon.where(self.df2 > 4, self.df2, tenon.full_like(self.df2, math.nan))
        return 2 * df2 ** 2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape=()):
        over = Gamma(self.df1 / 2, self.df1 / 2, validate_args=False).rsample(sample_shape)
        under = Gamma(self.df2 / 2, self.df2 / 2, validate_args=False).rsample(sample_shape)
        return over / under.clamp(min=tenon.finfo(under.dtype).tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        half1, half2, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        return (half1 * ratio.log() + (half1 - 1) * value.log() - (half1 + half2) * tenon.log1p(ratio * value)
                - _log_beta(half1, half2))


class ContinuousBernoulli(ExponentialFamily):
    """Numbers between 0 and 1 with a density proportional to p^x (1 - p)^(1 - x)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = tenon.as_tensor(probs if logits is None else logits)
        given = given if given.is_floating_point() else given.to(tenon.get_default_dtype())
        if logits is None:
            self.probs = self._param = clamp_probs(given)
        else:
            self.logits = self._param = given
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)

    def __getattr__(self, name):
        own = self.__dict__
        if name == "logits" and "probs" in own:
            own[name] = tenon.log(own["probs"]) - tenon.log1p(-own["probs"])
            return own[name]
        if name == "probs" and "logits" in own:
            own[name] = clamp_probs(tenon.sigmoid(own["logits"]))
            return own[name]
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    param_shape = property(lambda self: self._param.shape)

    def _outside(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _far(self):
        """The probability, moved away from a half, where the formulas lose all digits."""
        return tenon.where(self._outside(), self.probs, tenon.full_like(self.probs, self._lims[0]))

    def _log_norm(self):
        p = self._far()
        below = tenon.where(p <= 0.5, p, tenon.zeros_like(p))
        above = tenon.where(p >= 0.5, p, tenon.ones_like(p))
        exact = tenon.log((tenon.log1p(-p) - p.log()).abs()) - tenon.where(
            p <= 0.5, tenon.log1p(-2 * below), tenon.log(2 * above - 1))
        x = (self.probs - 0.5) ** 2
        return tenon.where(self._outside(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        p, x = self._far(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / (tenon.log1p(-p) - p.log())
        return tenon.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x ** 2) * x)

    @property
    def variance(self):
        p, x = self._far(), (self.probs - 0.5) ** 2
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (tenon.log1p(-p) - p.log()) ** 2
        return tenon.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape=()):
        info = tenon.finfo(self.probs.dtype)
        u = tenon.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype).uniform_(info.tiny, 1 - info.eps)
        return self.icdf(u)

    def log_prob(self, value):
        self._validate_sample(value)
        logits = self.logits
        return value * logits - tenon.nn.functional.softplus(logits) + self._log_norm()

    def cdf(self, value):
        self._validate_sample(value)
        p = self._far()
        exact = (p ** value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        made = tenon.where(self._outside(), exact, value)
        return tenon.where(value <= 0, tenon.zeros_like(made), tenon.where(value >= 1, tenon.ones_like(made), made))

    def icdf(self, value):
        p = self._far()
        exact = (tenon.log1p(-p + value * (2 * p - 1)) - tenon.log1p(-p)) / (p.log() - tenon.log1p(-p))
        return tenon.where(self._outside(), exact, value)

    def entropy(self):
        log0, log1 = tenon.log1p(-self.probs), self.probs.log()
        return self.mean * (log0 - log1) - self._log_norm() - log0


class GeneralizedPareto(_Scalar):
    """What is left above a high bound: heavy tails for a concentration above 0, a bound for one below."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._init(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = tenon.where(self.concentration < 0, self.loc - self.scale / self.concentration,
                            tenon.full_like(self.loc, math.inf))
        return constraints.interval(self.loc, upper)

    def _flat(self):
        return tenon.isclose(self.concentration, tenon.zeros_like(self.concentration))

    def _safe(self):
        return tenon.where(self._flat(), tenon.ones_like(self.concentration), self.concentration)

    @property
    def mean(self):
        k = tenon.where(self.concentration < 1, self.concentration, tenon.zeros_like(self.concentration))
        mean = self.loc + self.scale / (1 - k)
        return tenon.where(self.concentration < 1, mean, tenon.full_like(mean, math.inf))

    @property
    def variance(self):
        k = tenon.where(self.concentration < 0.5, self.concentration, tenon.zeros_like(self.concentration))
        variance = self.scale ** 2 / ((1 - k) ** 2 * (1 - 2 * k))
        return tenon.where(self.concentration < 0.5, variance, tenon.full_like(variance, math.nan))

    mode = property(lambda self: self.loc)

    def rsample(self, sample_shape=()):
        return self.icdf(self._open_uniform(sample_shape, self.loc))

    def log_prob(self, value):
        self._validate_sample(value)
        z, k = (value - self.loc) / self.scale, self._safe()
        steep = -(1 + 1 / k) * tenon.log1p(k * z)
        return -self.scale.log() + tenon.where(self._flat(), -z, steep)

    def log_survival_function(self, value):
        self._validate_sample(value)
        z, k = (value - self.loc) / self.scale, self._safe()
        return tenon.where(self._flat(), -z, -tenon.log1p(k * z) / k)

    def log_cdf(self, value):
        return tenon.log1p(-tenon.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return -tenon.expm1(self.log_survival_function(value))

    def icdf(self, value):
        k = self._safe()
        left = tenon.log1p(-value)
        return self.loc + self.scale * tenon.where(self._flat(), -left, tenon.expm1(-k * left) / k)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
