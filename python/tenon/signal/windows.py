# SPDX-License-Identifier: MIT
"""Windows of `M` points. `sym=True` gives the symmetric one, `sym=False` the first `M` points of that with `M + 1`.

A window is a formula over equally spaced points; the points carry `requires_grad`, so that what is made of them has a
gradient as it has under PyTorch.
"""

import math
from collections.abc import Iterable

import tenon

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _options(name, M, dtype, layout, device, requires_grad):
    """What a factory takes, once the length, the layout and the dtype are found to be a window's."""
    if dtype is None:
        dtype = tenon.get_default_dtype()
    if M < 0:
        raise ValueError("%s requires non-negative window length, got M=%s" % (name, M))
    if layout is not tenon.strided:
        raise ValueError("%s is implemented for strided tensors only, got: %s" % (name, layout))
    if dtype not in (tenon.float32, tenon.float64):
        raise ValueError("%s expects float32 or float64 dtypes, got: %s" % (name, dtype))
    return {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}


def _points(M, start, step, options, end=None):
    """`M` points from `start` on, `step` apart, of which the last is no more than `end`."""
    last = start + (M - 1) * step
    return tenon.linspace(start=start, end=last if end is None else min(last, end), steps=M, **options)


def _length(M, sym):
    """The distance between the first point and the last, or the point that `sym=False` leaves out. For M > 1."""
    return M - 1 if sym else M


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """exp(-|n - center| / tau)."""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError("Tau must be positive, got: %s instead." % tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return tenon.empty((0,), **options)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    return tenon.exp(-tenon.abs(_points(M, -center / tau, 1 / tau, options)))


def cosine(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """sin(pi (n + 1/2) / M)."""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return tenon.empty((0,), **options)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return tenon.sin(_points(M, 0.5 * step, step, options))


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """exp(-(n / std)^2 / 2), n counted from the middle."""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError("Standard deviation must be positive, got: %s instead." % std)
    if M == 0:
        return tenon.empty((0,), **options)
    step = 1 / (std * math.sqrt(2))
    middle = (M if not sym and M > 1 else M - 1) / 2.0
    return tenon.exp(-_points(M, -middle * step, step, options) ** 2)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError("beta must be non-negative, got: %s instead." % beta)
    if M == 0:
        return tenon.empty((0,), **options)
    if M == 1:
        return tenon.ones((1,), **options)
    top = tenon.tensor(beta, dtype=options["dtype"], device=device)
    points = _points(M, -beta, 2.0 * beta / _length(M, sym), options, end=beta)
    return tenon.i0(tenon.sqrt(top * top - points ** 2)) / tenon.i0(top)


def bartlett(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """A triangle with zeros at its ends."""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M == 0:
        return tenon.empty((0,), **options)
    if M == 1:
        return tenon.ones((1,), **options)
    return 1 - tenon.abs(_points(M, -1, 2 / _length(M, sym), options))


def _cosines(name, M, a, sym, dtype, layout, device, requires_grad):
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - …, x from 0 to 2 pi."""
    options = _options(name, M, dtype, layout, device, requires_grad)
    if M == 0:
        return tenon.empty((0,), **options)
    if M == 1:
        return tenon.ones((1,), **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    x = _points(M, 0, 2 * math.pi / _length(M, sym), options)
    signed = tenon.tensor([-w if i % 2 else w for i, w in enumerate(a)], dtype=options["dtype"], device=device)
    order = tenon.arange(signed.shape[0], dtype=options["dtype"], device=device)
    return (signed.unsqueeze(-1) * tenon.cos(order.unsqueeze(-1) * x)).sum(0)


def general_cosine(M, *, a, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """A sum of cosines with the weights `a`, of alternating sign."""
    return _cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(x)."""
    return _cosines("general_cosine", M, (alpha, 1.0 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """`general_hamming` with alpha 0.54."""
    return _cosines("general_cosine", M, (0.54, 1.0 - 0.54), sym, dtype, layout, device, requires_grad)


def hann(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """`general_hamming` with alpha 0.5."""
    return _cosines("general_cosine", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """Three cosines: 0.42, 0.5, 0.08."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=tenon.strided, device=None, requires_grad=False):
    """Four cosines, Nuttall's weights: the sides fall fast."""
    return _cosines("general_cosine", M, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym, dtype, layout, device,
                    requires_grad)
