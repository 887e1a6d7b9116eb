# SPDX-License-Identifier: MIT
"""Convolutions and transposed convolutions over one, two or three spatial dimensions, and their lazy kinds."""

import math

import tenon
import tenon.nn.functional as F
from tenon.nn import init
from tenon.nn.modules._own import own_constructor
from tenon.nn.modules.lazy import LazyModuleMixin
from tenon.nn.modules.module import Module
from tenon.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from tenon.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions share: the weight (out, in / groups, *kernel), turned round when transposed, and the bias."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _n = None

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {{{str(_PADDING_MODES)[1:-1]}}}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # What F.pad takes, for the padding modes that are a pad of their own.
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = [0, 0] * len(kernel_size)
            if padding == "same":
                for d, k, i in zip(dilation, kernel_size, range(len(kernel_size) - 1, -1, -1)):
                    total = d * (k - 1)
                    self._reversed_padding_repeated_twice[2 * i] = total // 2
                    self._reversed_padding_repeated_twice[2 * i + 1] = total - total // 2
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        lead = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(tenon.empty((*lead, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tenon.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Uniform in [-k, k] with k = 1/sqrt(in * kernel)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            s += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


class _Convolution(_ConvNd):
    """The constructor and call of the plain convolutions; a class says how many dimensions it has."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        each = _ntuple(self._n)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation),
            False,
            each(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._n
        return type(self)._conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        held = self._parameters  # see Note [Parameters in forward]
        if "weight" in held and "bias" in held:
            return self._conv_forward(input, held["weight"], held["bias"])
        return self._conv_forward(input, self.weight, self.bias)


@own_constructor
class Conv1d(_Convolution):
    """A convolution of (N, C, L) or (C, L)."""

    _n = 1
    _conv = staticmethod(F.conv1d)


@own_constructor
class Conv2d(_Convolution):
    """A convolution of (N, C, H, W) or (C, H, W)."""

    _n = 2
    _conv = staticmethod(F.conv2d)


@own_constructor
class Conv3d(_Convolution):
    """A convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _n = 3
    _conv = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The constructor and call of the transposed convolutions."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _ntuple(self._n)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            each(padding),
            each(dilation),
            True,
            each(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The padding of the output that gives `output_size`; it must lie within one stride of the smallest size."""
        if output_size is None:
            return list(_ntuple(num_spatial_dims)(self.output_padding))
        extra = 2 if input.dim() == num_spatial_dims + 2 else 1
        if len(output_size) == extra + num_spatial_dims:
            output_size = output_size[extra:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have {num_spatial_dims} or "
                f"{extra + num_spatial_dims} elements (got {len(output_size)})"
            )
        low, high = [], []
        for d in range(num_spatial_dims):
            size = (input.size(d + extra) - 1) * stride[d] - 2 * padding[d]
            size += (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1) + 1
            low.append(size)
            high.append(size + stride[d] - 1)
        if not all(a <= s <= b for a, s, b in zip(low, output_size, high)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {low} to {high} (for an input of "
                f"{input.size()[2:]})"
            )
        return [s - a for s, a in zip(output_size, low)]

    def forward(self, input, output_size=None):
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._n, self.dilation
        )
        return type(self)._conv(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


@own_constructor
class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of (N, C, L) or (C, L)."""

    _n = 1
    _conv = staticmethod(F.conv_transpose1d)


@own_constructor
class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of (N, C, H, W) or (C, H, W)."""

    _n = 2
    _conv = staticmethod(F.conv_transpose2d)


@own_constructor
class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _n = 3
    _conv = staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """Finds `in_channels` from the first input."""

    def _become_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Take the shapes from the first input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            lead = (self.in_channels, self.out_channels // self.groups)
        else:
            lead = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*lead, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        n = self._n
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: "
                f"{input.shape}"
            )
        return input.shape[1] if input.dim() == n + 2 else input.shape[0]

    def _get_num_spatial_dims(self):
        return self._n


def _lazy(base, transposed):
    """The lazy kind of a convolution class."""

    def plain(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super(made, self).__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._become_lazy(out_channels, bias, device, dtype)

    def turned(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super(made, self).__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._become_lazy(out_channels, bias, device, dtype)

    made = type(
        "Lazy" + base.__name__,
        (_LazyConvXdMixin, base),
        {
            "__init__": turned if transposed else plain,
            "__module__": __name__,
            "__doc__": f"A `{base.__name__}` that finds `in_channels` from its first input.",
            "cls_to_become": base,
        },
    )
    return own_constructor(made)


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(c, False) for c in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(c, True) for c in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
