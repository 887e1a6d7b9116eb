# SPDX-License-Identifier: MIT
"""Activations and the softmax family. All work element by element, or along `dim`, and keep the input's shape."""

import warnings

import tenon
from tenon.nn.functional._shared import give_way, op, overridable, overridden

_nn = tenon._C._nn

gelu = op("gelu")
softplus = op("softplus")
logsigmoid = op("log_sigmoid")
prelu = op("prelu")
relu_ = op("relu_")
elu_ = op("elu_")
celu_ = op("celu_")
selu_ = op("selu_")
leaky_relu_ = op("leaky_relu_")
hardtanh_ = op("hardtanh_")
threshold_ = op("threshold_")


def _hardshrink(input, lambd=0.5):
    """0 where `-lambd <= input <= lambd`, `input` elsewhere."""
    return tenon.where((input >= -lambd) & (input <= lambd), 0, input)


def _softshrink(input, lambd=0.5):
    """`input` drawn towards 0 by `lambd`, and 0 where it is nearer than that."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return tenon.where(input > lambd, input - lambd, tenon.where(input < -lambd, input + lambd, input * 0))


def _rrelu(input, lower=0.125, upper=1.0 / 3, training=False):
    if not training:
        return tenon._C._nn.leaky_relu(input, (lower + upper) / 2)
    noise = tenon.empty_like(input).uniform_(lower, upper)
    return tenon.where(input <= 0, input * noise, input)


hardshrink = op("hardshrink", _hardshrink)
softshrink = op("softshrink", _softshrink)
_rrelu_op = getattr(tenon, "rrelu", _rrelu)


def rrelu_(input, lower=0.125, upper=1.0 / 3, training=False):
    """In-place `rrelu`."""
    with_op = getattr(tenon, "rrelu_", None)
    return with_op(input, lower, upper, training) if with_op else input.copy_(_rrelu(input, lower, upper, training))


def relu(input, inplace=False):
    """`max(input, 0)`."""
    if overridden(input):
        return give_way(relu, input, inplace=inplace)
    return tenon.relu_(input) if inplace else tenon.relu(input)


@overridable
def relu6(input, inplace=False):
    """`min(max(input, 0), 6)`."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def elu(input, alpha=1.0, inplace=False):
    """`input` where positive, else `alpha * (exp(input) - 1)`."""
    if overridden(input):
        return give_way(elu, input, alpha=alpha, inplace=inplace)
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


@overridable
def selu(input, inplace=False):
    """The self-normalizing exponential unit."""
    return tenon.selu_(input) if inplace else tenon.selu(input)


@overridable
def celu(input, alpha=1.0, inplace=False):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""
    return tenon.celu_(input, alpha) if inplace else tenon.celu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """`input` where positive, else `negative_slope * input`."""
    if overridden(input):
        return give_way(leaky_relu, input, negative_slope=negative_slope, inplace=inplace)
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


@overridable
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """`leaky_relu` with a slope drawn from [lower, upper) in training, their mean otherwise."""
    return rrelu_(input, lower, upper, training) if inplace else _rrelu_op(input, lower, upper, training)


@overridable
def threshold(input, threshold, value, inplace=False):
    """`input` where it is above `threshold`, else `value`."""
    return tenon.threshold_(input, threshold, value) if inplace else tenon.threshold(input, threshold, value)


_threshold = threshold


@overridable
def glu(input, dim=-1):
    """The first half along `dim` times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


@overridable
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """`input` kept within [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


@overridable
def tanhshrink(input):
    """`input - tanh(input)`."""
    return input - input.tanh()


@overridable
def softsign(input):
    """`input / (1 + |input|)`."""
    return input / (input.abs() + 1)


def tanh(input):
    """`tanh` element by element."""
    return input.tanh()


def sigmoid(input):
    """`1 / (1 + exp(-input))` element by element."""
    return input.sigmoid()


@overridable
def hardsigmoid(input, inplace=False):
    """`relu6(input + 3) / 6`."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def silu(input, inplace=False):
    """`input * sigmoid(input)`."""
    if overridden(input):
        return give_way(silu, input, inplace=inplace)
    return _nn.silu_(input) if inplace else _nn.silu(input)


@overridable
def mish(input, inplace=False):
    """`input * tanh(softplus(input))`."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


@overridable
def hardswish(input, inplace=False):
    """`input * relu6(input + 3) / 6`."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


def _get_softmax_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`exp(input)` divided by its sum along `dim`; computed in `dtype` where one is given."""
    if overridden(input):
        return give_way(softmax, input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@overridable
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax(-input)`."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax`, computed safely."""
    if overridden(input):
        return give_way(log_softmax, input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@overridable
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution along `dim`; with `hard` a one-hot sample with the soft gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -tenon.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return tenon.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
