# SPDX-License-Identifier: MIT
"""Pooling layers over (N, C, *spatial) or (C, *spatial)."""

import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept
from tenon.nn.modules._own import own_constructor
from tenon.nn.modules.module import Module
from tenon.nn.modules.utils import _ntuple, _single

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
]


class _MaxPoolNd(Module):
    """The largest of each window; with `return_indices` also where it was."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    return_indices = False
    ceil_mode = False
    _run = None

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if (stride is not None) else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return type(self)._run(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpoolNd(Module):
    """A partial inverse of max pooling, from its values and indices."""

    _n = None
    _run = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        each = _ntuple(self._n)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if (stride is not None) else kernel_size)
        self.padding = each(padding)

    def forward(self, input, indices, output_size=None):
        return type(self)._run(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    """The mean of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L)."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolDivided(_AvgPoolNd):
    """Average pooling in two and three dimensions, where the divisor can be chosen."""

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]
    _run = None

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if (stride is not None) else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return type(self)._run(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _FractionalMaxPoolNd(Module):
    """Max pooling over windows at random, spread places."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _n = None
    _run = None

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        super().__init__()
        each = _ntuple(self._n)
        name = type(self).__name__
        if self._n == 3 and min(each(kernel_size)) <= 0:
            raise ValueError(f"kernel_size must greater than 0, but got {kernel_size}")
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return type(self)._run(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _LPPoolNd(Module):
    """The p-norm of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _run = None

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return type(self)._run(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class _AdaptiveMaxPoolNd(Kept, args="output_size, return_indices=False"):
    """The largest of windows cut so that the result has `output_size`."""

    _run = None

    def forward(self, input):
        return type(self)._run(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(Kept, args="output_size"):
    """The mean of windows cut so that the result has `output_size`."""

    _run = None

    def forward(self, input):
        return type(self)._run(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


_INPUTS = {1: "(N, C, L) or (C, L)", 2: "(N, C, H, W) or (C, H, W)", 3: "(N, C, D, H, W) or (C, D, H, W)"}

for _name, _base, _function, _dims in (
    ("MaxPool", _MaxPoolNd, "max_pool", (1, 2, 3)),
    ("MaxUnpool", _MaxUnpoolNd, "max_unpool", (1, 2, 3)),
    ("AvgPool", _AvgPoolDivided, "avg_pool", (2, 3)),
    ("FractionalMaxPool", _FractionalMaxPoolNd, "fractional_max_pool", (2, 3)),
    ("LPPool", _LPPoolNd, "lp_pool", (1, 2, 3)),
    ("AdaptiveMaxPool", _AdaptiveMaxPoolNd, "adaptive_max_pool", (1, 2, 3)),
    ("AdaptiveAvgPool", _AdaptiveAvgPoolNd, "adaptive_avg_pool", (1, 2, 3)),
):
    for _n in _dims:
        _made = globals()[f"{_name}{_n}d"] = type(
            f"{_name}{_n}d",
            (_base,),
            {
                "__module__": __name__,
                "__doc__": f"{_base.__doc__.rstrip('.')}: {_INPUTS[_n]}.",
                "_n": _n,
                "_run": staticmethod(getattr(F, f"{_function}{_n}d")),
            },
        )
        if _base in (_MaxUnpoolNd, _AvgPoolDivided, _FractionalMaxPoolNd):  # the others' text names the base, as PyTorch's
            own_constructor(_made)
del _name, _base, _function, _dims, _n, _made
