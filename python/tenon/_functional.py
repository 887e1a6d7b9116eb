# SPDX-License-Identifier: MIT
"""Functions and methods that are made of operators: those that take tensors one by one, that take a list or a number
in one place, or that give more or fewer results by an option. They are loaded when one is first called."""

import math

import tenon

_ops = tenon._C._VariableFunctions
_range = range  # below, range is torch's


def _list(tensors):
    """f(a, b) and f([a, b]) mean the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


# Shapes.


def broadcast_tensors(*tensors):
    """The tensors, expanded to one shape."""
    return _ops.broadcast_tensors(_list(tensors))


def broadcast_shapes(*shapes):
    """The shape to which all can be expanded."""
    made = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        made = [1] * (len(shape) - len(made)) + made
        for i in _range(-1, -len(shape) - 1, -1):
            if shape[i] < 0:
                raise RuntimeError("Trying to create tensor with negative dimension (%d): (%d)" % (shape[i], shape[i]))
            if shape[i] == 1 or made[i] == shape[i]:
                continue
            if made[i] != 1:
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            made[i] = shape[i]
    return tenon.Size(made)


def meshgrid(*tensors, indexing=None):
    """Coordinates of a grid, one tensor for each dimension."""
    return _ops.meshgrid(_list(tensors), indexing="ij" if indexing is None else indexing)


def cartesian_prod(*tensors):
    """All combinations of one element of each."""
    return _ops.cartesian_prod(_list(tensors))


def block_diag(*tensors):
    """Matrices along the diagonal of one."""
    parts = [t.reshape(1, -1) if t.dim() < 2 else t for t in _list(tensors)]
    for i, t in enumerate(parts):
        if t.dim() > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %d has %d "
                               "dimensions" % (i, t.dim()))
    width = sum(t.shape[1] for t in parts)
    rows, at = [], 0
    for t in parts:
        rows.append(tenon.nn.functional.pad(t, (at, width - at - t.shape[1])))
        at += t.shape[1]
    return tenon.cat(rows, 0)


def _each(tensors, function):
    parts = _list(tensors)
    made = tuple(function(t) for t in parts)
    return made if len(tensors) != 1 or isinstance(tensors[0], (list, tuple)) else made[0]


def atleast_1d(*tensors):
    return _each(tensors, lambda t: t.reshape(1) if t.dim() == 0 else t)


def atleast_2d(*tensors):
    return _each(tensors, lambda t: t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t)


def atleast_3d(*tensors):
    def three(t):
        if t.dim() == 0:
            return t.reshape(1, 1, 1)
        if t.dim() == 1:
            return t.unsqueeze(0).unsqueeze(-1)
        return t.unsqueeze(-1) if t.dim() == 2 else t
    return _each(tensors, three)


def column_stack(tensors):
    """Columns side by side."""
    return tenon.hstack([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors])


def unravel_index(indices, shape):
    """The index in each dimension of elements that are counted in memory order."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    made = []
    for size in reversed(shape):
        made.append(indices % size)
        indices = tenon.div(indices, size, rounding_mode="floor")
    return tuple(reversed(made))


def combinations(input, r=2, with_replacement=False):
    """All r elements of a vector, in order."""
    import itertools
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(_range(input.shape[0]), r))
    index = tenon.tensor(chosen, dtype=tenon.int64).reshape(len(chosen), r)
    return input[index.reshape(-1)].reshape(len(chosen), r)


def vander(x, N=None, *, increasing=False):
    """Powers of x, a column for each."""
    count = x.shape[-1] if N is None else N
    powers = tenon.arange(count) if increasing else tenon.arange(count - 1, -1, -1)
    return x.unsqueeze(-1) ** powers


# Products.


def einsum(*args):
    """einsum("ij,jk->ik", a, b), einsum("…", [a, b]), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    if isinstance(args[0], tenon.Tensor):
        pairs = list(zip(args[0::2], args[1::2]))
        equation = ",".join(_letters(subscripts) for _, subscripts in pairs)
        if len(args) % 2 == 1:
            equation += "->" + _letters(args[-1])
        return _ops.einsum(equation, [operand for operand, _ in pairs])
    return _ops.einsum(args[0], _list(args[1:]))


def _letters(subscripts):
    out = ""
    for s in subscripts:
        if s is Ellipsis:
            out += "..."
        elif 0 <= s < 26:
            out += chr(ord("A") + s)
        elif 26 <= s < 52:
            out += chr(ord("a") + s - 26)
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return out


def tensordot(a, b, dims=2, out=None):
    """Sum over the last `dims` dimensions of a and the first of b, or over the pairs of dimensions given."""
    if not isinstance(dims, (tuple, list, int, tenon.Tensor)):
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
                           "containing two lists, but got dims=%s" % (dims,))
    if isinstance(dims, tenon.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError("tensordot expects dims >= 0, but got dims=%d" % dims)
        dims = [list(_range(a.dim() - dims, a.dim())), list(_range(dims))]
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    made = _ops.tensordot(a, b, first, second)
    return out.copy_(made) if out is not None else made


def chain_matmul(*matrices, out=None):
    """The product of all."""
    made = _list(matrices)
    product = made[0]
    for matrix in made[1:]:
        product = product @ matrix
    return out.copy_(product) if out is not None else product


def vdot(input, other):
    return tenon.dot(input.conj(), other)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return beta * input + alpha * tenon.bmm(batch1, batch2).sum(0)


def dist(input, other, p=2):
    """The p-norm of input - other."""
    return norm(input - other, p)


def cross(input, other, dim=None):
    """The product of vectors of three elements."""
    if dim is None:
        sizes = broadcast_shapes(input.shape, other.shape)
        dim = next((i for i, size in enumerate(sizes) if size == 3), None)
        if dim is None:
            raise RuntimeError("linalg.cross: inputs dimension -1 must have length 3. Got %d and %d"
                               % (input.shape[-1], other.shape[-1]))
    input, other = broadcast_tensors(input, other)
    if input.shape[dim] != 3:
        raise RuntimeError("linalg.cross: inputs dimension %d must have length 3. Got %d and %d"
                           % (dim, input.shape[dim], other.shape[dim]))
    return (input.roll(-1, dim) * other.roll(-2, dim)) - (input.roll(-2, dim) * other.roll(-1, dim))


# Norms and statistics.


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements, or over dimensions; "fro" is the 2-norm."""
    if p is None or p == "fro":
        p = 2.0
    elif p == "nuc":
        made = tenon.linalg.matrix_norm(input, "nuc", dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
        return out.copy_(made) if out is not None else made
    elif isinstance(p, str):
        raise RuntimeError("only valid string values are 'fro' and 'nuc', found %s" % p)
    if dim is None and not keepdim and dtype is None:
        made = _ops.norm(input, p)
    else:
        dim = list(_range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        made = _ops.norm(input, p, dim, keepdim, dtype=dtype) if dtype is not None else _ops.norm(input, p, dim, keepdim)
    return out.copy_(made) if out is not None else made


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of the rows."""
    if input.dim() > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with %d dimensions"
                           % input.dim())
    x = input.reshape(1, -1) if input.dim() < 2 else input
    weights = None
    if fweights is not None:
        weights = fweights.to(x.dtype)
    if aweights is not None:
        weights = aweights.to(x.dtype) if weights is None else weights * aweights
    if weights is None:
        total = x.shape[1]
        centred = x - x.mean(1, keepdim=True)
        product, left = centred @ centred.conj().t(), total - correction
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / total
        product = (centred * weights) @ centred.conj().t()
        left = total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)
    made = product / max(left, 0) if not isinstance(left, tenon.Tensor) else product / left.clamp(min=0)
    return made.squeeze()


def corrcoef(input):
    """Correlations of the rows."""
    made = cov(input)
    if made.dim() == 0:
        return made / made
    root = made.diagonal().sqrt()
    return (made / root.unsqueeze(1) / root.unsqueeze(0)).clamp(-1, 1)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along dim; also where each came from, and how many there are."""
    if dim is not None:
        values, inverse, counts = _ops.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _ops._unique2(input, sorted, return_inverse, return_counts)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The same with only neighbours compared."""
    return _chosen(*_ops.unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def _chosen(values, inverse, counts, return_inverse, return_counts):
    made = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return made if len(made) > 1 else values


def nonzero(input, *, out=None, as_tuple=False):
    """Where elements are not zero: a row for each, or with as_tuple a vector for each dimension."""
    made = _ops.nonzero(input)
    if not as_tuple:
        return out.copy_(made) if out is not None else made
    return (made[:, 0],) if input.dim() == 0 and made.dim() == 2 and made.shape[1] else tuple(made.unbind(1))


def argwhere(input):
    return _ops.nonzero(input)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The quantile of what is not NaN."""
    if dim is None:
        flat = input.reshape(-1)
        return tenon.quantile(flat[~tenon.isnan(flat)], q, interpolation=interpolation)
    rows = input.movedim(dim, -1)
    picked = [tenon.quantile(row[~tenon.isnan(row)], q, interpolation=interpolation) if bool((~tenon.isnan(row)).any())
              else tenon.quantile(row, q) for row in rows.reshape(-1, rows.shape[-1])]
    many = isinstance(q, tenon.Tensor) and q.dim() == 1
    made = tenon.stack(picked, -1).reshape(((q.shape[0],) if many else ()) + tuple(rows.shape[:-1]))
    return made.unsqueeze(dim if dim < 0 or not many else dim + 1) if keepdim else made


def histogram(input, bins, *, range=None, weight=None, density=False):
    """How many elements lie in each bin, and the edges."""
    if isinstance(bins, tenon.Tensor):
        edges = bins
    else:
        low, high = range if range is not None else (input.min().item(), input.max().item())
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = tenon.linspace(low, high, bins + 1, dtype=input.dtype)
    flat = input.reshape(-1)
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    which = (tenon.searchsorted(edges, flat, right=True) - 1).clamp(max=edges.shape[0] - 2)
    amount = tenon.ones_like(flat) if weight is None else weight.reshape(-1)
    counts = tenon.zeros(edges.shape[0] - 1, dtype=input.dtype).scatter_add(0, which[inside], amount[inside])
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / counts.sum()
    from collections import namedtuple
    return namedtuple("histogram", "hist bin_edges")(counts, edges)


def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """The trapezoid rule, summed from the start to each place."""
    n = y.shape[dim]
    mean = (y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)) / 2
    if x is not None:
        step = tenon.diff(x)
        if x.dim() == 1:
            step = step.reshape([-1 if i == dim % y.dim() else 1 for i in _range(y.dim())])
        return (mean * step).cumsum(dim)
    return (mean * dx).cumsum(dim)


# Complex numbers.


def complex(real, imag, *, out=None):
    """real + i imag."""
    if real.dtype != imag.dtype:
        raise RuntimeError("Expected object of scalar type %s but got scalar type %s for second argument"
                           % (_scalar_type(real), _scalar_type(imag)))
    real, imag = broadcast_tensors(real, imag)
    made = tenon.view_as_complex(tenon.stack((real, imag), -1))
    return out.copy_(made) if out is not None else made


def _scalar_type(tensor):
    return {"float32": "Float", "float64": "Double", "float16": "Half"}.get(str(tensor.dtype).rsplit(".", 1)[-1],
                                                                            str(tensor.dtype))


def polar(abs, angle, *, out=None):
    """abs * exp(i angle)."""
    return complex(abs * angle.cos(), abs * angle.sin(), out=out)


def angle(input):
    """The angle of a complex number; of a real one 0 or pi."""
    if input.is_complex():
        return tenon.atan2(input.imag, input.real)
    zero = tenon.zeros_like(input, dtype=input.dtype if input.is_floating_point() else tenon.get_default_dtype())
    return tenon.where(tenon.isnan(input), zero + math.nan, tenon.where(input < 0, zero + math.pi, zero))


def resolve_conj(input):
    return input.resolve_conj() if hasattr(input, "resolve_conj") else input


def resolve_neg(input):
    return input


def adjoint(input):
    """The transposed conjugate."""
    return input.transpose(-2, -1).conj() if input.is_complex() else input.transpose(-2, -1)


# Elements.


def positive(input):
    if input.dtype == tenon.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def deg2rad(input):
    return input * (math.pi / 180)


def rad2deg(input):
    return input * (180 / math.pi)


def float_power(input, exponent):
    """input ** exponent in float64, or complex128."""
    def wide(value):
        if isinstance(value, tenon.Tensor):
            return value.to(tenon.complex128 if value.is_complex() else tenon.float64)
        return value
    return tenon.pow(wide(input), wide(exponent))


def ldexp(input, other):
    return input * tenon.pow(2.0, other)


def renorm(input, p, dim, maxnorm):
    """Slices along dim whose p-norm is larger than maxnorm are scaled down to it."""
    others = [d for d in _range(input.dim()) if d != dim % input.dim()]
    size = norm(input, p, others, True)
    return tenon.where(size > maxnorm, input * (maxnorm / (size + 1e-7)), input)


def mvlgamma(input, p):
    """The logarithm of the gamma function of p dimensions."""
    offsets = tenon.arange(p, dtype=input.dtype) / 2
    return tenon.lgamma(input.unsqueeze(-1) - offsets).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False):
    """Powers of base whose exponents lie evenly."""
    made = tenon.pow(base, tenon.linspace(start, end, steps, dtype=tenon.float64, device=device))
    return made.to(dtype or tenon.get_default_dtype()).requires_grad_(requires_grad)


def range(start=0, end=None, step=1, **options):  # noqa: A001
    """As arange, with the end."""
    import warnings
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).", UserWarning, stacklevel=2)
    start, end = (0, start) if end is None else (start, end)
    options.setdefault("dtype", tenon.get_default_dtype())
    return tenon.arange(start, start + (math.floor((end - start) / step) + 0.5) * step, step, **options)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, device=None, requires_grad=False):
    """Normal numbers with the given means and deviations."""
    if isinstance(std, tenon.Tensor):
        if std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel() and bool((std < 0).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError("normal expects std >= 0.0, but found std %s" % std)
    if isinstance(mean, tenon.Tensor) or isinstance(std, tenon.Tensor):
        like = mean if isinstance(mean, tenon.Tensor) else std
        shape = broadcast_shapes(*(t.shape for t in (mean, std) if isinstance(t, tenon.Tensor)))
        with tenon.no_grad():
            made = tenon.empty(shape, dtype=like.dtype, device=like.device).normal_(0, 1, generator=generator)
            made = made * std + mean
    else:
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
        made = tenon.empty(size, dtype=dtype, device=device).normal_(mean, std, generator=generator)
    if out is not None:
        return out.copy_(made)
    return made.requires_grad_() if requires_grad else made


# Questions.


def result_type(tensor1, tensor2):
    """The dtype of an operation on both."""
    def thin(value):
        if isinstance(value, tenon.Tensor):
            return tenon.empty(() if value.dim() == 0 else (1,), dtype=value.dtype, device="meta")
        return value
    if not isinstance(tensor1, tenon.Tensor) and not isinstance(tensor2, tenon.Tensor):
        return tenon.tensor(tensor1 + tensor2).dtype
    first, second = thin(tensor1), thin(tensor2)
    return (first + second).dtype


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return input.is_complex()


def is_nonzero(input):
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with %s is ambiguous"
                           % ("no values" if input.numel() == 0 else "more than one value"))
    return bool(input)


def is_same_size(input, other):
    return input.shape == other.shape


def is_conj(input):
    return input.is_conj()


def is_neg(input):
    return False


def is_inference(input):
    return input.is_inference()


def numel(input):
    return input.numel()


# Windows and short-time spectra.


def _window(length, periodic, values, options):
    if length < 0:
        raise RuntimeError("window function requires a non-negative window_length, got window_length=%d" % length)
    dtype = options.pop("dtype", None) or tenon.get_default_dtype()
    requires_grad = options.pop("requires_grad", False)
    options.pop("layout", None)
    options.pop("pin_memory", None)
    if length < 2:
        made = tenon.ones(length, dtype=dtype, **options)
    else:
        n = tenon.arange(length, dtype=tenon.float64, **options) / (length if periodic else length - 1)
        made = values(n).to(dtype)
    return made.requires_grad_(requires_grad)


def hann_window(window_length, periodic=True, **options):
    return _window(window_length, periodic, lambda n: 0.5 - 0.5 * tenon.cos(2 * math.pi * n), options)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, **options):
    return _window(window_length, periodic, lambda n: alpha - beta * tenon.cos(2 * math.pi * n), options)


def blackman_window(window_length, periodic=True, **options):
    return _window(window_length, periodic, lambda n: 0.42 - 0.5 * tenon.cos(2 * math.pi * n)
                   + 0.08 * tenon.cos(4 * math.pi * n), options)


def bartlett_window(window_length, periodic=True, **options):
    return _window(window_length, periodic, lambda n: 1 - (2 * n - 1).abs(), options)


def kaiser_window(window_length, periodic=True, beta=12.0, **options):
    top = tenon.i0(tenon.tensor(beta, dtype=tenon.float64))
    return _window(window_length, periodic,
                   lambda n: tenon.i0(beta * (1 - (2 * n - 1) ** 2).clamp(min=0).sqrt()) / top, options)


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):
    """The spectrum of each frame of a signal, or of a batch of signals."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if return_complex is None and not input.is_complex() and (window is None or not window.is_complex()):
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further "
                           "require that return_complex=True in a future PyTorch release.")
    x = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        x = tenon.nn.functional.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    if n_fft <= 0 or n_fft > x.shape[-1]:
        raise RuntimeError("stft(%s, n_fft=%d): expected 0 < n_fft < %d, but got n_fft=%d"
                           % (tuple(input.shape), n_fft, x.shape[-1], n_fft))
    frames = x.unfold(-1, n_fft, hop)
    if window is None and width < n_fft:
        window = tenon.ones(width, dtype=x.dtype)
    if window is not None:
        left = (n_fft - width) // 2
        frames = frames * tenon.nn.functional.pad(window, (left, n_fft - width - left))
    onesided = not frames.is_complex() if onesided is None else onesided
    scale = "ortho" if normalized else "backward"
    made = (tenon.fft.rfft if onesided else tenon.fft.fft)(frames, norm=scale).transpose(-1, -2)
    made = made.squeeze(0) if input.dim() == 1 else made
    return made if return_complex is not False else tenon.view_as_real(made)


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):
    """The signal of a spectrum that stft gave."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    x = input.unsqueeze(0) if input.dim() == 2 else input
    onesided = x.shape[-2] != n_fft if onesided is None else onesided
    scale = "ortho" if normalized else "backward"
    frames = x.transpose(-1, -2)
    frames = tenon.fft.irfft(frames, n_fft, norm=scale) if onesided else tenon.fft.ifft(frames, norm=scale)
    if not return_complex and frames.is_complex():
        frames = frames.real
    window = tenon.ones(width, dtype=frames.dtype) if window is None else window
    left = (n_fft - width) // 2
    window = tenon.nn.functional.pad(window, (left, n_fft - width - left))
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    place = (tenon.arange(count).unsqueeze(1) * hop + tenon.arange(n_fft)).reshape(-1)
    signal = tenon.zeros(frames.shape[0], total, dtype=frames.dtype).index_add(
        1, place, (frames * window).reshape(frames.shape[0], -1))
    weight = tenon.zeros(total, dtype=window.dtype).index_add(0, place, (window * window).repeat(count))
    begin = n_fft // 2 if center else 0
    end = begin + length if length is not None else total - begin
    signal, weight = signal[:, begin:end], weight[begin:end]
    if bool((weight.abs() < 1e-11).any()):
        raise RuntimeError("istft(%s) window overlap add min: 1" % (tuple(input.shape),))
    signal = signal / weight
    if length is not None and signal.shape[1] < length:
        signal = tenon.nn.functional.pad(signal, (0, length - signal.shape[1]))
    return signal.squeeze(0) if input.dim() == 2 else signal


# Methods.


def where(self, condition, other):
    return tenon.where(condition, self, other)


def type_as(self, other):
    return self.to(dtype=other.dtype, device=other.device)


def get_device(self):
    """The number of the device, or -1 for the CPU."""
    return -1 if self.device.type == "cpu" else self.device.index or 0


def cuda(self, device=None, non_blocking=False, memory_format=None):
    return self.to("cuda" if device is None else "cuda:%d" % device if isinstance(device, int) else device)


def to_dense(self, dtype=None, *, masked_grad=True):
    return self if dtype is None else self.to(dtype)


def resize(self, *sizes):
    import warnings
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    sizes = _list(sizes)
    return self.reshape(sizes)


def resize_as(self, other):
    return resize(self, *other.shape)


def resize_as_(self, other, *, memory_format=None):
    return self.resize_(other.shape)


def _at(self, dim, index):
    return (slice(None),) * (dim % self.dim()) + (index,)


def index_copy_(self, dim, index, source):
    """Rows of `source` into the places that `index` names."""
    self[_at(self, dim, index)] = source
    return self


def index_copy(self, dim, index, source):
    return index_copy_(self.clone(), dim, index, source)


def index_fill_(self, dim, index, value):
    self[_at(self, dim, index)] = value
    return self


def index_fill(self, dim, index, value):
    return index_fill_(self.clone(), dim, index, value)


def put_(self, index, source, accumulate=False):
    """Elements of `source` into places that are counted in memory order."""
    flat = self.reshape(-1)
    flat = flat.index_put_((index.reshape(-1),), source.reshape(-1), accumulate=accumulate)
    if flat.data_ptr() != self.data_ptr():
        self.copy_(flat.reshape(self.shape))
    return self


def put(self, index, source, accumulate=False):
    return put_(self.clone(memory_format=tenon.contiguous_format), index, source, accumulate)


def apply_(self, callable):
    """Every element becomes callable(element). Slow: for tests."""
    self.copy_(tenon.tensor([callable(x) for x in self.reshape(-1).tolist()], dtype=self.dtype).reshape(self.shape))
    return self


def map_(self, tensor, callable):
    other = tensor.expand_as(self).reshape(-1).tolist()
    made = [callable(a, b) for a, b in zip(self.reshape(-1).tolist(), other)]
    self.copy_(tenon.tensor(made, dtype=self.dtype).reshape(self.shape))
    return self


def cauchy_(self, median=0, sigma=1, *, generator=None):
    """Numbers of Cauchy's distribution."""
    return self.uniform_(0, 1, generator=generator).sub_(0.5).mul_(math.pi).tan_().mul_(sigma).add_(median)


def geometric_(self, p, *, generator=None):
    """How many trials until the first success."""
    if not 0 < p < 1:
        raise RuntimeError("geometric_ expects p to be in (0, 1), but got p=%s" % p)
    draw = tenon.empty(self.shape, dtype=tenon.float64).exponential_(1.0, generator=generator)
    return self.copy_((draw / -math.log1p(-p)).ceil())


def log_normal_(self, mean=1, std=2, *, generator=None):
    return self.normal_(mean, std, generator=generator).exp_()


def rename(self, *names, **renames):
    raise RuntimeError("Tenon has no named tensors")
