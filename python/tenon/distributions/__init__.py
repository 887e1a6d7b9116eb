# SPDX-License-Identifier: MIT
"""Distributions of random values: samples, densities, entropies, divergences."""

from tenon.distributions import (bernoulli, categorical, constraints, normal, transformed_distribution,  # noqa: F401
                                 transforms, utils)
from tenon.distributions.continuous import (Beta, Cauchy, Chi2, Exponential, Gamma, Laplace, Normal, StudentT, Uniform,
                                            VonMises)
from tenon.distributions.discrete import (Bernoulli, Binomial, Categorical, Geometric, Multinomial, NegativeBinomial,
                                          OneHotCategorical, OneHotCategoricalStraightThrough, Poisson)
from tenon.distributions.distribution import Distribution, ExponentialFamily
from tenon.distributions.constraint_registry import biject_to, transform_to
from tenon.distributions.kl import kl_divergence, register_kl
from tenon.distributions import kl_pairs  # noqa: F401: registers its formulas
from tenon.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, Wishart
from tenon.distributions.more_transforms import *  # noqa: F401,F403
from tenon.distributions.more_transforms import __all__ as _more_transforms
from tenon.distributions.multivariate import Dirichlet, Independent, MixtureSameFamily, MultivariateNormal
from tenon.distributions.rare import ContinuousBernoulli, FisherSnedecor, GeneralizedPareto
from tenon.distributions.relaxed import (ExpRelaxedCategorical, LogitRelaxedBernoulli, RelaxedBernoulli,
                                         RelaxedOneHotCategorical)
from tenon.distributions.transformed import LogNormal, LogisticNormal, TransformedDistribution
from tenon.distributions.transformed_numbers import (Gumbel, HalfCauchy, HalfNormal, InverseGamma, Kumaraswamy, Pareto,
                                                     Weibull)
from tenon.distributions.transforms import *  # noqa: F401,F403
from tenon.distributions.transforms import __all__ as _transforms

for _name in _more_transforms:  # in PyTorch, all transforms are in one module
    setattr(transforms, _name, globals()[_name])
transforms.__all__ = sorted(_transforms + _more_transforms)

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential",
           "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
           "InverseGamma", "Laplace", "LogNormal", "LogisticNormal", "MixtureSameFamily", "Multinomial",
           "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
           "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
           "Uniform", "VonMises", "Weibull", "constraints", "kl_divergence", "register_kl", "transforms", "ContinuousBernoulli",
           "FisherSnedecor", "GeneralizedPareto", "Kumaraswamy", "LKJCholesky", "LowRankMultivariateNormal", "Wishart",
           "biject_to", "transform_to"] + _transforms + _more_transforms


def _make_paths():
    """The modules of their own that PyTorch gives its distributions: `from torch.distributions.beta import Beta`."""
    import sys
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    for path, names in (
            ("beta", "Beta"), ("binomial", "Binomial"), ("cauchy", "Cauchy"), ("chi2", "Chi2"),
            ("dirichlet", "Dirichlet"), ("exp_family", "ExponentialFamily"), ("exponential", "Exponential"),
            ("gamma", "Gamma"), ("geometric", "Geometric"), ("gumbel", "Gumbel"), ("half_cauchy", "HalfCauchy"),
            ("half_normal", "HalfNormal"), ("independent", "Independent"), ("inverse_gamma", "InverseGamma"),
            ("laplace", "Laplace"), ("log_normal", "LogNormal"), ("logistic_normal", "LogisticNormal"),
            ("mixture_same_family", "MixtureSameFamily"), ("multinomial", "Multinomial"),
            ("multivariate_normal", "MultivariateNormal"), ("negative_binomial", "NegativeBinomial"),
            ("one_hot_categorical", "OneHotCategorical OneHotCategoricalStraightThrough"), ("pareto", "Pareto"),
            ("poisson", "Poisson"), ("relaxed_bernoulli", "RelaxedBernoulli LogitRelaxedBernoulli"),
            ("relaxed_categorical", "RelaxedOneHotCategorical ExpRelaxedCategorical"), ("studentT", "StudentT"),
            ("continuous_bernoulli", "ContinuousBernoulli"), ("fishersnedecor", "FisherSnedecor"),
            ("generalized_pareto", "GeneralizedPareto"), ("kumaraswamy", "Kumaraswamy"), ("lkj_cholesky", "LKJCholesky"),
            ("lowrank_multivariate_normal", "LowRankMultivariateNormal"), ("wishart", "Wishart"),
            ("uniform", "Uniform"), ("von_mises", "VonMises"), ("weibull", "Weibull")):
        full = "%s.%s" % (__name__, path)
        module = ModuleType(full, "The path of %s in PyTorch." % names)
        module.__spec__ = ModuleSpec(full, None)
        for name in names.split():
            globals()[name].__module__ = full  # as messages show it
        module.__dict__.update({name: globals()[name] for name in names.split()}, __all__=names.split(),
                               Distribution=Distribution, constraints=constraints)
        sys.modules[full] = globals()[path] = module
    for name, path in (("TransformedDistribution", "transformed_distribution"), ("Normal", "normal"),
                       ("Bernoulli", "bernoulli"), ("Categorical", "categorical"), *((t, "transforms") for t in _more_transforms)):
        globals()[name].__module__ = "%s.%s" % (__name__, path)
    from tenon.distributions import multivariate
    for name in ("_batch_mahalanobis", "_batch_mv", "_precision_to_scale_tril"):
        setattr(globals()["multivariate_normal"], name, getattr(multivariate, name))


_make_paths()
