# SPDX-License-Identifier: MIT
"""Distributions: PyTorch's densities, moments and divergences (golden/make_distributions.py); samples that have them."""

import json
import math
import os
import unittest

import harness
import tenon
import tenon.distributions as D

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "golden", "distributions.json"), encoding="utf-8") as file:
    GOLDEN = json.load(file)


def t(values):
    return tenon.tensor(values, dtype=tenon.float64)


def make(text):
    return eval(text, {"D": D, "t": t})


def text(made):
    return repr(made).replace("tenon.", "torch.")


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [float(value)]


class Golden(unittest.TestCase):
    def same(self, found, wanted, tolerance=1e-9):
        found, wanted = flat(found), flat(wanted)
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted):
            self.assertTrue(a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * max(1, abs(b)),
                            "%s is not %s" % (a, b))

    def test_densities_and_moments_are_the_references(self):
        for case in GOLDEN["cases"]:
            made, value = make(case["distribution"]), make(case["value"])
            self.assertEqual((list(made.batch_shape), list(made.event_shape), made.has_rsample),
                             (case["batch"], case["event"], case["rsample"]), case["distribution"])
            for question in ("log_prob", "cdf", "mean", "variance", "stddev", "mode", "entropy"):
                if case[question] is None:
                    continue
                with self.subTest(case["distribution"], question=question):
                    try:
                        found = getattr(made, question)
                        if callable(found):
                            found = found() if question == "entropy" else found(value)
                    except NotImplementedError:
                        continue
                    # The reference has Bessel functions, and a factorial, to seven digits here.
                    rough = "VonMises" in case["distribution"] or "Multinomial" in case["distribution"]
                    self.same(found.tolist(), case[question], 1e-6 if rough else 1e-9)

    def test_what_a_distribution_is_made_of_is_the_references(self):
        for case in GOLDEN["cases"]:
            with self.subTest(case["distribution"]):
                made = make(case["distribution"])
                self.assertEqual(isinstance(made, D.TransformedDistribution), case["base"] is not None)
                if case["base"] is not None:
                    self.assertEqual((text(made.base_dist), [type(x).__name__ for x in made.transforms]),
                                     (case["base"], case["transforms"]))
                wide = made.expand((3,) + tuple(made.batch_shape))
                self.assertEqual((text(made), text(wide)), (case["repr"], case["wide"]))
                self.assertEqual(list(wide.batch_shape), [3] + case["batch"])

    def test_what_is_refused_is_said_as_the_reference_says_it(self):
        for case in GOLDEN["refused"]:
            with self.assertRaises(ValueError, msg=case["text"]) as caught:
                make(case["text"])
            self.assertEqual(str(caught.exception).replace("tenon.", "torch."), case["says"])

    def test_every_density_is_there(self):
        for case in GOLDEN["cases"]:
            make(case["distribution"]).log_prob(make(case["value"]))

    def test_divergences_are_the_references(self):
        for case in GOLDEN["divergences"]:
            with self.subTest(case["p"], q=case["q"]):
                self.same(D.kl_divergence(make(case["p"]), make(case["q"])).tolist(), case["kl"])
        with self.assertRaisesRegex(NotImplementedError, "No KL.p .. q. is implemented for p type Normal and q type Cauchy"):
            D.kl_divergence(D.Normal(0, 1), D.Cauchy(1, 1))
        with self.assertRaisesRegex(NotImplementedError, "The cross KL-divergence between different exponential families"):
            D.kl_divergence(D.Normal(0, 1), D.Poisson(1))

    def test_the_divergence_of_wishart_matrices_of_size_1_is_that_of_gamma_numbers(self):
        # The reference's is negative for some.
        p, q = D.Wishart(t([5.0, 3.0]), t([[2.0]])), D.Wishart(t([4.0, 6.0]), t([[1.0]]))
        same = D.kl_divergence(D.Gamma(t([2.5, 1.5]), t([0.25])), D.Gamma(t([2.0, 3.0]), t([0.5])))
        self.same(D.kl_divergence(p, q).tolist(), same.tolist())
        full = D.Wishart(t([5.0]), t([[2.0, 0.5], [0.5, 1.0]]))
        self.same(D.kl_divergence(full, full).tolist(), [0.0])

    def test_a_divergence_from_the_unit_interval_to_itself_is_finite(self):
        # The reference says infinity where the bounds are the same.
        flat_one, even = D.Uniform(t([0.0]), t([1.0])), D.ContinuousBernoulli(t([0.5]))
        self.assertAlmostEqual(D.kl_divergence(flat_one, even).item(), 0.0, 6)
        self.assertAlmostEqual(D.kl_divergence(even, flat_one).item(), 0.0, 6)

    def test_texts_show_what_the_reference_shows(self):
        self.assertEqual(repr(D.Beta(0.5, 2.0)), "Beta()")
        made = D.Bernoulli(t([0.2, 0.9]))
        self.assertEqual(repr(made).replace("tenon", "torch"), "Bernoulli(probs: torch.Size([2]))")
        made.log_prob(t([0.0, 1.0]))
        self.assertEqual(repr(made).replace("tenon", "torch"), "Bernoulli(probs: torch.Size([2]), logits: torch.Size([2]))")
        with self.assertRaisesRegex(ValueError, r"to satisfy the constraint LessThan\(upper_bound=1.0\)"):
            D.Uniform(2.0, 1.0)

    def test_samples_have_the_mean_and_the_variance(self):
        tenon.manual_seed(0)
        for case in GOLDEN["cases"]:
            made = make(case["distribution"])
            if case["mean"] is None or case["variance"] is None or "StudentT" in case["distribution"] \
                    or "VonMises" in case["distribution"] or "InverseGamma" in case["distribution"]:
                continue
            mean, variance = tenon.tensor(flat(case["mean"])), tenon.tensor(flat(case["variance"]))
            if not bool((tenon.isfinite(mean) & tenon.isfinite(variance)).all()):
                continue
            with self.subTest(case["distribution"]):
                draws = made.sample((4000,))
                self.assertEqual(list(draws.shape), [4000] + case["batch"] + case["event"])
                rows = draws.reshape(4000, -1)
                error = (rows.mean(0) - mean).abs() / (variance / 4000).sqrt().clamp(min=1e-9)
                self.assertLess(error.max().item(), 6)
                made.log_prob(draws)  # all lie in the support


class Pareto(unittest.TestCase):
    """The reference takes float32 alone here: what it printed."""

    def test_what_is_left_above_a_bound(self):
        made = D.GeneralizedPareto(tenon.tensor([0.0, 1.0]), tenon.tensor([1.0, 2.0]), tenon.tensor([0.2, -0.3]))
        value = tenon.tensor([0.5, 2.0])
        for found, wanted in ((made.mean, (1.25, 2.5385)), (made.variance, (2.6042, 1.4793)),
                              (made.log_prob(value), (-0.5719, -1.0724)), (made.cdf(value), (0.3791, 0.4183)),
                              (made.entropy(), (1.2, 1.3931)), (made.icdf(tenon.tensor(0.3)), (0.3697, 1.6765)),
                              (made.icdf(made.cdf(value)), (0.5, 2.0))):
            for a, b in zip(found.tolist(), wanted):
                self.assertAlmostEqual(a, b, 4)
        flat_tail = D.GeneralizedPareto(0.0, 1.0, 0.0)  # an exponential
        self.assertAlmostEqual(flat_tail.log_prob(tenon.tensor(0.5)).item(), -0.5, 6)
        self.assertTrue(bool(made.support.check(made.sample((200,))).all()))
        self.assertTrue(tenon.allclose(made.log_cdf(value), made.cdf(value).log()))


class Transforms(unittest.TestCase):
    """Values that PyTorch 2.11 printed."""

    def same(self, found, wanted):
        for a, b in zip(flat(found.tolist()), flat(wanted)):
            self.assertAlmostEqual(a, b, 4)

    def test_to_correlation_factors_and_back(self):
        x, made = t([0.1, -0.2, 0.3]), D.CorrCholeskyTransform()
        y = made(x)
        self.same(y, [[1, 0, 0], [0.0997, 0.9950, 0], [-0.1974, 0.2856, 0.9378]])
        self.same(made.inv(y), x.tolist())
        self.assertAlmostEqual(made.log_abs_det_jacobian(x, y).item(), -0.1583, 4)
        self.same(made(x.expand(2, 3)), [y.tolist()] * 2)
        self.assertEqual((tuple(made.forward_shape((3,))), tuple(made.inverse_shape((3, 3)))), ((3, 3), (3,)))

    def test_of_matrices_parts_and_distribution_functions(self):
        x = tenon.arange(4.0).reshape(2, 2)
        for made, wanted in ((D.LowerCholeskyTransform(), [[1, 0], [2, 20.0855]]),
                             (D.PositiveDefiniteTransform(), [[1, 2], [2, 407.4288]])):
            self.same(made(x) / 10, (tenon.tensor(wanted) / 10).tolist())
            self.same(made.inv(made(x)), [[0, 0], [2, 3]])
        v = t([0.1, -0.2, 0.3])
        cat = D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], 0, [1, 2])
        self.same(cat(v), [1.1052, -0.4, 0.6])
        self.same(cat.inv(cat(v)), v.tolist())
        self.same(cat.log_abs_det_jacobian(v, cat(v)), [0.1, 0.6931, 0.6931])
        self.same(D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])(v[:2]), [1.1052, -0.4])
        normal = D.CumulativeDistributionTransform(D.Normal(t(0.0), t(1.0)))
        self.same(normal(v), [0.5398, 0.4207, 0.6179])

    def test_constraints_have_transforms(self):
        C = D.constraints
        zeros = tenon.zeros(3)
        for constraint, wanted in ((C.positive, 1), (C.unit_interval, 0.5), (C.real, 0), (C.simplex, 1 / 3),
                                   (C.greater_than(2.0), 3), (C.less_than(1.0), 0), (C.interval(1.0, 3.0), 2),
                                   (C.independent(C.positive, 1), 1)):
            self.same(D.transform_to(constraint)(zeros), [wanted] * 3)
            made = D.biject_to(constraint)(zeros)
            self.assertTrue(bool(constraint.check(made).all()))
        self.assertTrue(bool(C.corr_cholesky.check(D.biject_to(C.corr_cholesky)(zeros)).all()))
        with self.assertRaisesRegex(NotImplementedError, "Cannot transform _LowerCholesky constraints"):
            D.biject_to(C.lower_cholesky)


class Promises(unittest.TestCase):
    def test_rsample_carries_the_gradient(self):
        for build in (lambda a, b: D.Normal(a, b), lambda a, b: D.Gamma(b, a), lambda a, b: D.Beta(a, b),
                      lambda a, b: D.Laplace(a, b), lambda a, b: D.LogNormal(a, b), lambda a, b: D.Uniform(a, a + b)):
            a, b = tenon.tensor([1.0, 2.0], requires_grad=True), tenon.tensor([0.5, 3.0], requires_grad=True)
            build(a, b).rsample((3,)).sum().backward()
            self.assertTrue(bool(tenon.isfinite(a.grad).all()) and bool(tenon.isfinite(b.grad).all()))
            self.assertGreater(a.grad.abs().sum().item(), 0)
        self.assertFalse(D.Normal(tenon.ones(1, requires_grad=True), 1.0).sample().requires_grad)

    def test_a_policy_learns_from_log_prob(self):
        logits = tenon.zeros(3, requires_grad=True)
        D.Categorical(logits=logits).log_prob(tenon.tensor(2)).backward()
        self.assertEqual([round(x, 4) for x in logits.grad.tolist()], [-0.3333, -0.3333, 0.6667])

    def test_bad_parameters_and_values_are_refused(self):
        with self.assertRaisesRegex(ValueError, r"Expected parameter scale \(Tensor of shape \(\)\) of distribution "
                                                r"Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint "
                                                r"GreaterThan\(lower_bound=0.0\), but found invalid values"):
            D.Normal(0.0, -1.0)
        with self.assertRaisesRegex(ValueError, "Either `probs` or `logits` must be specified, but not both."):
            D.Bernoulli()
        with self.assertRaisesRegex(ValueError, "to be within the support"):
            D.Bernoulli(0.5).log_prob(tenon.tensor(0.3))
        D.Normal(0.0, -1.0, validate_args=False)

    def test_batches_expand(self):
        made = D.Normal(tenon.zeros(2), tenon.ones(2)).expand((3, 2))
        self.assertEqual(made.sample((4,)).shape, (4, 3, 2))
        self.assertEqual(D.Categorical(tenon.ones(5)).expand((3,)).sample().shape, (3,))

    def test_enumerated_supports_sum_to_one(self):
        for made in (D.Bernoulli(t([0.2, 0.7])), D.Categorical(t([0.2, 0.3, 0.5])), D.OneHotCategorical(t([0.5, 0.5]))):
            total = made.log_prob(made.enumerate_support()).exp().sum(0)
            self.assertLess((total - 1).abs().max().item(), 1e-12)


class Parts(unittest.TestCase):
    """Constraints, transforms and helpers, as packages that build on distributions use them."""

    def test_a_transform_remembers_what_a_value_was_made_of(self):
        d = tenon.distributions
        base = d.Normal(tenon.zeros(3), tenon.full((3,), 100.0))
        made = d.TransformedDistribution(base, [d.TanhTransform(cache_size=1)])
        y = made.rsample()
        self.assertTrue(bool((y.abs() == 1).any()))  # so near that the inverse alone would be infinite
        self.assertTrue(bool(made.log_prob(y).isfinite().all()))
        t = d.ExpTransform(cache_size=1)
        x = tenon.ones(2)
        self.assertIs(t.inv(t(x)), x)
        self.assertIs(t(x), t(x))
        self.assertIs(t.inv.inv, t)
        self.assertIsNot(d.ExpTransform()(x), d.ExpTransform()(x))
        both = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)]).with_cache()
        self.assertIs(both.inv(both(x)), x)
        with self.assertRaisesRegex(ValueError, "cache_size must be 0 or 1"):
            d.ExpTransform(cache_size=2)

    def test_parameters_of_a_transform_widen_the_batch(self):
        d = tenon.distributions
        made = d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(tenon.zeros(3), tenon.ones(3)))
        self.assertEqual((tuple(made.batch_shape), tuple(made.sample().shape)), ((3,), (3,)))
        self.assertEqual(tuple(made.expand((2, 3)).sample((4,)).shape), (4, 2, 3))
        self.assertEqual(d.AffineTransform(0.0, 1.0), d.AffineTransform(0.0, 1.0))
        self.assertNotEqual(d.AffineTransform(0.0, 1.0), d.AffineTransform(0.0, 2.0))

    def test_constraints_are_of_classes_with_names(self):
        c = tenon.distributions.constraints
        for constraint, text in ((c.positive, "GreaterThan(lower_bound=0.0)"), (c.real_vector, "IndependentConstraint(Real(), 1)"),
                                 (c.interval(0, 2), "Interval(lower_bound=0, upper_bound=2)"), (c.dependent, "Dependent()"),
                                 (c.nonnegative_integer, "IntegerGreaterThan(lower_bound=0)"), (c.simplex, "Simplex()")):
            self.assertEqual(repr(constraint), text)
        self.assertIsInstance(c.real, c._Real)
        self.assertTrue(c.is_dependent(tenon.distributions.Uniform.support))
        self.assertEqual(tenon.distributions.Uniform.support.event_dim, 0)
        with self.assertRaisesRegex(NotImplementedError, "cannot be determined statically"):
            c.dependent.event_dim
        m = tenon.tensor([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]])
        self.assertEqual(c.positive_definite.check(m).tolist(), [True, False])
        self.assertEqual(c.positive_semidefinite.check(m).tolist(), [True, False])
        with self.assertRaises(TypeError):
            c.interval(1)

    def test_transforms_are_registered_for_classes(self):
        d = tenon.distributions

        class _Even(d.constraints.Constraint):
            pass

        with self.assertRaisesRegex(NotImplementedError, "Cannot transform _Even constraints"):
            d.biject_to(_Even())
        d.biject_to.register(_Even, lambda constraint: d.AbsTransform())
        self.assertEqual(d.biject_to(_Even()), d.AbsTransform())
        with self.assertRaisesRegex(TypeError, "Expected constraint to be either"):
            d.biject_to.register(3, None or len)

    def test_a_normal_vector_in_a_batch(self):
        d = tenon.distributions
        matrix = tenon.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=tenon.float64)
        made = d.MultivariateNormal(tenon.zeros(3, 2, dtype=tenon.float64), precision_matrix=matrix.inverse())
        tenon.testing.assert_close(made.covariance_matrix, matrix.expand(3, 2, 2))
        self.assertEqual(tuple(made.expand((5, 3)).log_prob(tenon.zeros(2, dtype=tenon.float64)).shape), (5, 3))
        x = tenon.tensor([1.0, -1.0], dtype=tenon.float64)
        want = -0.5 * (x @ matrix.inverse() @ x) - 0.5 * tenon.logdet(matrix) - 1.8378770664093453
        tenon.testing.assert_close(made.log_prob(x), want.expand(3))

    def test_helpers_for_those_who_write_distributions(self):
        from tenon.distributions.utils import lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

        class Counter:
            calls = 0

            @lazy_property
            def value(self):
                self.calls += 1
                return 5

        counter = Counter()
        self.assertEqual((counter.value, counter.value, counter.calls), (5, 5, 1))
        self.assertIsInstance(Counter.value, property)
        lower = vec_to_tril_matrix(tenon.tensor([1.0, 2.0, 3.0]))
        self.assertEqual(lower.tolist(), [[1, 0], [2, 3]])
        self.assertEqual(tril_matrix_to_vec(lower).tolist(), [1, 2, 3])


class OutsideTheSupport(unittest.TestCase):
    def test_the_share_below_a_value_that_cannot_be_is_refused(self):
        one, x = tenon.ones(2), tenon.full((2,), -0.7)
        made = (D.HalfNormal(one), D.HalfCauchy(one), D.Weibull(one, one * 1.5),
                D.Pareto(one, one), D.Kumaraswamy(one, one * 1.5), D.ContinuousBernoulli(one / 4))
        for d in made:
            with self.assertRaisesRegex(ValueError, "to be within the support"):
                d.cdf(x if not isinstance(d, D.Kumaraswamy) else -x * 2)
        for kind in D.HalfNormal, D.HalfCauchy:
            self.assertEqual(kind(one, validate_args=False).cdf(x).shape, (2,))
        self.assertEqual(D.Pareto(one, one).cdf(one * 2).tolist(), [0.5, 0.5])
        self.assertEqual(D.Weibull(one, one).cdf(one * 0).tolist(), [0, 0])
        self.assertEqual(D.Kumaraswamy(one, one).cdf(one / 4).tolist(), [0.25, 0.25])


class Calls(unittest.TestCase):
    def test_numbers_stand_for_tensors_in_inverse_functions(self):
        self.assertAlmostEqual(D.Gumbel(0.0, 1.0).icdf(0.5).item(), 0.36651292, 6)
        tenon.testing.assert_close(D.Weibull(tenon.tensor([1.0, 2.0]), tenon.tensor([3.0, 4.0])).icdf(0.5),
                                   tenon.tensor([0.88499695, 1.82488878]))

    def test_an_older_name_of_sampling_warns(self):
        with self.assertWarnsRegex(FutureWarning, r"`sample_n\(n\)` will be deprecated. Use `sample\(\(n,\)\)` instead."):
            self.assertEqual(D.Normal(tenon.zeros(2), tenon.ones(2)).sample_n(3).shape, (3, 2))


class Shown(unittest.TestCase):
    def test_what_was_computed_of_a_parameter_is_shown(self):
        made = D.ContinuousBernoulli(tenon.tensor([0.3]))
        self.assertEqual(repr(made), "ContinuousBernoulli(probs: tensor([0.3000]))")
        made.log_prob(tenon.tensor([0.5]))
        self.assertEqual(repr(made), "ContinuousBernoulli(probs: tensor([0.3000]), logits: tensor([-0.8473]))")
        self.assertEqual(made.expand((2,)).logits.shape, (2,))


SLOPES = ((0.5, 0.001, 100.0, 9.947460433272),
          (0.3, 0.01, 100.0, 1.017026837088652),
          (0.1, 0.001, 10.0, 62.80856458810792),
          (0.9, 30.0, 0.5, 0.03186682020182054),
          (0.999, 0.01, 10.0, 10.28035187681451),
          (1e-10, 0.01, 0.01, 7.300975478257549e-7))


class SmallNumbers(unittest.TestCase):
    def test_shares_of_small_gamma_numbers_are_not_lost(self):
        tenon.manual_seed(1)
        for dtype in (tenon.float32, tenon.float64):
            small = tenon.tensor(0.01, dtype=dtype)
            for drawn in (tenon.distributions.Beta(small, small).sample((20000,)),
                          tenon.distributions.Dirichlet(small.expand(2)).sample((20000,))[:, 0]):
                self.assertFalse(((drawn == 0) | (drawn == 1)).any())
                self.assertTrue(abs((drawn < 0.1).double().mean().item() - 0.5) < 0.03)
                self.assertTrue(abs((drawn > 0.9).double().mean().item() - 0.5) < 0.03)

    def test_slopes_of_shares_far_from_their_mean(self):
        # By mpmath, with 50 digits.
        for x, a, b, wanted in SLOPES:
            x, a, b = (tenon.tensor([v], dtype=tenon.float64) for v in (x, a, b))
            self.assertAlmostEqual(tenon._dirichlet_grad(x, a, a + b).item() / wanted, 1.0, places=8)

    def test_counts_are_of_the_dtype_of_the_odds(self):
        for odds in (0.5, tenon.tensor([0.2, 0.5]), tenon.tensor([0.2, 0.5], dtype=tenon.float64)):
            made = tenon.distributions.Binomial(tenon.tensor([3, 4]), odds)
            self.assertIs(made.total_count.dtype, getattr(odds, "dtype", tenon.float32))
            self.assertTrue((made.sample((9,)) <= made.total_count).all())
        made = tenon.distributions.NegativeBinomial(tenon.tensor([3, 4]), tenon.tensor([0.2, 0.5]))
        self.assertEqual((made.sample((9,)).shape, made.total_count.dtype), ((9, 2), tenon.float32))
        zero = tenon.tensor(0.0, requires_grad=True)
        tenon.distributions.Binomial(1.0, logits=zero).log_prob(tenon.tensor(0.0)).backward()
        self.assertEqual(zero.grad.item(), -0.5)

    def test_what_is_like_a_tensor_can_be_a_parameter(self):
        class Like:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func, args

        from tenon.distributions.utils import broadcast_all
        x, like = tenon.ones(3), Like()
        self.assertEqual(broadcast_all(like, x), (tenon.broadcast_tensors, (like, x)))
        func, args = broadcast_all(like, 2)
        self.assertEqual((func, args[0], args[1].item()), (tenon.broadcast_tensors, like, 2.0))
        with self.assertRaisesRegex(ValueError, "objects implementing __torch_function__"):
            broadcast_all(x, "a")


if __name__ == "__main__":
    harness.main()
