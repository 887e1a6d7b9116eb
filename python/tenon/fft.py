# SPDX-License-Identifier: MIT
"""Fourier transforms: the operators whose names begin with fft_."""

import tenon
from tenon._typing import TYPE_CHECKING, Any

_operators = {name[4:]: f for name, f in vars(tenon._C._nn).items() if name.startswith("fft_")}
globals().update(_operators)
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...  # the operators
__all__ = sorted(_operators)
