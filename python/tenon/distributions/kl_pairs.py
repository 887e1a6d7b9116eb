# SPDX-License-Identifier: MIT
"""Divergences between distributions of different kinds, and those that are infinite because p has values that q has not.

Each is minus the entropy of p less the expectation under p of the log density of q, which needs a few moments of p."""

import math

import tenon
from tenon.distributions import continuous as c, discrete as d, matrices, multivariate as m, rare, transformed
from tenon.distributions import transformed_numbers as numbers
from tenon.distributions.distribution import ExponentialFamily
from tenon.distributions.kl import kl_divergence, register_kl

__all__ = []

EULER = 0.57721566490153286060


def _where(condition, value):
    """`value`, and infinity where `condition` holds."""
    condition, value = tenon.broadcast_tensors(condition, value)
    return value.masked_fill(condition, math.inf)


def _infinite(p, _):
    return tenon.full_like(p.mean, math.inf)


for _p, _qs in ((c.Beta, (numbers.Pareto,)), (rare.ContinuousBernoulli, (numbers.Pareto,)),
                (c.Exponential, (c.Beta, rare.ContinuousBernoulli, numbers.Pareto, c.Uniform)),
                (c.Gamma, (c.Beta, rare.ContinuousBernoulli, numbers.Pareto, c.Uniform)),
                (numbers.Gumbel, (c.Beta, rare.ContinuousBernoulli, c.Exponential, c.Gamma, numbers.Pareto, c.Uniform)),
                (c.Laplace, (c.Beta, rare.ContinuousBernoulli, c.Exponential, c.Gamma, numbers.Pareto, c.Uniform)),
                (c.Normal, (c.Beta, rare.ContinuousBernoulli, c.Exponential, c.Gamma, numbers.Pareto, c.Uniform)),
                (numbers.Pareto, (c.Beta, rare.ContinuousBernoulli, c.Uniform)),
                (d.Poisson, (d.Bernoulli, d.Binomial))):
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


# ---- expectations of the log density of q, negated, from moments of p ----

def _exponential(q, mean):
    return q.rate * mean - q.rate.log()


def _gamma(q, mean, mean_log):
    return (q.concentration.lgamma() - q.concentration * q.rate.log() - (q.concentration - 1) * mean_log
            + q.rate * mean)


def _normal(q, mean, variance):
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + (variance + (mean - q.loc) ** 2) / (2 * q.scale ** 2)


def _gumbel(q, mean, mean_exp):
    """mean_exp: the expectation of exp(-x / q.scale)."""
    return q.scale.log() + (mean - q.loc) / q.scale + tenon.exp(q.loc / q.scale) * mean_exp


def _continuous_bernoulli(q, mean):
    return -mean * q.logits - tenon.log1p(-q.probs) - q._log_norm()


def _mean_log(p):
    """The expectation of log x."""
    if isinstance(p, c.Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, c.Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, c.Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, numbers.Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _uniform_mean_log(p.low, p.high)


def _uniform_mean_log(low, high):
    """The mean of log x from low to high."""
    return (tenon.xlogy(high, high) - tenon.xlogy(low, low)) / (high - low) - 1


@register_kl(c.Beta, c.Exponential)
@register_kl(rare.ContinuousBernoulli, c.Exponential)
@register_kl(c.Gamma, c.Exponential)
def _(p, q):
    return _exponential(q, p.mean) - p.entropy()


@register_kl(c.Beta, c.Gamma)
@register_kl(c.Exponential, c.Gamma)
def _(p, q):
    return _gamma(q, p.mean, _mean_log(p)) - p.entropy()


@register_kl(c.Beta, c.Normal)
@register_kl(rare.ContinuousBernoulli, c.Normal)
@register_kl(c.Exponential, c.Normal)
@register_kl(c.Gamma, c.Normal)
@register_kl(numbers.Gumbel, c.Normal)
@register_kl(c.Laplace, c.Normal)
@register_kl(c.Uniform, c.Normal)
def _(p, q):
    return _normal(q, p.mean, p.variance) - p.entropy()


@register_kl(c.Beta, rare.ContinuousBernoulli)
@register_kl(rare.ContinuousBernoulli, rare.ContinuousBernoulli)
def _(p, q):
    return _continuous_bernoulli(q, p.mean) - p.entropy()


@register_kl(c.Beta, c.Uniform)
@register_kl(rare.ContinuousBernoulli, c.Uniform)
def _(p, q):
    return _where((q.low > 0) | (q.high < 1), (q.high - q.low).log() - p.entropy())


# ---- of a Gumbel number: the expectation of exp(-x / scale) ----

@register_kl(c.Exponential, numbers.Gumbel)
def _(p, q):
    return _gumbel(q, p.mean, p.rate / (p.rate + q.scale.reciprocal())) - p.entropy()


@register_kl(c.Gamma, numbers.Gumbel)
def _(p, q):
    return _gumbel(q, p.mean, tenon.exp(-p.concentration * tenon.log1p((p.rate * q.scale).reciprocal()))) - p.entropy()


@register_kl(numbers.Gumbel, numbers.Gumbel)
def _(p, q):
    ratio = p.scale / q.scale
    return _gumbel(q, p.mean, tenon.exp(-p.loc / q.scale + (1 + ratio).lgamma())) - p.entropy()


@register_kl(c.Normal, numbers.Gumbel)
def _(p, q):
    return _gumbel(q, p.mean, tenon.exp(-p.loc / q.scale + 0.5 * (p.scale / q.scale) ** 2)) - p.entropy()


@register_kl(c.Uniform, numbers.Gumbel)
def _(p, q):
    ends = tenon.exp(-p.low / q.scale) - tenon.exp(-p.high / q.scale)
    return _gumbel(q, p.mean, ends * q.scale / (p.high - p.low)) - p.entropy()


# ---- others on a line ----

@register_kl(c.Cauchy, c.Cauchy)
def _(p, q):
    return (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()


@register_kl(c.Normal, c.Laplace)
def _(p, q):
    gap = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * tenon.exp(-0.5 * gap ** 2) + gap * tenon.erf(gap * math.sqrt(0.5)))
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(numbers.Pareto, c.Exponential)
def _(p, q):
    return _where(p.alpha <= 1, _exponential(q, p.mean) - p.entropy())


@register_kl(numbers.Pareto, c.Gamma)
def _(p, q):
    return _where(p.alpha <= 1, _gamma(q, p.mean, _mean_log(p)) - p.entropy())


@register_kl(numbers.Pareto, c.Normal)
def _(p, q):
    return _where(p.alpha <= 2, _normal(q, p.mean, p.variance) - p.entropy())


@register_kl(numbers.Pareto, numbers.Pareto)
def _(p, q):
    made = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return _where(p.scale < q.scale, made)


@register_kl(c.Uniform, c.Beta)
def _(p, q):
    a, b = q.concentration1, q.concentration0
    below, above = _uniform_mean_log(p.low, p.high), _uniform_mean_log(1 - p.high, 1 - p.low)
    made = a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * below - (b - 1) * above - p.entropy()
    return _where((p.low < 0) | (p.high > 1), made)


@register_kl(c.Uniform, rare.ContinuousBernoulli)
def _(p, q):
    return _where((p.low < 0) | (p.high > 1), _continuous_bernoulli(q, p.mean) - p.entropy())


@register_kl(c.Uniform, c.Exponential)
def _(p, q):
    return _where(p.low < 0, _exponential(q, p.mean) - p.entropy())


@register_kl(c.Uniform, c.Gamma)
def _(p, q):
    return _where(p.low < 0, _gamma(q, p.mean, _mean_log(p)) - p.entropy())


@register_kl(c.Uniform, numbers.Pareto)
def _(p, q):
    made = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return _where(p.low < q.scale, made)


# ---- counts ----

@register_kl(d.Bernoulli, d.Poisson)
def _(p, q):
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(d.Binomial, d.Binomial)
def _(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    made = p.total_count * (p.probs * (p.logits - q.logits) + tenon.log1p(-p.probs) - tenon.log1p(-q.probs))
    return _where(p.total_count > q.total_count, made)


# ---- vectors and matrices ----

@register_kl(matrices.LowRankMultivariateNormal, matrices.LowRankMultivariateNormal)
@register_kl(matrices.LowRankMultivariateNormal, m.MultivariateNormal)
@register_kl(m.MultivariateNormal, matrices.LowRankMultivariateNormal)
def _(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two (Low Rank) Multivariate Normals with                          "
                         "different event shapes cannot be computed")
    return kl_divergence(*(m.MultivariateNormal(each.loc, scale_tril=each.scale_tril, validate_args=False)
                           for each in (p, q)))


@register_kl(matrices.Wishart, matrices.Wishart)
def _(p, q):
    n = p.event_shape[-1]
    half, log_dets = (p.df - q.df) / 2, [2 * each._half_log_det() for each in (p, q)]
    digammas = tenon.digamma((p.df.unsqueeze(-1) - tenon.arange(n, dtype=p.df.dtype)) / 2).sum(-1)
    trace = (tenon.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False) ** 2).sum((-1, -2))
    return (half * digammas - q.df / 2 * (log_dets[0] - log_dets[1]) + p.df / 2 * (trace - n)
            - matrices._mvlgamma(p.df / 2, n) + matrices._mvlgamma(q.df / 2, n))


@register_kl(transformed.TransformedDistribution, transformed.TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    raise NotImplementedError("The cross KL-divergence between different exponential families cannot                  "
                              "           be computed using Bregman divergences")
