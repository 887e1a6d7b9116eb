# SPDX-License-Identifier: MIT
"""Operators that share their name with something else of the package: `_VF.split`, `_VF.lstm`, as PyTorch keeps them."""

import tenon


def __getattr__(name):
    return getattr(tenon._C._VariableFunctions, name)
