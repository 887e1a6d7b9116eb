# SPDX-License-Identifier: MIT
"""Sets of values: what parameters may be, and where a distribution lives.

The classes begin with an underscore, as their names are in PyTorch: packages ask for them by name, and a transform is
registered for a class."""

import tenon

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
           "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
           "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
           "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
           "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric",
           "unit_interval"]


class Constraint:
    """`check(value)` gives a bool for each event; an event has event_dim dimensions."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """Depends on other parameters; cannot be checked by itself. What was not said about it cannot be asked."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a constraint once the parameters are known."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint):
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """Another constraint whose rightmost dimensions are checked together."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__()

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        good = self.base_constraint.check(value)
        if good.dim() < self.reinterpreted_batch_ndims:
            raise ValueError("Expected value.dim() >= %d but got %d" % (self.event_dim, value.dim()))
        return good.reshape(good.shape[:good.dim() - self.reinterpreted_batch_ndims] + (-1,)).all(-1)

    def __repr__(self):
        return "%s(%r, %d)" % (type(self).__name__[1:], self.base_constraint, self.reinterpreted_batch_ndims)


class MixtureSameFamilyConstraint(Constraint):
    """What the components of a mixture allow, for values that have no dimension for the components."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint
        super().__init__()

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        good = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return good.all(dim=-1)

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, self.base_constraint)


class _Bounded(Constraint):
    """Numbers between two bounds, either of which a class may not have or may leave open."""

    _given = ()  # of "lower_bound" and "upper_bound", in the order in which the class takes them
    _lower_open = _upper_open = False

    def __init__(self, *bounds, **named):
        if len(bounds) + len(named) != len(self._given) or not set(named) <= set(self._given[len(bounds):]):
            raise TypeError("%s takes %s" % (type(self).__name__, " and ".join(self._given)))
        self.__dict__.update(zip(self._given, bounds), **named)
        super().__init__()

    def check(self, value):
        good = value % 1 == 0 if self.is_discrete else value == value
        if "lower_bound" in self._given:
            good = good & (value > self.lower_bound if self._lower_open else value >= self.lower_bound)
        if "upper_bound" in self._given:
            good = good & (value < self.upper_bound if self._upper_open else value <= self.upper_bound)
        return good

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__[1:], ", ".join("{}={}".format(name, getattr(self, name))
                                                              for name in self._given))


class _GreaterThan(_Bounded):
    _given = ("lower_bound",)
    _lower_open = True


class _GreaterThanEq(_Bounded):
    _given = ("lower_bound",)


class _LessThan(_Bounded):
    _given = ("upper_bound",)
    _upper_open = True


class _Interval(_Bounded):
    _given = ("lower_bound", "upper_bound")


class _HalfOpenInterval(_Bounded):
    _given = ("lower_bound", "upper_bound")
    _upper_open = True


class _IntegerInterval(_Bounded):
    _given = ("lower_bound", "upper_bound")
    is_discrete = True


class _IntegerLessThan(_Bounded):
    _given = ("upper_bound",)
    is_discrete = True


class _IntegerGreaterThan(_Bounded):
    _given = ("lower_bound",)
    is_discrete = True


class _Real(Constraint):
    def check(self, value):
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Counts that sum to at most the bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value):
        allowed = tenon.finfo(value.dtype).eps * value.shape[-1] * 10
        return super().check(value) & (((value * value).sum(-1) - 1).abs() < allowed).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return tenon.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=tenon.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return tenon.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        good = super().check(value)
        return good & tenon.linalg.eigvalsh(value).ge(0).all(-1) if bool(good.all()) else good


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        good = super().check(value)
        return tenon.linalg.cholesky_ex(value).info.eq(0) if bool(good.all()) else good


class _Cat(Constraint):
    """Several constraints along one dimension."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        parts, at = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            parts.append(constraint.check(value.narrow(self.dim, at, length)))
            at += length
        return tenon.cat(parts, self.dim)


class _Stack(Constraint):
    """A constraint for each slice of a dimension."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self):
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        return tenon.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
