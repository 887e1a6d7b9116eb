# SPDX-License-Identifier: MIT
"""Invertible functions with the logarithm of the absolute determinant of their derivative."""

import math

import tenon
from tenon.distributions import constraints
from tenon.distributions.distribution import sum_rightmost

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform",
           "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
           "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]


class Transform:
    """A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`."""

    bijective = False
    domain = codomain = constraints.real
    event_dim = property(lambda self: self.domain.event_dim)

    def __init__(self, cache_size=0):
        self._cache_size = cache_size

    @property
    def inv(self):
        return _Inverse(self)

    @property
    def sign(self):
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        return self

    def __call__(self, x):
        return self._call(x)

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def _inv_call(self, y):
        return self._inverse(y)

    def log_abs_det_jacobian(self, x, y):
        raise NotImplementedError

    def forward_shape(self, shape):
        return shape

    def inverse_shape(self, shape):
        return shape

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self):
        return type(self).__name__ + "()"


class _Inverse(Transform):
    def __init__(self, transform):
        super().__init__()
        self._inv = transform

    bijective = property(lambda self: self._inv.bijective)
    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def _call(self, x):
        return self._inv._inverse(x)

    def _inverse(self, y):
        return self._inv._call(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """One after another."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = list(parts)

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    domain = property(lambda self: self.parts[0].domain if self.parts else constraints.real)
    codomain = property(lambda self: self.parts[-1].codomain if self.parts else constraints.real)
    event_dim = property(lambda self: max([part.event_dim for part in self.parts], default=0))

    @property
    def sign(self):
        return math.prod(part.sign for part in self.parts)

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return tenon.zeros_like(x)
        total, most = 0, max(part.event_dim for part in self.parts)
        for part in self.parts:
            then = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, then), most - part.event_dim)
            x = then
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
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)
    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(self.base_transform.codomain,
                                                             self.reinterpreted_batch_ndims))

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform._inverse(y)

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

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(tuple(x.shape[:x.dim() - len(self.in_shape)]) + tuple(self.out_shape))

    def _inverse(self, y):
        return y.reshape(tuple(y.shape[:y.dim() - len(self.out_shape)]) + tuple(self.in_shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return tenon.Size(tuple(shape[:len(shape) - len(self.in_shape)]) + tuple(self.out_shape))

    def inverse_shape(self, shape):
        return tenon.Size(tuple(shape[:len(shape) - len(self.out_shape)]) + tuple(self.in_shape))


class AffineTransform(Transform):
    """loc + scale * x."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = codomain = property(lambda self: constraints.independent(constraints.real, self._event_dim)
                                 if self._event_dim else constraints.real)

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, tenon.Tensor) else math.copysign(1, self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        log = scale.abs().log() if isinstance(scale, tenon.Tensor) else math.log(abs(scale))
        return sum_rightmost(tenon.zeros_like(x) + log, self._event_dim)


class ExpTransform(Transform):
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

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x):
        info = tenon.finfo(x.dtype)
        return tenon.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y):
        info = tenon.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -tenon.nn.functional.softplus(-x) - tenon.nn.functional.softplus(x)


class SoftplusTransform(Transform):
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return tenon.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -tenon.nn.functional.softplus(-x)


class TanhTransform(Transform):
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return tenon.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - tenon.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(Transform):
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return tenon.softmax(x, -1)

    def _inverse(self, y):
        return y.log()


class StickBreakingTransform(Transform):
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
        return tenon.Size(tuple(shape[:-1]) + (shape[-1] + 1,))

    def inverse_shape(self, shape):
        return tenon.Size(tuple(shape[:-1]) + (shape[-1] - 1,))
