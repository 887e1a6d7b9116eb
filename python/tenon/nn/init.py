# SPDX-License-Identifier: MIT
"""Filling tensors with initial values. Every function fills in place, without recording, and returns the tensor."""

import math
import warnings

import tenon

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_overridden = tenon._C._has_torch_function_unary


def _no_grad_uniform_(tensor, a, b, generator=None):
    with tenon.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with tenon.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor, val):
    with tenon.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    with tenon.no_grad():
        return tensor.zero_()


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """Values of the normal distribution between `a` and `b`, by the inverse of its distribution function."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=3,
        )

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with tenon.no_grad():
        low, high = below((a - mean) / std), below((b - mean) / std)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


_GAINS = {"sigmoid": 1, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity, param=None):
    """The gain that keeps the variance through `nonlinearity`; `param` is the slope of a leaky_relu."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill from the uniform distribution on [a, b)."""
    if _overridden(tensor):
        return tenon._C._override_call(uniform_, (), {"tensor": tensor, "a": a, "b": b, "generator": generator})
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill from the normal distribution."""
    if _overridden(tensor):
        return tenon._C._override_call(normal_, (), {"tensor": tensor, "mean": mean, "std": std, "generator": generator})
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill from the normal distribution cut off at `a` and `b`."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=generator)


def constant_(tensor, val):
    """Fill with one value."""
    if _overridden(tensor):
        return tenon._C._override_call(constant_, (), {"tensor": tensor, "val": val})
    return _no_grad_fill_(tensor, val)


def ones_(tensor):
    """Fill with 1."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor):
    """Fill with 0."""
    return _no_grad_zero_(tensor)


def eye_(tensor):
    """Make a matrix the identity."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with tenon.no_grad():
        return tensor.copy_(tenon.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """Make a convolution's weight (3, 4 or 5 dimensions) the identity on as many channels as there are, in each group."""
    dims = tensor.ndimension()
    if dims not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(s // 2 for s in sizes[2:])
    with tenon.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs and outputs one unit of a weight has: (in, out)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    inputs, outputs, field = tensor.size(1), tensor.size(0), 1
    for s in tensor.shape[2:] if tensor.dim() > 2 else ():
        field *= s
    return inputs * field, outputs * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Glorot's uniform initialization."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    a = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Glorot's normal initialization."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _no_grad_normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's uniform initialization; `a` is the slope of the leaky_relu that follows."""
    if _overridden(tensor):
        return tenon._C._override_call(kaiming_uniform_, (), {"tensor": tensor, "a": a, "mode": mode, "nonlinearity": nonlinearity, "generator": generator})
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's normal initialization; `a` is the slope of the leaky_relu that follows."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0, std, generator)


def _orthonormal(a):
    """Orthonormal columns that span those of `a` (*, m, n), m >= n: the Q of a QR whose R has a positive diagonal.

    That sign makes the distribution uniform when `a` is normal. Columns are cleared of those before them twice, which keeps
    them orthogonal to rounding.
    """
    q = tenon.zeros_like(a)
    for j in range(a.size(-1)):
        v = a[..., j : j + 1]
        done = q[..., :j]
        for _ in range(2 if j else 0):
            v = v - done @ (done.mH @ v)
        q[..., j : j + 1] = v / v.norm(2, -2, keepdim=True)
    return q


def orthogonal_(tensor, gain=1, generator=None):
    """Make a matrix (all but the first dimension taken as one) have orthonormal rows or columns, times `gain`."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with tenon.no_grad():
        flat = tenon.empty(rows, cols, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        if rows < cols:
            flat = flat.t()
        q = _orthonormal(flat)
        if rows < cols:
            q = q.t()
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix from the normal distribution, with this share of every column zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with tenon.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[tenon.randperm(rows)[:zeros], col] = 0
    return tensor


def _old_name(fn):
    """The name without the underscore, which still works and says so."""
    new, old = fn.__name__, fn.__name__[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2
        )
        return fn(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The old name of `{new}`."
    return deprecated


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
