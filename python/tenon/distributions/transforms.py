# SPDX-License-Identifier: MIT
"""Invertible functions with the logarithm of the absolute determinant of their derivative."""

import math
import weakref

import tenon
from tenon.distributions import constraints
from tenon.distributions.distribution import sum_rightmost

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform",
           "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
           "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]


class Transform:
    """A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`. With a cache of one, the last value and what it was
    made of are remembered: the inverse of a value that was just made is exactly what it was made of."""

    bijective = False
    domain = codomain = constraints.real

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv, self._cached_x_y = cache_size, None, (None, None)
        super().__init__()

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_inv"] = None
        return state

    @property
    def event_dim(self):
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self):
        """The inverse; one object, while somebody holds it."""
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = _InverseTransform(self)
            self._inv = weakref.ref(made)
        return made

    @property
    def sign(self):
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError("%s.with_cache is not implemented" % type(self))

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        raise NotImplementedError

    def forward_shape(self, shape):
        return shape

    def inverse_shape(self, shape):
        return shape

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self.__eq__(other)

    __hash__ = object.__hash__

    def __repr__(self):
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    """A transform, the other way; what is cached is the transform's."""

    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    bijective = property(lambda self: self._inv.bijective)
    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self):
        return self.__dict__.copy()

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x):
        return self._inv._inv_call(x)

    def _inv_call(self, y):
        return self._inv(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, self._inv)


class ComposeTransform(Transform):
    """One after another."""

    def __init__(self, parts, cache_size=0):
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        super().__init__(cache_size)

    bijective = property(lambda self: all(part.bijective for part in self.parts))

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def _dims(self, parts, into, out):
        """How many dimensions an event has before the parts, when they are gone through from the last to the first."""
        dims = out(parts[-1]).event_dim
        for part in reversed(parts):
            dims = max(dims + into(part).event_dim - out(part).event_dim, into(part).event_dim)
        return dims

    @property
    def domain(self):
        if not self.parts:
            return constraints.real
        made = self.parts[0].domain
        dims = self._dims(self.parts, lambda part: part.domain, lambda part: part.codomain)
        return made if dims <= made.event_dim else constraints.independent(made, dims - made.event_dim)

    @property
    def codomain(self):
        if not self.parts:
            return constraints.real
        made = self.parts[-1].codomain
        dims = self._dims(self.parts[::-1], lambda part: part.codomain, lambda part: part.domain)
        return made if dims <= made.event_dim else constraints.independent(made, dims - made.event_dim)

    @property
    def sign(self):
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self):
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, made._inv = weakref.ref(made), weakref.ref(self)
            made._inverse_of = self
        return made

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y):
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    _inverse = _inv_call

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return tenon.zeros_like(x)
        at = [x]
        for part in self.parts[:-1]:
            at.append(part(at[-1]))
        at.append(y)
        total, dims = 0, self.domain.event_dim
        for part, before, after in zip(self.parts, at, at[1:]):
            total = total + sum_rightmost(part.log_abs_det_jacobian(before, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return "ComposeTransform(\n    %s\n)" % ",\n    ".join(map(repr, self.parts))


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Another transform, the last dimensions of whose batch belong to the event."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)
    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(self.base_transform.codomain,
                                                             self.reinterpreted_batch_ndims))

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform._inv_call(y)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return "IndependentTransform(%r, %d)" % (self.base_transform, self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Another shape of the event."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tenon.Size(in_shape), tenon.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(tuple(x.shape[:x.dim() - len(self.in_shape)]) + tuple(self.out_shape))

    def _inverse(self, y):
        return y.reshape(tuple(y.shape[:y.dim() - len(self.out_shape)]) + tuple(self.in_shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.dim() - len(self.in_shape)])

    @staticmethod
    def _shape(shape, before, after):
        if len(shape) < len(before):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != tuple(before):
            raise ValueError("Shape mismatch: expected %s but got %s" % (tenon.Size(shape[cut:]), before))
        return tenon.Size(tuple(shape[:cut]) + tuple(after))

    def forward_shape(self, shape):
        return self._shape(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._shape(shape, self.out_shape, self.in_shape)


def _equal(a, b):
    """Whether two parameters, numbers or tensors, are the same."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return bool((tenon.as_tensor(a) == tenon.as_tensor(b)).all())


class AffineTransform(Transform):
    """loc + scale * x."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = codomain = property(lambda self: constraints.independent(constraints.real, self._event_dim)
                                 if self._event_dim else constraints.real)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else AffineTransform(self.loc, self.scale, self._event_dim,
                                                                           cache_size)

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    __hash__ = object.__hash__

    def forward_shape(self, shape):
        return tenon.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, tenon.Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        log = scale.abs().log() if isinstance(scale, tenon.Tensor) else math.log(abs(scale))
        return sum_rightmost(tenon.zeros_like(x) + log, self._event_dim)


class _Plain(Transform):
    """A transform without parameters: two of a class are equal."""

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = object.__hash__


class ExpTransform(_Plain):
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, tenon.Tensor) else tenon.tensor(float(exponent))

    sign = property(lambda self: self.exponent.sign())

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = object.__hash__

    def forward_shape(self, shape):
        return tenon.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


def _clipped_sigmoid(x):
    info = tenon.finfo(x.dtype)
    return tenon.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class SigmoidTransform(_Plain):
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        info = tenon.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -tenon.nn.functional.softplus(-x) - tenon.nn.functional.softplus(x)


class SoftplusTransform(_Plain):
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return tenon.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -tenon.nn.functional.softplus(-x)


class TanhTransform(_Plain):
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return tenon.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - tenon.nn.functional.softplus(-2.0 * x))


class AbsTransform(_Plain):
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(_Plain):
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return tenon.softmax(x, -1)

    def _inverse(self, y):
        return y.log()


class StickBreakingTransform(_Plain):
    """Vectors of n numbers to points of a simplex with n + 1 corners."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _parts(self, x):
        offset = x.shape[-1] + 1 - tenon.ones(x.shape[-1], dtype=x.dtype).cumsum(-1)
        return x - offset.log()

    def _call(self, x):
        z = tenon.sigmoid(self._parts(x))
        left = (1 - z).cumprod(-1)
        pad = tenon.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        crop = y[..., :-1]
        offset = y.shape[-1] - tenon.ones(crop.shape[-1], dtype=y.dtype).cumsum(-1)
        left = (1 - crop.cumsum(-1)).clamp(min=tenon.finfo(y.dtype).tiny)
        return crop.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x, y):
        z = self._parts(x)
        return (-z + tenon.nn.functional.logsigmoid(z) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        return shape[:-1] + (shape[-1] - 1,)
