# SPDX-License-Identifier: MIT
"""Writes distributions.json beside this file: densities and moments that PyTorch's distributions give.

  python3 tests/python/golden/make_distributions.py      needs PyTorch 2.11
"""

import json
import os

import torch
import torch.distributions as D

HERE = os.path.dirname(os.path.abspath(__file__))

# A distribution and a value, as expressions in D and t (tensor of float64).
CASES = [
    ("D.Normal(t([0., 1.]), t([1., 2.5]))", "t([[0.3, -1.], [2., 4.]])"),
    ("D.Laplace(t([0., 1.]), t([1., 2.5]))", "t([0.3, -1.])"), ("D.Cauchy(t([0., 1.]), t([1., 2.5]))", "t([0.3, -1.])"),
    ("D.Uniform(t([0., 1.]), t([1., 2.5]))", "t([0.3, 2.])"), ("D.Exponential(t([0.5, 2.]))", "t([0.3, 2.])"),
    ("D.Gamma(t([0.5, 3.]), t([1., 2.]))", "t([0.3, 2.])"), ("D.Chi2(t([3., 4.]))", "t([0.3, 2.])"),
    ("D.InverseGamma(t([2.5, 3.]), t([1., 2.]))", "t([0.3, 2.])"), ("D.Beta(t([0.5, 3.]), t([1., 2.]))", "t([0.3, 0.8])"),
    ("D.StudentT(t([3., 5.]), t([0., 1.]), t([1., 2.]))", "t([0.3, 2.])"), ("D.HalfNormal(t([1., 2.]))", "t([0.3, 2.])"),
    ("D.HalfCauchy(t([1., 2.]))", "t([0.3, 2.])"), ("D.Gumbel(t([0., 1.]), t([1., 2.]))", "t([0.3, 2.])"),
    ("D.Pareto(t([1., 2.]), t([3., 4.]))", "t([1.5, 2.5])"), ("D.Weibull(t([1., 2.]), t([3., 0.5]))", "t([1.5, 2.5])"),
    ("D.VonMises(t([0., 1.]), t([3., 0.5]))", "t([0.5, -2.])"), ("D.LogNormal(t([0., 1.]), t([1., 0.5]))", "t([0.5, 2.])"),
    ("D.Bernoulli(t([0.2, 0.9]))", "t([0., 1.])"), ("D.Bernoulli(logits=t([-1., 2.]))", "t([0., 1.])"),
    ("D.Geometric(t([0.2, 0.9]))", "t([3., 0.])"), ("D.Binomial(5, t([0.2, 0.9]))", "t([3., 5.])"),
    ("D.NegativeBinomial(t([3., 4.]), t([0.2, 0.7]))", "t([3., 5.])"), ("D.Poisson(t([0.5, 4.]))", "t([3., 5.])"),
    ("D.Categorical(t([[1., 2., 3.], [0.2, 0.2, 0.6]]))", "t([2., 0.])"),
    ("D.Categorical(logits=t([1., -2., 3.]))", "t([2., 0.])"),
    ("D.OneHotCategorical(t([0.2, 0.3, 0.5]))", "t([0., 1., 0.])"),
    ("D.Multinomial(4, t([0.2, 0.3, 0.5]))", "t([1., 1., 2.])"),
    ("D.Dirichlet(t([[1., 2., 3.], [0.5, 0.5, 4.]]))", "t([0.2, 0.3, 0.5])"),
    ("D.MultivariateNormal(t([0., 1.]), t([[2., 0.5], [0.5, 1.]]))", "t([[0.3, 2.], [1., 1.]])"),
    ("D.MultivariateNormal(t([0., 1.]), scale_tril=t([[2., 0.], [0.5, 1.]]))", "t([0.3, 2.])"),
    ("D.MultivariateNormal(t([0., 1.]), precision_matrix=t([[2., 0.5], [0.5, 1.]]))", "t([0.3, 2.])"),
    ("D.Independent(D.Normal(t([[0., 1.], [2., 3.]]), t([[1., 2.], [1., 2.]])), 1)", "t([0.3, 2.])"),
    ("D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Normal(t([0., 1.]), t([1., 2.])))", "t([0.3, 2.])"),
    ("D.TransformedDistribution(D.Normal(t([0., 1.]), t([1., 2.])), [D.TanhTransform()])", "t([0.3, -0.9])"),
    ("D.TransformedDistribution(D.Normal(t([0., 1.]), t([1., 2.])), [D.AffineTransform(1., -2.), D.SigmoidTransform()])",
     "t([0.3, 0.9])"),
    ("D.LogisticNormal(t([0., 1.]), t([1., 2.]))", "t([0.2, 0.3, 0.5])"),
    ("D.RelaxedBernoulli(t(0.5), t([0.2, 0.7]))", "t([0.3, 0.9])"),
    ("D.RelaxedOneHotCategorical(t(0.5), t([0.2, 0.3, 0.5]))", "t([0.2, 0.3, 0.5])"),
    ("D.relaxed_bernoulli.LogitRelaxedBernoulli(t(0.5), t([0.2, 0.7]))", "t([-0.3, 0.9])"),
    ("D.relaxed_categorical.ExpRelaxedCategorical(t(0.5), t([0.2, 0.3, 0.5]))", "t([0.2, 0.3, 0.5]).log()"),
    ("D.FisherSnedecor(t([5., 3.]), t([7., 9.]))", "t([0.5, 2.])"),
    ("D.Kumaraswamy(t([0.7, 0.5]), t([3., 1.5]))", "t([0.3, 0.6])"),
    ("D.ContinuousBernoulli(t([0.2, 0.5, 0.9]))", "t([0.3, 0.4, 0.8])"),
    ("D.ContinuousBernoulli(logits=t([0.2, -0.5]))", "t([0.3, 0.4])"),
    ("D.LKJCholesky(3, t([0.5, 1.5]))", "t([[1., 0., 0.], [0.6, 0.8, 0.], [0.6, 0., 0.8]])"),
    ("D.Wishart(t([5., 3.]), t([[2., 0.5], [0.5, 1.]]))", "t([[3., 0.2], [0.2, 4.]])"),
    ("D.Wishart(t(5.), precision_matrix=t([[2., 0.5], [0.5, 1.]]))", "t([[3., 0.2], [0.2, 4.]])"),
    ("D.LowRankMultivariateNormal(t([0., 1., 2.]), t([[1.], [0.5], [0.]]), t([1., 2., 3.]))", "t([0.1, 0.2, 0.3])"),
]
DIVERGENCES = [
    ("D.Normal(t([0., 1.]), t([1., 2.]))", "D.Normal(t([1., 1.]), t([3., 2.]))"),
    ("D.Laplace(t([0., 1.]), t([1., 2.]))", "D.Laplace(t([1., 1.]), t([3., 2.]))"),
    ("D.Uniform(t([0., 1.]), t([1., 2.]))", "D.Uniform(t([-1., 1.5]), t([3., 2.]))"),
    ("D.Exponential(t([0.5, 2.]))", "D.Exponential(t([1., 3.]))"),
    ("D.Gamma(t([0.5, 2.]), t([1., 2.]))", "D.Gamma(t([1., 3.]), t([1., 4.]))"),
    ("D.Beta(t([0.5, 2.]), t([1., 2.]))", "D.Beta(t([1., 3.]), t([1., 4.]))"),
    ("D.Dirichlet(t([0.5, 2., 1.]))", "D.Dirichlet(t([1., 3., 2.]))"),
    ("D.Bernoulli(t([0.5, 0.2, 0.]))", "D.Bernoulli(t([0.1, 0.3, 0.4]))"),
    ("D.Categorical(t([0.5, 0.2, 0.3]))", "D.Categorical(t([0.1, 0.3, 0.6]))"),
    ("D.Poisson(t([0.5, 2.]))", "D.Poisson(t([1., 3.]))"), ("D.Geometric(t([0.5, 0.2]))", "D.Geometric(t([0.1, 0.3]))"),
    ("D.LogNormal(t([0., 1.]), t([1., 2.]))", "D.LogNormal(t([1., 1.]), t([3., 2.]))"),
    ("D.MultivariateNormal(t([0., 1.]), t([[2., 0.5], [0.5, 1.]]))",
     "D.MultivariateNormal(t([1., 1.]), t([[1., 0.2], [0.2, 3.]]))"),
    ("D.Independent(D.Normal(t([0., 1.]), t([1., 2.])), 1)", "D.Independent(D.Normal(t([1., 1.]), t([3., 2.])), 1)"),
    ("D.Binomial(5, t([0.2, 0.9]))", "D.Binomial(5, t([0.3, 0.4]))"), ("D.Binomial(5, t([0.2, 0.9]))", "D.Binomial(3, t([0.3, 0.4]))"),
    ("D.Bernoulli(t([0.5, 0.2]))", "D.Poisson(t([1., 3.]))"), ("D.Poisson(t([1., 3.]))", "D.Bernoulli(t([0.5, 0.2]))"),
    ("D.LowRankMultivariateNormal(t([0., 1.]), t([[1.], [0.5]]), t([1., 2.]))",
     "D.LowRankMultivariateNormal(t([1., 1.]), t([[0.3], [0.2]]), t([2., 1.]))"),
    ("D.LowRankMultivariateNormal(t([0., 1.]), t([[1.], [0.5]]), t([1., 2.]))",
     "D.MultivariateNormal(t([1., 1.]), t([[1., 0.2], [0.2, 3.]]))"),
    ("D.MultivariateNormal(t([1., 1.]), t([[1., 0.2], [0.2, 3.]]))",
     "D.LowRankMultivariateNormal(t([0., 1.]), t([[1.], [0.5]]), t([1., 2.]))"),
    ("D.HalfNormal(t([1., 2.]))", "D.HalfNormal(t([3., 0.5]))"), ("D.HalfCauchy(t([1., 2.]))", "D.HalfCauchy(t([3., 0.5]))"),
    ("D.InverseGamma(t([2.5, 3.]), t([1., 2.]))", "D.InverseGamma(t([1.5, 2.]), t([2., 1.]))"),
]
# Numbers on a line, each with each; where PyTorch knows no formula the pair is left out.
LINE = ["D.Beta(t([0.5, 3.]), t([1., 2.]))", "D.ContinuousBernoulli(t([0.2, 0.5]))", "D.Exponential(t([0.5, 2.]))",
        "D.Gamma(t([0.5, 3.]), t([1., 2.]))", "D.Gumbel(t([0., 1.]), t([1., 2.]))", "D.Laplace(t([0., 1.]), t([1., 2.5]))",
        "D.Normal(t([0., 1.]), t([1., 2.5]))", "D.Pareto(t([1., 0.5]), t([3., 1.5]))", "D.Uniform(t([0.1, 0.3]), t([0.5, 2.5]))",
        "D.Cauchy(t([0., 1.]), t([1., 2.5]))"]
# What is refused: the text of the exception.
REFUSED = ["D.HalfNormal(t(-1.))", "D.HalfCauchy(t([1., -1.]))", "D.InverseGamma(t(-1.), t(1.))",
           "D.Gumbel(t(0.), t(-1.))", "D.Pareto(t(-1.), t(1.))", "D.Weibull(t(1.), t(-1.))", "D.Kumaraswamy(t(1.), t(-1.))",
           "D.RelaxedBernoulli(t(.5), t(2.))", "D.LogNormal(t(0.), t(-1.))", "D.Chi2(t(-1.))", "D.MixtureSameFamily(D.Categorical(t([1., 1.])), 3)",
           "D.MixtureSameFamily(D.Categorical(t([1., 1.])), D.Normal(t([0., 0., 0.]), t([1., 1., 1.])))",
           "D.MixtureSameFamily(D.Categorical(t([[1., 1.]] * 4)), D.Normal(t([[0., 0.]] * 3), t([[1., 1.]] * 3)))",
           "D.Normal(t(0.), t([1., 0.]))",
           "D.Gumbel(t(0.), t(1.)).log_prob(t(float('nan')))", "D.HalfNormal(t([1., 2.])).log_prob(t(-1.))"]
QUESTIONS = ("log_prob", "cdf", "mean", "variance", "stddev", "mode", "entropy")


def t(values):
    return torch.tensor(values, dtype=torch.float64)


def answer(distribution, value, question):
    try:
        found = getattr(distribution, question)
        if callable(found):
            found = found() if question == "entropy" else found(value)
        return found.tolist()
    except (NotImplementedError, ValueError, AttributeError):
        return None


def structure(made):
    """What it is made of, and the text of a larger one."""
    wide = repr(made.expand((3,) + tuple(made.batch_shape)))
    if not isinstance(made, D.TransformedDistribution):
        return {"wide": wide, "base": None}
    return {"wide": wide, "base": repr(made.base_dist), "transforms": [type(x).__name__ for x in made.transforms]}


def refusal(text, names):
    try:
        eval(text, names)
    except ValueError as e:
        return {"text": text, "says": str(e)}


def main():
    names = {"D": D, "t": t}
    cases = []
    for text, value in CASES:
        made = eval(text, names)
        cases.append({"distribution": text, "value": value, "batch": list(made.batch_shape),
                      "event": list(made.event_shape), "repr": repr(made), "rsample": made.has_rsample, **structure(made),
                      **{q: answer(made, eval(value, names), q) for q in QUESTIONS}})
    divergences = [{"p": p, "q": q, "kl": D.kl_divergence(eval(p, names), eval(q, names)).tolist()}
                   for p, q in DIVERGENCES]
    for p, q in ((p, q) for p in LINE for q in LINE):
        try:
            divergences.append({"p": p, "q": q, "kl": D.kl_divergence(eval(p, names), eval(q, names)).tolist()})
        except NotImplementedError:
            pass
    with open(os.path.join(HERE, "distributions.json"), "w", encoding="utf-8") as file:
        json.dump({"cases": cases, "divergences": divergences, "refused": [refusal(x, names) for x in REFUSED]}, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
