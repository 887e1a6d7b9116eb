# SPDX-License-Identifier: MIT
"""Distribution: shapes of batches and events, and what every distribution answers."""

import numbers
import warnings

import tenon
from tenon.distributions import constraints
from tenon.overrides import is_tensor_like

__all__ = ["Distribution", "ExponentialFamily"]


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape, and of the dtype of the tensors."""
    for value in values:
        if not (is_tensor_like(value) or isinstance(value, numbers.Number)):
            raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                             "__torch_function__.")
    tensors = [value for value in values if isinstance(value, tenon.Tensor)]
    options = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {
        "dtype": tenon.get_default_dtype()}
    made = [value if is_tensor_like(value) else tenon.tensor(value, **options) for value in values]
    return tenon.broadcast_tensors(*made)


def sum_rightmost(value, dim):
    """Sum out the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:value.dim() - dim] + (-1,)).sum(-1)


def _standard_normal(shape, dtype, device):
    """Normal numbers of a shape."""
    return tenon.normal(tenon.zeros(shape, dtype=dtype, device=device), tenon.ones(shape, dtype=dtype, device=device))


class lazy_property:
    """A value that a method computes when it is first asked for, and that is kept."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with tenon.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class answers for a lazy property of its instances: documentation reads it as a property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def clamp_probs(probs):
    eps = tenon.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    safe = clamp_probs(probs)
    return safe.log() - (-safe).log1p() if is_binary else safe.log()


def logits_to_probs(logits, is_binary=False):
    return tenon.sigmoid(logits) if is_binary else tenon.softmax(logits, -1)


class Distribution:
    """The base class. `batch_shape` counts independent distributions, `event_shape` is the shape of one sample."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints = {}

    @staticmethod
    def set_default_validate_args(value):
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = tenon.Size(batch_shape), tenon.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            try:
                wanted = self.arg_constraints
            except NotImplementedError:
                import warnings
                wanted = {}
                warnings.warn("%s does not define `arg_constraints`. Please set `arg_constraints = {}` or initialize the "
                              "distribution with `validate_args=False` to turn off validation." % type(self), stacklevel=2)
            for name, constraint in wanted.items():
                if constraints.is_dependent(constraint):
                    continue
                if name not in self.__dict__:
                    found = getattr(type(self), name, None)
                    if not isinstance(found, property) or isinstance(found, lazy_property):
                        continue  # computed when it is asked for
                value = getattr(self, name)
                if not bool(constraint.check(value).all()):
                    raise ValueError(
                        "Expected parameter %s (%s of shape %s) of distribution %r to satisfy the constraint %r, but "
                        "found invalid values:\n%s" % (name, type(value).__name__, tuple(value.shape), self, constraint,
                                                      format(value)))

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def support(self):
        raise NotImplementedError

    @property
    def mean(self):
        raise NotImplementedError

    @property
    def mode(self):
        raise NotImplementedError("%s does not implement mode" % type(self))

    @property
    def variance(self):
        raise NotImplementedError

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Samples without a gradient."""
        with tenon.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Samples that carry the gradient to the parameters."""
        raise NotImplementedError

    def sample_n(self, n):
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value):
        raise NotImplementedError

    def cdf(self, value):
        raise NotImplementedError

    def icdf(self, value):
        raise NotImplementedError

    def entropy(self):
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        raise NotImplementedError

    def perplexity(self):
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        return tenon.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value):
        if not self._validate_args:
            return
        if not isinstance(value, tenon.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError("The right-most size of value must match event_shape: %s vs %s."
                             % (value.shape, self._event_shape))
        for a, b in zip(reversed(value.shape), reversed(tuple(self._batch_shape) + tuple(self._event_shape))):
            if a != 1 and b != 1 and a != b:
                raise ValueError("Value is not broadcastable with batch_shape+event_shape: %s vs %s."
                                 % (value.shape, tenon.Size(tuple(self._batch_shape) + tuple(self._event_shape))))
        try:
            support = self.support
        except NotImplementedError:
            return
        if not bool(support.check(value).all()):
            raise ValueError("Expected value argument (%s of shape %s) to be within the support (%r) of the distribution "
                             "%r, but found invalid values:\n%s" % (type(value).__name__, tuple(value.shape), support,
                                                                    self, format(value)))

    def _get_checked_instance(self, cls, _instance=None):
        """An empty object for `expand` to fill. A subclass with arguments of its own must expand itself."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError("Subclass %s of %s that defines a custom __init__ method must also define a custom "
                                      ".expand() method." % (type(self).__name__, cls.__name__))
        return self.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape, _instance=None):
        """The same distribution, for a larger batch."""
        made = type(self).__new__(type(self)) if _instance is None else _instance
        batch_shape = tenon.Size(batch_shape)
        old = len(self._batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, tenon.Tensor):
                made.__dict__[name] = value.expand(tuple(batch_shape) + tuple(value.shape[old:]))
            elif isinstance(value, Distribution):
                extra = len(value._batch_shape) - old
                made.__dict__[name] = value.expand(tuple(batch_shape) + tuple(value._batch_shape[old:old + extra]))
            else:
                made.__dict__[name] = value
        made._batch_shape, made._event_shape = batch_shape, self._event_shape
        return made

    _shows_parameters = True  # in its text; where the reference keeps them in another distribution it does not

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in self.__dict__ and self._shows_parameters]
        return "%s(%s)" % (type(self).__name__, ", ".join(
            "%s: %s" % (name, format(value) if value.numel() == 1 else value.size())
            for name, value in ((name, self.__dict__[name]) for name in names)))


class ExponentialFamily(Distribution):
    """Distributions whose density is an exponential of a sum."""
