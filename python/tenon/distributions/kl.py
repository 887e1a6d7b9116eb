# SPDX-License-Identifier: MIT
"""kl_divergence(p, q), by formulas that are registered for pairs of classes."""

import math

import tenon
from tenon.distributions import continuous as c, discrete as d, multivariate as m, transformed_numbers as numbers
from tenon.distributions.distribution import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_table = _KL_REGISTRY = {}


def register_kl(type_p, type_q):
    """A decorator: the function computes the divergence for these classes and their subclasses."""
    def register(function):
        _table[type_p, type_q] = function
        return function
    return register


def _find(type_p, type_q):
    """The formula of the nearest classes."""
    found = [(type_p.__mro__.index(p) + type_q.__mro__.index(q), function) for (p, q), function in _table.items()
             if issubclass(type_p, p) and issubclass(type_q, q)]
    return min(found, key=lambda one: one[0])[1] if found else None


def kl_divergence(p, q):
    """The expectation under p of log p - log q."""
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError("No KL(p || q) is implemented for p type %s and q type %s"
                                  % (type(p).__name__, type(q).__name__))
    return function(p, q)


@register_kl(c.Normal, c.Normal)
def _(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(c.Laplace, c.Laplace)
def _(p, q):
    ratio, gap = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + gap / q.scale + ratio * tenon.exp(-gap / p.scale) - 1


@register_kl(c.Uniform, c.Uniform)
def _(p, q):
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return tenon.where((q.low > p.low) | (q.high < p.high), tenon.full_like(made, math.inf), made)


@register_kl(c.Exponential, c.Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(c.Gamma, c.Gamma)
def _(p, q):
    return (q.concentration * (p.rate / q.rate).log() + tenon.lgamma(q.concentration) - tenon.lgamma(p.concentration)
            + (p.concentration - q.concentration) * tenon.digamma(p.concentration)
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(c.Beta, c.Beta)
def _(p, q):
    a, b, e, f = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    mine, theirs = a + b, e + f
    return (tenon.lgamma(e) + tenon.lgamma(f) + tenon.lgamma(mine) - tenon.lgamma(a) - tenon.lgamma(b)
            - tenon.lgamma(theirs) + (a - e) * tenon.digamma(a) + (b - f) * tenon.digamma(b)
            + (theirs - mine) * tenon.digamma(mine))


@register_kl(m.Dirichlet, m.Dirichlet)
def _(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    return (total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
            + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1))


@register_kl(d.Bernoulli, d.Bernoulli)
def _(p, q):
    f = tenon.nn.functional.softplus
    one = p.probs * (f(-q.logits) - f(-p.logits))
    zero = (1 - p.probs) * (f(q.logits) - f(p.logits))
    one = tenon.where((q.probs == 0) & (p.probs != 0), tenon.full_like(one, math.inf), tenon.where(
        p.probs == 0, tenon.zeros_like(one), one))
    zero = tenon.where((q.probs == 1) & (p.probs != 1), tenon.full_like(zero, math.inf), tenon.where(
        p.probs == 1, tenon.zeros_like(zero), zero))
    return one + zero


@register_kl(d.Categorical, d.Categorical)
def _(p, q):
    made = p.probs * (p.logits - q.logits)
    made = tenon.where((q.probs == 0).expand_as(made), tenon.full_like(made, math.inf), made)
    return tenon.where((p.probs == 0).expand_as(made), tenon.zeros_like(made), made).sum(-1)


@register_kl(d.OneHotCategorical, d.OneHotCategorical)
def _(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(d.Poisson, d.Poisson)
def _(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(d.Geometric, d.Geometric)
def _(p, q):
    return -p.entropy() - tenon.log1p(-q.probs) / p.probs - q.logits


@register_kl(numbers.HalfNormal, numbers.HalfNormal)
def _(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(m.MultivariateNormal, m.MultivariateNormal)
def _(p, q):
    n = p.event_shape[0]
    lp, lq = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    half = lq.diagonal(dim1=-2, dim2=-1).log().sum(-1) - lp.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    trace = (tenon.linalg.solve_triangular(lq, lp, upper=False) ** 2).sum((-1, -2))
    gap = (m.solve_lower(lq, q.loc - p.loc) ** 2).sum(-1)
    return half + 0.5 * (trace + gap - n)


@register_kl(m.Independent, m.Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
