# SPDX-License-Identifier: MIT
"""Padding layers. `padding` is one number for all sides, or pairs (before, after) from the last dimension on."""

import tenon.nn.functional as F
from tenon.nn.modules._own import own_constructor
from tenon.nn.modules.module import Module
from tenon.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Pads `_n` dimensions with the method `_mode`."""

    __constants__ = ["padding"]
    _n = None
    _mode = None

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._n)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Pads with what stands at the other end."""

    _mode = "circular"

    def _check_input_dim(self, input):
        n = self._n
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class _ReflectionPadNd(_PadNd):
    """Pads with the mirror image, without the edge itself."""

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Pads with the edge repeated."""

    _mode = "replicate"


class _ConstantPadNd(_PadNd):
    """Pads with one value."""

    __constants__ = ["padding", "value"]
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


def _make(name, base, n, **more):
    made = type(
        f"{name}{n}d", (base,), {"__module__": __name__, "__doc__": f"{base.__doc__} {n}d.", "_n": n, **more}
    )
    globals()[made.__name__] = own_constructor(made)
    return made


for _n in (1, 2, 3):
    for _name, _base in (
        ("CircularPad", _CircularPadNd),
        ("ReflectionPad", _ReflectionPadNd),
        ("ReplicationPad", _ReplicationPadNd),
    ):
        _make(_name, _base, _n)
    _make("ConstantPad", _ConstantPadNd, _n)
del _n, _name, _base


class _ZeroPadNd:
    """Pads with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


for _n in (1, 2, 3):
    globals()[f"ZeroPad{_n}d"] = own_constructor(
        type(
            f"ZeroPad{_n}d",
            (_ZeroPadNd, globals()[f"ConstantPad{_n}d"]),
            {"__module__": __name__, "__doc__": f"{_ZeroPadNd.__doc__} {_n}d."},
        )
    )
del _n
