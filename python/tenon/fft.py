# SPDX-License-Identifier: MIT
"""Fourier transforms: the operators whose names begin with fft_."""

import tenon

_operators = {name[4:]: f for name, f in vars(tenon._C._nn).items() if name.startswith("fft_")}
globals().update(_operators)
__all__ = sorted(_operators)
