# SPDX-License-Identifier: MIT
"""Sets of values: what parameters may be, and where a distribution lives."""

import tenon

__all__ = ["Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
           "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
           "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer",
           "one_hot", "positive", "positive_definite", "positive_integer", "real", "real_vector", "simplex", "square", "stack",
           "symmetric", "unit_interval"]


class Constraint:
    """`check(value)` gives a bool for each event; an event has event_dim dimensions."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__.lstrip("_").capitalize() + "()"


class _Dependent(Constraint):
    """Depends on other parameters; cannot be checked by itself."""

    def __init__(self, *, is_discrete=False, event_dim=0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete=False, event_dim=0):
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property of a distribution that is a constraint once the parameters are known."""

    def __init__(self, fn=None, *, is_discrete=False, event_dim=0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint):
    return isinstance(constraint, _Dependent)


class _Test(Constraint):
    """A constraint from a function of the value."""

    def __init__(self, name, test, discrete=False, event_dim=0):
        self.name, self.test, self.is_discrete, self.event_dim = name, test, discrete, event_dim

    def check(self, value):
        return self.test(value)

    def __repr__(self):
        return self.name


class _Bound(Constraint):
    """Numbers between two bounds, either of which may be missing or open."""

    def __init__(self, name, lower=None, upper=None, lower_open=False, upper_open=False, whole=False):
        self.name, self.lower_bound, self.upper_bound = name, lower, upper
        self.lower_open, self.upper_open, self.is_discrete = lower_open, upper_open, whole

    def check(self, value):
        good = value == value
        if self.lower_bound is not None:
            good = good & (value > self.lower_bound if self.lower_open else value >= self.lower_bound)
        if self.upper_bound is not None:
            good = good & (value < self.upper_bound if self.upper_open else value <= self.upper_bound)
        return good & (value % 1 == 0) if self.is_discrete else good

    def __repr__(self):
        bounds = ["%s=%s" % (key, value) for key, value in (("lower_bound", self.lower_bound),
                                                            ("upper_bound", self.upper_bound)) if value is not None]
        return "%s(%s)" % (self.name, ", ".join(bounds))


def greater_than(lower_bound):
    return _Bound("GreaterThan", lower_bound, lower_open=True)


def greater_than_eq(lower_bound):
    return _Bound("GreaterThanEq", lower_bound)


def less_than(upper_bound):
    return _Bound("LessThan", None, upper_bound, upper_open=True)


def interval(lower_bound, upper_bound):
    return _Bound("Interval", lower_bound, upper_bound)


def half_open_interval(lower_bound, upper_bound):
    return _Bound("HalfOpenInterval", lower_bound, upper_bound, upper_open=True)


def integer_interval(lower_bound, upper_bound):
    return _Bound("IntegerInterval", lower_bound, upper_bound, whole=True)


class independent(Constraint):
    """Another constraint whose rightmost dimensions are checked together."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value):
        good = self.base_constraint.check(value)
        if good.dim() < self.reinterpreted_batch_ndims:
            raise ValueError("Expected value.dim() >= %d but got %d" % (self.event_dim, value.dim()))
        return good.reshape(good.shape[:good.dim() - self.reinterpreted_batch_ndims] + (-1,)).all(-1)

    def __repr__(self):
        return "IndependentConstraint(%r, %d)" % (self.base_constraint, self.reinterpreted_batch_ndims)


class cat(Constraint):
    """Several constraints along one dimension."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim, self.lengths = list(cseq), dim, list(lengths or [1] * len(cseq))
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value):
        parts, at = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            parts.append(constraint.check(value.narrow(self.dim, at, length)))
            at += length
        return tenon.cat(parts, self.dim)


class stack(Constraint):
    """A constraint for each slice of a dimension."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq) + (1 if dim + max(c.event_dim for c in self.cseq) < 0 else 0)

    def check(self, value):
        return tenon.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


def multinomial(upper_bound):
    """Counts that sum to at most the bound."""
    return _Test("Multinomial(upper_bound=%s)" % upper_bound,
                 lambda x: (x >= 0).all(-1) & (x.sum(-1) <= upper_bound), True, 1)


def _symmetric(x):
    return tenon.isclose(x, x.transpose(-1, -2), atol=1e-6).all(-1).all(-1)


def _triangular(x):
    return (x.tril() == x).all(-1).all(-1)


def _definite(x):
    """Symmetric, with pivots that are all positive."""
    good = _symmetric(x)
    left = x
    while left.shape[-1] > 0:
        pivot = left[..., 0, 0]
        good = good & (pivot > 0)
        column = left[..., 1:, :1]
        left = left[..., 1:, 1:] - column @ column.transpose(-1, -2) / tenon.where(
            pivot > 0, pivot, tenon.ones_like(pivot))[..., None, None]
    return good


dependent = _Dependent()
real = _Test("Real()", lambda x: x == x)
real_vector = independent(real, 1)
boolean = _Test("Boolean()", lambda x: (x == 0) | (x == 1), True)
nonnegative = greater_than_eq(0.0)
positive = greater_than(0.0)
nonnegative_integer = _Bound("IntegerGreaterThan", 0, whole=True)
positive_integer = _Bound("IntegerGreaterThan", 1, whole=True)
unit_interval = interval(0.0, 1.0)
simplex = _Test("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), False, 1)
one_hot = _Test("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), True, 1)
square = _Test("Square()", lambda x: tenon.full(x.shape[:-2], x.shape[-2] == x.shape[-1]), False, 2)
symmetric = _Test("Symmetric()", _symmetric, False, 2)
positive_definite = _Test("PositiveDefinite()", _definite, False, 2)
lower_triangular = _Test("LowerTriangular()", _triangular, False, 2)
lower_cholesky = _Test("LowerCholesky()", lambda x: _triangular(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
                       False, 2)
corr_cholesky = _Test("CorrCholesky()", lambda x: _triangular(x) & (
    ((x * x).sum(-1) - 1).abs() < 10 * 1.2e-7 * x.shape[-1]).all(-1), False, 2)
