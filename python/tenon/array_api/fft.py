# SPDX-License-Identifier: MIT
"""Fourier transforms by the names and arguments of the array-API standard."""

import tenon

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
           "rfftfreq", "rfftn"]


def _one(name):
    def transform(x, /, *, n=None, axis=-1, norm="backward"):
        return getattr(tenon.fft, name)(x, n=n, dim=axis, norm=norm)
    transform.__name__ = transform.__qualname__ = name
    return transform


def _several(name):
    def transform(x, /, *, s=None, axes=None, norm="backward"):
        return getattr(tenon.fft, name)(x, s=s, dim=axes, norm=norm)
    transform.__name__ = transform.__qualname__ = name
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    return tenon.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    return tenon.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    return tenon.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    return tenon.fft.ifftshift(x, axes)
