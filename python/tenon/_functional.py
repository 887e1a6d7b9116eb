# SPDX-License-Identifier: MIT
"""Functions and methods that are made of operators: those that take tensors one by one, that take a list or a number
in one place, or that give more or fewer results by an option. They are loaded when one is first called."""

import functools
import math

import tenon
from tenon._asking import asked_as_given, hand_over, overridable

_ops = tenon._C._VariableFunctions


_overridden = tenon._C._has_torch_function


def _asked(function):
    """The function, after classes and modes that take calls over were asked: they see this call,
    and not the operators that it is made of."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        given = args if not kwargs else args + tuple(kwargs.values())
        for arg in given:
            if type(arg) is list or type(arg) is tuple:
                given = [x for a in given for x in (a if type(a) in (list, tuple) else (a,))]
                break
        if _overridden(given):
            return hand_over(wrapper, function, tuple(given), args, kwargs)
        return function(*args, **kwargs)
    return wrapper


_told = set()


def _once(text, level=4):
    """Warn whoever called what calls this, the first time."""
    import warnings
    if text not in _told:
        _told.add(text)
        warnings.warn(text, stacklevel=level)


def _list(tensors):
    """f(a, b) and f([a, b]) mean the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


# Shapes.


@_asked
def broadcast_tensors(*tensors):
    """The tensors, expanded to one shape."""
    return _ops.broadcast_tensors(_list(tensors))


def broadcast_shapes(*shapes):
    """The shape to which all can be expanded."""
    shapes = [(shape,) if isinstance(shape, int) else shape for shape in shapes]
    for shape in shapes:
        if shape is not None and not hasattr(shape, "__len__"):
            raise RuntimeError("Input shapes should be of type ints, a tuple of ints, or a list of ints, got ", shape)
    made = [1] * max((len(shape) for shape in shapes if shape is not None), default=0)
    for at, shape in enumerate(shapes):
        for i in range(-1, -len(shape or ()) - 1, -1):
            if shape[i] == 1 or made[i] == shape[i]:
                continue
            if made[i] != 1:
                raise RuntimeError(
                    "Attempting to broadcast a dimension of length %s at %d! Mismatching argument at index %d had %s; but "
                    "expected shape should be broadcastable to %s" % (shape[i], i, at, shape, made))
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            made[i] = shape[i]
    return tenon.Size(made)


@_asked
def meshgrid(*tensors, indexing=None):
    """Coordinates of a grid, one tensor for each dimension."""
    if indexing is None:
        _once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    return _ops.meshgrid(_list(tensors), indexing="ij" if indexing is None else indexing)


@_asked
def cartesian_prod(*tensors):
    """All combinations of one element of each."""
    return _ops.cartesian_prod(_list(tensors))


@_asked
def block_diag(*tensors):
    """Matrices along the diagonal of one."""
    return tenon._C._VariableFunctions.block_diag(tensors) if tensors else tenon.empty(1, 0)


def _each(name, tensors, function):
    parts = _list(tensors)
    for at, part in enumerate(parts):
        if isinstance(part, tenon.Tensor):
            continue
        kind = type(part).__name__
        if tensors[0] is part and len(tensors) == 1:
            wrong = "      didn't match because some of the arguments have invalid types: (!%s!)\n" % kind
            raise TypeError("%s() received an invalid combination of arguments - got (%s), but expected one of:\n"
                            " * (Tensor input)\n%s * (tuple of Tensors tensors)\n%s" % (name, kind, wrong, wrong))
        raise TypeError("expected Tensor as element %d in argument 0, but got %s" % (at, kind))
    made = tuple(function(t) for t in parts)
    return made if len(tensors) != 1 or isinstance(tensors[0], (list, tuple)) else made[0]


@_asked
def atleast_1d(*tensors):
    return _each("atleast_1d", tensors, lambda t: t.reshape(1) if t.dim() == 0 else t)


@_asked
def atleast_2d(*tensors):
    return _each("atleast_2d", tensors, lambda t: t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t)


@_asked
def atleast_3d(*tensors):
    def three(t):
        if t.dim() == 0:
            return t.reshape(1, 1, 1)
        if t.dim() == 1:
            return t.unsqueeze(0).unsqueeze(-1)
        return t.unsqueeze(-1) if t.dim() == 2 else t
    return _each("atleast_3d", tensors, three)


@overridable
def unravel_index(indices, shape):
    """The index in each dimension of elements that are counted in memory order."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is tenon.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    options = {"dtype": tenon.int64, "device": indices.device}
    made = tenon.div(indices.unsqueeze(-1), tenon.tensor(steps, **options), rounding_mode="floor") % tenon.tensor(shape, **options)
    return made.unbind(-1)


# Products.


def einsum(*args):
    """einsum("ij,jk->ik", a, b), einsum("…", [a, b]), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
        args = (args[0],) + tuple(args[1])
    if _overridden(args):
        return tenon.overrides.handle_torch_function(einsum, args, *args)
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    if isinstance(args[0], tenon.Tensor):
        pairs = list(zip(args[0::2], args[1::2]))
        equation = ",".join(_letters(subscripts) for _, subscripts in pairs)
        if len(args) % 2 == 1:
            equation += "->" + _letters(args[-1])
        operands = [operand for operand, _ in pairs]
    else:
        equation, operands = args[0], _list(args[1:])
        if not operands:
            return einsum(equation)
    path = tenon.backends.opt_einsum.contraction_path(equation, operands) if len(operands) > 2 else None
    return _ops.einsum(equation, operands, path=path)


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


@_asked
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
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims=%d" % dims)
        dims = [list(range(-dims, 0)), list(range(dims))]
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    if out is None:
        return _ops.tensordot(a, b, first, second)
    return _ops.tensordot(a, b, first, second, out=out)


@_asked
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norms of the differences of each row of one and each row of another."""
    modes = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
    if compute_mode not in modes:
        raise ValueError("%s is not a valid value for compute_mode" % (compute_mode,))
    return tenon._C._VariableFunctions.cdist(x1, x2, p, modes[compute_mode])


@_asked
def chain_matmul(*matrices, out=None):
    """The product of all."""
    _once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, "
          "which accepts a list of two or more tensors rather than multiple parameters.")
    made = _list(matrices)
    if not made:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    functions = tenon._C._VariableFunctions
    while len(made) > 64:  # as many as one plan has room for
        made = [functions.chain_matmul(made[i:i + 64]) for i in range(0, len(made), 64)]
    return functions.chain_matmul(made) if out is None else functions.chain_matmul(made, out=out)


# Norms and statistics.


@_asked
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements, or over dimensions; "fro" is the 2-norm."""
    if p is None:
        p = 2.0
    elif p == "fro":
        p = 2
        if isinstance(dim, (tuple, list)) and len(dim) > 2:
            raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got %s" % " ".join(map(str, dim)))
    elif p == "nuc":
        dim = (-2, -1) if dim is None else (dim,) if isinstance(dim, int) else dim
        return tenon.linalg.matrix_norm(input, "nuc", dim, keepdim, dtype=dtype, out=out)
    elif isinstance(p, str):
        raise RuntimeError("linalg.matrix_norm: Order %s not supported." % p)
    if isinstance(dim, int):
        dim = (dim,)
    return tenon.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


def _without_derivative(name, input, *args):
    """The results of an operator that has no derivative: asking for the first one's gradient is what fails."""
    function = getattr(_ops, name)
    if not (isinstance(input, tenon.Tensor) and tenon.is_grad_enabled() and input.requires_grad):
        return function(input, *args)

    def forward(ctx, x):
        made = function(x.detach(), *args)
        ctx.mark_non_differentiable(*made[1:])
        return tuple(made)

    def backward(ctx, *gradients):
        raise NotImplementedError("the derivative for '%s' is not implemented." % name)

    title = "".join(part.capitalize() for part in name.split("_"))
    kind = type(title, (tenon.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return kind.apply(input)


@_asked
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along dim; also where each came from, and how many there are."""
    if dim is not None:
        values, inverse, counts = _without_derivative("unique_dim", input, dim, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _without_derivative("_unique2", input, sorted, return_inverse, return_counts)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


@_asked
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The same with only neighbours compared."""
    made = _without_derivative("unique_consecutive", input, return_inverse, return_counts, dim)
    return _chosen(*made, return_inverse, return_counts)


def _chosen(values, inverse, counts, return_inverse, return_counts):
    made = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return made if len(made) > 1 else values


@asked_as_given
def nonzero(input, *, out=None, as_tuple=False):
    """Where elements are not zero: a row for each, or with as_tuple a vector for each dimension."""
    if not isinstance(as_tuple, bool):
        raise TypeError("nonzero(): argument 'as_tuple' must be bool, not %s" % type(as_tuple).__name__)
    if isinstance(out, tenon.Tensor) and as_tuple:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    if isinstance(out, tenon.Tensor) and out.dtype != tenon.int64:
        raise RuntimeError("nonzero: Expected out tensor to have scalar type Long but got scalar type%s"
                           % out.type().rpartition(".")[2][:-len("Tensor")])
    if out is not None:
        return _ops.nonzero(input, out=out)
    if as_tuple:
        return tuple(_ops.nonzero(input if input.dim() else input.unsqueeze(0)).unbind(1))
    return _ops.nonzero(input)


# Random numbers.


def poisson(input, generator=None):
    """Counts of arrivals at the given rates."""
    return tenon._C._VariableFunctions.poisson(input, generator)


# Questions and methods.


@asked_as_given
def numel(input):
    if not isinstance(input, tenon.Tensor):
        raise TypeError("numel(): argument 'input' (position 1) must be Tensor, not %s" % type(input).__name__)
    return input.numel()


def where(self, condition, other):
    return tenon.where(condition, self, other)


def get_device(self):
    """The number of the device, or -1 where there is one alone: of the CPU, and of meta."""
    return -1 if self.device.type in ("cpu", "meta") else self.device.index or 0


def cuda(self, device=None, non_blocking=False, memory_format=None):
    at = tenon.device("cuda") if device is None else tenon.device("cuda", device) if isinstance(device, int) else tenon.device(device)
    if at.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return self.to(at)


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
    """The size of another tensor; with preserve_format its order of dimensions, too, where it is one of the formats."""
    if not isinstance(other, tenon.Tensor):
        raise TypeError("resize_as_(): argument 'the_template' (position 1) must be Tensor, not %s" % type(other).__name__)
    if self.has_names() or other.has_names():
        from tenon import _dimension_names
        return _dimension_names.resize_as_(self, other)
    if memory_format is None:
        if self.layout is tenon.sparse_coo and other.layout is tenon.sparse_coo:
            return self.sparse_resize_(other.shape, other.sparse_dim(), other.dense_dim())
        return self.resize_(other.shape)
    if memory_format == tenon.preserve_format:
        memory_format = next((f for f in (tenon.channels_last, tenon.channels_last_3d)
                              if other.dim() == (4 if f == tenon.channels_last else 5) and other.is_contiguous(memory_format=f)
                              and not other.is_contiguous()), tenon.contiguous_format)
    return self.resize_(other.shape, memory_format=memory_format)


# What `/` was called once: programs that name operators' methods still look for them.

def div(self, other):
    return self / other


def idiv(self, other):
    self /= other
    return self


def rdiv(self, other):
    return other / self if isinstance(other, (tenon.Tensor, bool, int, float, complex)) else NotImplemented


def _of_elements(name, self, callable, *others):
    """What callable makes of each element of self, and of those beside it, into self: nothing of it is recorded."""
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError("Can't call %s() on Variable that requires grad. Use var.detach().%s() instead." % (name, name))
    rows = [t.detach().rename_(None).expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    made = [callable(*row) for row in zip(*rows)]
    return self.copy_(tenon.tensor(made, dtype=self.dtype).reshape(self.shape))


def apply_(self, callable):
    """Every element becomes callable(element). Slow: for tests."""
    return _of_elements("apply_", self, callable)


def map_(self, tensor, callable):
    """Every element becomes callable(element, that of tensor)."""
    return _of_elements("map_", self, callable, tensor)


def map2_(self, x, y, callable):
    """Every element becomes callable(element, that of x, that of y)."""
    return _of_elements("map2_", self, callable, x, y)
