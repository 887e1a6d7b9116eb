# SPDX-License-Identifier: MIT
"""Activation layers. All keep the shape of their input."""

import warnings

import tenon
import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept
from tenon.nn.modules.module import Module
from tenon.nn.modules.multihead import MultiheadAttention
from tenon.nn.parameter import Parameter

__all__ = [
    "Threshold",
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GLU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "MultiheadAttention",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Softmin",
    "Softmax",
    "Softmax2d",
    "LogSoftmax",
]


class Threshold(Kept, args="threshold, value, inplace=False"):
    """`input` where it is above `threshold`, else `value`."""

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)


class ReLU(Kept, args="inplace=False"):
    """`max(input, 0)`."""

    def forward(self, input):
        return F.relu(input, self.inplace)


tenon._C._know_forward(1, ReLU, F.__dict__, "relu")


class RReLU(Kept, args="lower=1.0 / 8, upper=1.0 / 3, inplace=False"):
    """`LeakyReLU` whose slope is drawn from [lower, upper) in training and is their mean otherwise."""

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(Module):
    """`input` kept within [min_val, max_val]."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if (min_value if old == "min_value" else max_value) is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """`min(max(input, 0), 6)`."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """`1 / (1 + exp(-input))`."""

    def forward(self, input):
        return tenon.sigmoid(input)


class Hardsigmoid(Kept, args="inplace=False"):
    """`relu6(input + 3) / 6`."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self):
        return ""


class Tanh(Module):
    """`tanh(input)`."""

    def forward(self, input):
        return tenon.tanh(input)


class SiLU(Kept, args="inplace=False"):
    """`input * sigmoid(input)`."""

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(Kept, args="inplace=False"):
    """`input * tanh(softplus(input))`."""

    def forward(self, input):
        return F.mish(input, self.inplace)


class Hardswish(Kept, args="inplace=False"):
    """`input * relu6(input + 3) / 6`."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)

    def extra_repr(self):
        return ""


class ELU(Kept, args="alpha=1.0, inplace=False"):
    """`input` where positive, else `alpha * (exp(input) - 1)`."""

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)


class CELU(Kept, args="alpha=1.0, inplace=False"):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class SELU(Kept, args="inplace=False"):
    """The self-normalizing exponential unit."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class GLU(Kept, args="dim=-1"):
    """The first half along `dim` times the sigmoid of the second: that dimension is halved."""

    def forward(self, input):
        return F.glu(input, self.dim)


class GELU(Kept, args="approximate='none'"):
    """`input` times the normal distribution's share below it; 'tanh' takes the formula with tanh."""

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)


class Hardshrink(Kept, args="lambd=0.5"):
    """0 within [-lambd, lambd], `input` elsewhere."""

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class LeakyReLU(Kept, args="negative_slope=1e-2, inplace=False"):
    """`input` where positive, else `negative_slope * input`."""

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class LogSigmoid(Module):
    """`log(sigmoid(input))`."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softplus(Kept, args="beta=1.0, threshold=20.0"):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above `threshold`."""

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(Kept, args="lambd=0.5"):
    """`input` drawn towards 0 by `lambd`."""

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class PReLU(Module):
    """`LeakyReLU` whose slope is a parameter, one for all or one for each of `num_parameters` channels (dimension 1)."""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(tenon.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the slopes back to `init`."""
        tenon.nn.init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """`input / (1 + |input|)`."""

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """`input - tanh(input)`."""

    def forward(self, input):
        return F.tanhshrink(input)


class _AlongDim(Kept):
    """A softmax along `dim`."""

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None


class Softmin(_AlongDim, args="dim=None"):
    """`softmax(-input)` along `dim`."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim, args="dim=None"):
    """`exp(input)` divided by its sum along `dim`."""

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim, args="dim=None"):
    """The logarithm of softmax along `dim`."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)
