# SPDX-License-Identifier: MIT
"""biject_to(constraint) and transform_to(constraint): transforms of all numbers to those that a constraint allows."""

from tenon.distributions import constraints
from tenon.distributions import more_transforms as more
from tenon.distributions import transforms as t

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms by the class of a constraint; ``register`` adds one, as a decorator too."""

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError("Expected constraint to be either a Constraint subclass or instance, but got %s"
                            % (constraint,))
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError("Cannot transform %s constraints" % type(constraint).__name__)
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _above(constraint):
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


def _below(constraint):
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1:
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: t.identity_transform)
    _registry.register(constraints.positive, _above)
    _registry.register(constraints.nonnegative, _above)
    _registry.register(constraints.less_than(0.0), _below)
    _registry.register(constraints.unit_interval, _between)
    _registry.register(constraints.half_open_interval(0.0, 1.0), _between)
    _registry.register(constraints.corr_cholesky, lambda constraint: more.CorrCholeskyTransform())
    _registry.register(constraints.independent, lambda constraint, to=_registry: t.IndependentTransform(
        to(constraint.base_constraint), constraint.reinterpreted_batch_ndims))
    _registry.register(constraints.cat, lambda constraint, to=_registry: more.CatTransform(
        [to(c) for c in constraint.cseq], constraint.dim, constraint.lengths))
    _registry.register(constraints.stack, lambda constraint, to=_registry: more.StackTransform(
        [to(c) for c in constraint.cseq], constraint.dim))
biject_to.register(constraints.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: t.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: more.LowerCholeskyTransform())
for _matrix in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_matrix, lambda constraint: more.PositiveDefiniteTransform())
