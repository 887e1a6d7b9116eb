# SPDX-License-Identifier: MIT
"""Distributions over whole numbers, categories and counts."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.distribution import (Distribution, ExponentialFamily, broadcast_all, clamp_probs,
                                              logits_to_probs, probs_to_logits)

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Poisson"]


def other_parameter(self, name, is_binary):
    """Probabilities of log-odds, or the other way round: computed when they are first asked for, and kept."""
    own = self.__dict__
    with tenon.enable_grad():
        if name == "probs" and "logits" in own:
            own["probs"] = logits_to_probs(own["logits"], is_binary=is_binary)
        elif name == "logits" and "probs" in own:
            own["logits"] = probs_to_logits(own["probs"], is_binary=is_binary)
        else:
            raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))
    return own[name]


class _Binary(Distribution):
    """A parameter that is given as probabilities or as their log-odds; the other is computed when asked for."""

    def _init(self, probs, logits, validate_args, **more):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, value = ("probs", probs) if probs is not None else ("logits", logits)
        *parts, made = broadcast_all(*more.values(), value)
        for key, part in zip(more, parts):
            setattr(self, key, part)
        self.__dict__[name] = made
        if self._has_param:
            self._param = made
        Distribution.__init__(self, made.shape, validate_args=validate_args)

    _has_param = True
    param_shape = property(lambda self: self._param.size())

    def __getattr__(self, name):
        return other_parameter(self, name, is_binary=True)


_ODDS = {"probs": constraints.unit_interval, "logits": constraints.real}


class Bernoulli(_Binary, ExponentialFamily):
    """1 with a probability, else 0."""

    arg_constraints = _ODDS
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._init(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        made = (self.probs >= 0.5).to(self.probs.dtype)
        return tenon.where(self.probs == 0.5, tenon.full_like(made, math.nan), made)

    def sample(self, sample_shape=()):
        with tenon.no_grad():
            return tenon.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -tenon.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return tenon.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = tenon.arange(2, dtype=self._param.dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class Geometric(_Binary):
    """How many failures before the first success."""

    arg_constraints = _ODDS
    support = constraints.nonnegative_integer
    _has_param = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._init(probs, logits, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError("Expected parameter probs (%s of shape %s) of distribution %r to be positive but found "
                             "invalid values:\n%s" % (type(self.probs).__name__, tuple(self.probs.shape), self,
                                                      self.probs))

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: tenon.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=()):
        with tenon.no_grad():
            u = tenon.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype).exponential_()
            return (u / -(-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        rest = tenon.where((probs == 1) & (value == 0), tenon.zeros_like(probs), probs)
        return value * (-rest).log1p() + self.probs.log()

    def entropy(self):
        return tenon.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs,
                                                                    reduction="none") / self.probs


def _count(total, odds):
    """How many trials, in the dtype of the odds."""
    if not isinstance(total, tenon.Tensor) or total.is_floating_point():
        return total
    return total.to(odds.dtype if isinstance(odds, tenon.Tensor) else tenon.get_default_dtype())


class Binomial(_Binary):
    """How many successes in total_count trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_ODDS}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._init(probs, logits, validate_args, total_count=_count(total_count, logits if probs is None else probs))

    support = constraints.dependent_property(lambda self: constraints.integer_interval(0, self.total_count),
                                             is_discrete=True, event_dim=0)
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        with tenon.no_grad():
            shape = self._extended_shape(sample_shape)
            return tenon.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._validate_sample(value)
        n, k, logits = self.total_count, value, self.logits
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2  # its slope at 0 is a half
        base = n * positive + n * tenon.log1p(tenon.exp(-logits.abs()))
        return k * logits - base + tenon.lgamma(n + 1) - tenon.lgamma(k + 1) - tenon.lgamma(n - k + 1)

    def _one_count(self, question):
        """How many trials, where all of the batch have as many."""
        total = int(self.total_count.max())
        if not int(self.total_count.min()) == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `%s`." % question)
        return total

    def entropy(self):
        self._one_count("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(tenon.exp(logs) * logs).sum(0)

    def enumerate_support(self, expand=True):
        total = self._one_count("enumerate_support")
        values = tenon.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class NegativeBinomial(_Binary):
    """How many successes before total_count failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._init(probs, logits, validate_args, total_count=_count(total_count, logits if probs is None else probs))

    mean = property(lambda self: self.total_count * tenon.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / tenon.sigmoid(-self.logits))

    def sample(self, sample_shape=()):
        from tenon.distributions.continuous import Gamma
        with tenon.no_grad():
            rate = Gamma(self.total_count, tenon.exp(-self.logits), validate_args=False).sample(sample_shape)
            return draw_poisson(rate)

    def log_prob(self, value):
        self._validate_sample(value)
        log = tenon.nn.functional.logsigmoid
        made = self.total_count * log(-self.logits) + value * log(self.logits)
        return made + tenon.lgamma(self.total_count + value) - tenon.lgamma(1 + value) - tenon.lgamma(self.total_count)


def draw_poisson(rate):
    """Counts of arrivals."""
    with tenon.no_grad():
        return tenon._C._VariableFunctions.poisson(rate)


class Poisson(ExponentialFamily):
    """How often something happens that happens at a steady rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape=()):
        return draw_poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return tenon.xlogy(value, rate) - rate - (value + 1).lgamma()


class Categorical(Distribution):
    """One of the numbers from 0 on, each with its probability."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if probs is not None else logits
        if given.dim() < 1:
            raise ValueError("`%s` parameter must be at least one-dimensional."
                             % ("probs" if probs is not None else "logits"))
        if probs is not None:
            self.__dict__["probs"] = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.__dict__["logits"] = self._param = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name):
        return other_parameter(self, name, is_binary=False)

    support = constraints.dependent_property(lambda self: constraints.integer_interval(0, self._num_events - 1),
                                             is_discrete=True, event_dim=0)
    param_shape = property(lambda self: self._param.shape)
    mean = property(lambda self: tenon.full(self._batch_shape, math.nan, dtype=self.probs.dtype))
    mode = property(lambda self: self.probs.argmax(dim=-1))
    variance = mean

    def sample(self, sample_shape=()):
        count = math.prod(sample_shape)
        with tenon.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            return tenon.multinomial(rows, count, True).t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        index, logits = tenon.broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self):
        least = tenon.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = tenon.arange(self._num_events).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """A category as a vector with a single 1."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    _param = property(lambda self: self._categorical._param)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: self._hot(self.probs.argmax(-1)))

    def _hot(self, index):
        return tenon.nn.functional.one_hot(index, self._categorical._num_events).to(self.probs.dtype)

    def sample(self, sample_shape=()):
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._categorical._num_events
        values = tenon.eye(n, dtype=self.probs.dtype).reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n,) + tuple(self._batch_shape) + (n,)) if expand else values

    def __repr__(self):
        return type(self).__name__ + "()"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Samples whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        made = self.sample(sample_shape)
        return made + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each category comes in total_count draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    support = constraints.dependent_property(lambda self: constraints.multinomial(self.total_count),
                                             is_discrete=True, event_dim=1)
    _param = property(lambda self: self._categorical._param)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        draws = self._categorical.sample((self.total_count,) + tuple(sample_shape))
        n = self._categorical._num_events
        return tenon.nn.functional.one_hot(draws, n).sum(0).to(self.probs.dtype)

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = tenon.where((value == 0) & (logits == -math.inf), tenon.zeros_like(logits), logits)
        return tenon.lgamma(value.sum(-1) + 1) - tenon.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        """The count of each category is binomial: their log factorials are what is not in the categories' entropy."""
        n = self.total_count
        counts = Binomial(n, probs=self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)[1:]
        factorials = (tenon.exp(counts.log_prob(values)) * tenon.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + factorials

    def __repr__(self):
        return "Multinomial()"
