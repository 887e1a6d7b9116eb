# SPDX-License-Identifier: MIT
"""What use_deterministic_algorithms(True) does beside what is always so: while `fill_uninitialized_memory` is True, as it
is at first, tensors that nobody wrote (`empty` and its kin, what `resize_` adds) are filled with NaN, or with the largest
number of a dtype that has none."""

import sys
import types

from tenon import _surface

_fill = [True]


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        return _fill[0]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise RuntimeError("expected a bool, but got %s" % type(mode).__name__)
        _fill[0] = mode
        _surface._fill_empty()


sys.modules[__name__].__class__ = _Deterministic
