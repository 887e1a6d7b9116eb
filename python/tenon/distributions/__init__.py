# SPDX-License-Identifier: MIT
"""Distributions of random values: samples, densities, entropies, divergences."""

from tenon.distributions import constraints, transforms
from tenon.distributions.continuous import (Beta, Cauchy, Chi2, Exponential, Gamma, Gumbel, HalfCauchy, HalfNormal,
                                            InverseGamma, Laplace, Normal, Pareto, StudentT, Uniform, VonMises, Weibull)
from tenon.distributions.discrete import (Bernoulli, Binomial, Categorical, Geometric, Multinomial, NegativeBinomial,
                                          OneHotCategorical, OneHotCategoricalStraightThrough, Poisson,
                                          RelaxedBernoulli, RelaxedOneHotCategorical)
from tenon.distributions.distribution import Distribution, ExponentialFamily
from tenon.distributions.kl import kl_divergence, register_kl
from tenon.distributions.multivariate import Dirichlet, Independent, MixtureSameFamily, MultivariateNormal
from tenon.distributions.transformed import LogNormal, LogisticNormal, TransformedDistribution
from tenon.distributions.transforms import *  # noqa: F401,F403
from tenon.distributions.transforms import __all__ as _transforms

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential",
           "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
           "InverseGamma", "Laplace", "LogNormal", "LogisticNormal", "MixtureSameFamily", "Multinomial",
           "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
           "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
           "Uniform", "VonMises", "Weibull", "constraints", "kl_divergence", "register_kl", "transforms"] + _transforms
