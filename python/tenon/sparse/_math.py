# SPDX-License-Identifier: MIT
"""Operators of sparse tensors that compute: products, sums, reductions, and writes."""
import tenon

from ._places import (FUNCTIONS, _dim, _flat_places, _function, _is_sparse, _like, _sparse,
                      _sum_rows, as_coo, coalesce, to_dense)
from ._shapes import transpose, select, clone, to, zeros_like


# ---- products ----

def _matrix(s, what):
    if s.sparse_dim() != 2 or s.dense_dim() != 0:
        raise RuntimeError("%s: expected a sparse matrix, but got sparse_dim %d and dense_dim %d"
                           % (what, s.sparse_dim(), s.dense_dim()))


def _sparse_dense(s, d):
    """(n, m) sparse times (m, k) or (m,)."""
    _matrix(s, "addmm")
    if s.dtype != d.dtype:
        names = [x.type().rpartition(".")[2][:-len("Tensor")] for x in (s._v, d)]
        raise RuntimeError("expected scalar type %s but found %s" % tuple(names))
    if d.shape[0] != s.shape[1]:
        raise RuntimeError("addmm: Argument #3 (dense): Expected dim 0 size %d, got %d" % (s.shape[1], d.shape[0]))
    v = s._v if d.dim() == 1 else s._v.unsqueeze(1)
    return _sum_rows(v * d[s._i[1]], s._i[0], s.shape[0])


def _sparse_sparse(a, b):
    """Rows of the right matrix, as often as the left one names them; then places that meet are added up."""
    _matrix(a, "sparse.mm")
    _matrix(b, "sparse.mm")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (%dx%d and %dx%d)" % (*a.shape, *b.shape))
    a, b = coalesce(a), coalesce(b)
    counts = tenon.bincount(b._i[0], minlength=b.shape[0])
    starts = counts.cumsum(0) - counts
    times = counts[a._i[1]]
    left = tenon.repeat_interleave(tenon.arange(a._nnz()), times)
    within = tenon.arange(left.shape[0]) - (times.cumsum(0) - times)[left]
    right = starts[a._i[1][left]] + within
    made = _sparse()._of(tenon.stack([a._i[0][left], b._i[1][right]]), a._v[left] * b._v[right],
                         (a.shape[0], b.shape[1]), False)
    return coalesce(made)


@_function("mm", "matmul", "__matmul__", "spmm", "mv", "dsmm")
def matmul(a, b):
    a, b = as_coo(a), as_coo(b)
    if _is_sparse(a) and _is_sparse(b):
        return _sparse_sparse(a, b)
    if _is_sparse(a):
        return _sparse_dense(a, b)
    made = _sparse_dense(transpose(b, 0, 1), a if a.dim() == 1 else a.t())
    return made if a.dim() == 1 else made.t()


@_function("__rmatmul__")
def rmatmul(a, b):
    return matmul(b, a)


@_function("bmm")
def bmm(a, b):
    if _is_sparse(b):
        raise NotImplementedError("bmm: a dense batch times a sparse one is not supported")
    return tenon.stack([matmul(select(a, 0, i), b[i]) for i in range(a.shape[0])])


@_function("__setitem__")
def setitem(s, index, value):
    if _is_sparse(s):
        raise TypeError("Cannot assign to a sparse tensor")
    s[index] = to_dense(value)


@_function("is_contiguous")
def is_contiguous(s, **_):
    return False


@_function("smm")
def smm(a, b):
    """A product that is sparse: with a place for each element of the rows that are not empty."""
    return sspaddmm(None, a, b, beta=0)


@_function("sspaddmm")
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    mat1 = as_coo(mat1)
    if not _is_sparse(mat1) or _is_sparse(mat2):
        raise RuntimeError("sspaddmm: expected a sparse matrix and a dense one")
    rows = hspmm(mat1, mat2)
    n, width = rows._nnz(), mat2.shape[1]
    places = tenon.stack([rows._i[0].repeat_interleave(width), tenon.arange(width).repeat(n)])
    values = rows._v.reshape(-1)
    if input is None:
        return _sparse()._of(places, values, rows.shape, False)
    if tuple(input.shape) != tuple(rows.shape):
        raise RuntimeError("sspaddmm: Argument #1: Expected dim 0 size %d, got %d" % (rows.shape[0], input.shape[0])
                           if input.shape[0] != rows.shape[0] else
                           "sspaddmm: Argument #1: Expected dim 1 size %d, got %d" % (rows.shape[1], input.shape[1]))
    input = as_coo(input)
    return _sparse()._of(tenon.cat([input._i, places], 1), tenon.cat([input._v * beta, values * alpha]), rows.shape, False)


@_function("hspmm", "hsmm")
def hspmm(mat1, mat2):
    """A product of which the rows that are not empty are kept: one sparse dimension, one dense."""
    mat1 = as_coo(mat1)
    if not _is_sparse(mat1) or mat1.sparse_dim() != 2 or mat1.dense_dim() or mat2.dim() != 2:
        raise RuntimeError("hspmm: expected a sparse matrix and a dense one")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError("hspmm: Argument #3 (dense): Expected dim 0 size %d, got %d" % (mat1.shape[1], mat2.shape[0]))
    rows, to = tenon.unique(mat1._i[0], return_inverse=True)
    products = mat1._v.unsqueeze(1) * mat2[mat1._i[1]]
    return _sparse()._of(rows.unsqueeze(0), _sum_rows(products, to, rows.shape[0]), (mat1.shape[0], mat2.shape[1]), True)


@_function("addmm")
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    made = matmul(mat1, mat2)
    if _is_sparse(made):
        return add(mul(input, beta), made, alpha=alpha)
    input = to_dense(input) if _is_sparse(input) else input
    return input * beta + made * alpha


@_function("linear")
def linear(input, weight, bias=None):
    made = matmul(input, transpose(weight, 0, 1) if _is_sparse(weight) else weight.t())
    return made if bias is None else made + bias


# ---- sums and products by elements ----

@_function("add", "__add__")
def add(a, b, *, alpha=1, out=None):
    a, b = as_coo(a), as_coo(b)
    if not _is_sparse(a):
        if not isinstance(a, tenon.Tensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return a + to_dense(b) * alpha if alpha != 1 else a + to_dense(b)
    if not _is_sparse(b):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if a.shape != b.shape:
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but %s != %s"
                           % (list(a.shape), list(b.shape)))
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError("add: expected 'self' and 'other' to have same number of sparse dimensions")
    dtype = tenon.result_type(a._v, b._v)
    values = tenon.cat([a._v.to(dtype), (b._v * alpha if alpha != 1 else b._v).to(dtype)])
    made = _sparse()._of(tenon.cat([a._i, b._i], 1), values, a.shape, False)
    if a._is_coalesced and b._is_coalesced or a._i is b._i:
        return coalesce(made)
    if made._v.shape[0] > made.numel():  # a gradient that is summed for ever does not grow for ever
        made = coalesce(made)
        made._is_coalesced = False
    return made


@_function("__radd__")
def radd(a, b):
    return add(b, a)


@_function("sub", "__sub__")
def sub(a, b, *, alpha=1):
    return add(a, neg(b) if _is_sparse(b) else -b, alpha=alpha)


@_function("__rsub__", "rsub")
def rsub(a, b):
    return sub(b, a)


@_function("mul", "__mul__", "__rmul__", "multiply")
def mul(a, b):
    a, b = as_coo(a), as_coo(b)
    if not _is_sparse(a):
        a, b = b, a
    if not isinstance(b, tenon.Tensor) or (not _is_sparse(b) and b.dim() == 0):
        return _like(a, a._v * b)
    if not _is_sparse(b):
        if tuple(b.shape) != tuple(a.shape):
            b = b.expand(a.shape)
        a = coalesce(a)
        return _like(a, a._v * b[tuple(a._i)])
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError("mul: expected 'self' and 'other' to have same sizes, but got %s and %s"
                           % (list(a.shape), list(b.shape)))
    a, b = coalesce(a), coalesce(b)
    size = a.shape[:a.sparse_dim()]
    in_a, in_b = _flat_places(a._i, size), _flat_places(b._i, size)
    if in_b.numel() == 0:
        return _like(a, a._v[:0], a._i[:, :0])
    at = tenon.searchsorted(in_b, in_a).clamp(max=in_b.shape[0] - 1)
    both = in_b[at] == in_a
    return _like(a, a._v[both] * b._v[at[both]], a._i[:, both])


@_function("div", "__truediv__", "true_divide", "divide")
def div(a, b, *, rounding_mode=None):
    if isinstance(b, tenon.Tensor) and (_is_sparse(b) or b.dim() != 0):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor (got shape %s for divisor)"
                           % list(b.shape))
    a = coalesce(a) if rounding_mode else a
    return _like(a, tenon.div(a._v, b, rounding_mode=rounding_mode))


@_function("floor_divide", "__floordiv__")
def floor_divide(a, b):
    return div(a, b, rounding_mode="floor")


@_function("pow", "__pow__")
def pow(s, exponent):
    if isinstance(exponent, tenon.Tensor) or exponent == 0:
        raise RuntimeError("pow of a sparse tensor: expected an exponent that is a number and not 0")
    s = coalesce(s)
    return _like(s, s._v ** exponent)


def _zero_stays_zero(name):
    def function(s, *args, **kwargs):
        s = coalesce(s)
        return _like(s, getattr(tenon, name)(s._v, *args, **kwargs))
    FUNCTIONS[name] = function


KEEP_ZERO = ("abs", "absolute", "asin", "asinh", "atan", "atanh", "ceil", "erf", "erfinv", "expm1", "floor", "frac",
             "log1p", "nan_to_num", "positive", "rad2deg", "deg2rad", "relu", "round", "sgn", "sign", "sin", "sinh",
             "sqrt", "square", "tan", "tanh", "trunc", "isnan", "isinf", "signbit")
for _name in KEEP_ZERO:
    _zero_stays_zero(_name)


@_function("neg", "__neg__", "negative")
def neg(s):
    return _like(s, -s._v)


@_function("view_as_real")
def view_as_real(s):
    values = tenon.view_as_real(s._v)
    return tenon.sparse_coo_tensor(s._i, values, (*s.shape, 2), is_coalesced=s._is_coalesced)


@_function("view_as_complex")
def view_as_complex(s):
    values = tenon.view_as_complex(s._v)
    return tenon.sparse_coo_tensor(s._i, values, s.shape[:-1], is_coalesced=s._is_coalesced)


@_function("__abs__")
def absolute(s):
    return FUNCTIONS["abs"](s)


# ---- reductions ----

@_function("sum", "_sparse_sum")
def sum(s, dim=None, keepdim=False, *, dtype=None):
    s = as_coo(s)
    values = s._v if dtype is None else s._v.to(dtype)
    dims = range(s.dim()) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = sorted({_dim(s, d) for d in dims})
    if len(dims) in (0, s.dim()):
        return values.sum()
    n = s.sparse_dim()
    inner = [d - n + 1 for d in dims if d >= n]
    if inner:
        values = values.sum(inner)
    kept = [d for d in range(n) if d not in dims]
    size = [s.shape[d] for d in range(s.dim()) if d not in dims]
    if not kept:
        return values.sum(0)
    return coalesce(_like(s, values, s._i[tenon.tensor(kept)], size, False if len(kept) < n else None))


@_function("linalg_vector_norm", "linalg_norm")
def vector_norm(s, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    return norm(s, ord if ord is not None else 2, dim)


@_function("norm")
def norm(s, p="fro", dim=None, keepdim=False, dtype=None):
    if dim is not None or p not in ("fro", 2, 2.0):
        raise RuntimeError("norm_sparse currently only supports the 2-norm of all elements")
    return coalesce(s)._v.norm()


# ---- writes ----

def written_parts(s, other, name):
    """The parts of other, as a write by the operator of this name puts them in the place of those of s."""
    if other.dtype != s.dtype:
        if not tenon.can_cast(other.dtype, s.dtype):
            kinds = tuple(tenon.empty(0, dtype=d).type().rpartition(".")[2][:-len("Tensor")] for d in (other.dtype, s.dtype))
            raise RuntimeError("Can't convert result type %s to output %s in %s operation" % (kinds + (name,)))
        other = other.to(s.dtype)
    parts = other._parts
    if s.requires_grad and s.is_leaf:
        if tenon.is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        values = parts[-1].detach().requires_grad_()  # a write that is not recorded leaves it a leaf
        if s._v.grad is not None and s._v.shape == values.shape:
            values.grad = s._v.grad
        parts = parts[:-1] + (values,)
    return parts


def _become(s, other, name="add"):
    """s is now what other is; its indices may be others'. Whoever kept the values has them as they were."""
    parts = written_parts(s, other, name)
    s._is_coalesced = False  # another thread that looks meanwhile sorts once more, rather than not at all
    s._parts = parts
    s._is_coalesced = other._is_coalesced
    tenon._C._increment_version(s)
    s._wrote()
    return s


@_function("add_", "__iadd__")
def add_(a, b, *, alpha=1):
    if _is_sparse(a):
        return _become(a, add(a, b, alpha=alpha))
    b = coalesce(as_coo(b))
    if a.shape != b.shape:
        return a.add_(to_dense(b), alpha=alpha)
    return a.index_put_(tuple(b._i), (b._v * alpha).to(a.dtype), accumulate=True)


@_function("sub_", "__isub__")
def sub_(a, b, *, alpha=1):
    return add_(a, b, alpha=-alpha)


@_function("mul_", "__imul__")
def mul_(a, b):
    if _is_sparse(a):
        return _become(a, mul(a, b), "mul")
    return a.mul_(to_dense(b))


@_function("div_", "__itruediv__")
def div_(a, b, *, rounding_mode=None):
    return _become(a, div(a, b, rounding_mode=rounding_mode), "div")


@_function("floor_divide_")
def floor_divide_(a, b):
    return div_(a, b, rounding_mode="floor")


@_function("neg_")
def neg_(a):
    return _become(a, neg(a))


@_function("zero_")
def zero_(s):
    nothing = zeros_like(s)
    if s.requires_grad and tenon.is_grad_enabled():  # the gradient of what was there is zero, not unknown
        nothing = _like(s, s._v[:0], s._i[:, :0])
    return _become(s, nothing)


@_function("copy_")
def copy_(s, other, non_blocking=False):
    if not _is_sparse(s):
        return s.copy_(to_dense(other))
    if not _is_sparse(other):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           "torch.sparse.%s and src type = %s" % (s._v.type().split(".")[-1], other.type()))
    return _become(s, to(clone(other), s.dtype))


def reduced_matmul(mat, dense, reduce):
    """What `mat @ dense` sums, reduced otherwise; rows that are empty are zero."""
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if reduce not in ("mean", "amax", "amin", "max", "min"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got %s" % reduce)
    if getattr(mat, "layout", None) is not tenon.sparse_csr:
        raise NotImplementedError("sparse.mm with reduce=%r takes a CSR matrix, but got %s" % (reduce, mat.layout))
    if dense.layout is not tenon.strided:
        raise RuntimeError("Expected tensor to have Strided Layout, but got tensor with SparseCsr Layout (while checking "
                           "arguments for sparse_mm_reduce)")
    ends = mat.crow_indices()
    products = dense[mat.col_indices()] * mat.values().unsqueeze(-1)
    made = tenon.segment_reduce(products, reduce, offsets=ends, initial=0 if reduce == "mean" else None)
    return tenon.where(ends.diff().unsqueeze(-1) > 0, made, tenon.zeros_like(made))


def sampled_addmm(input, mat1, mat2, beta, alpha):
    """beta * input + alpha * mat1 @ mat2, at the places that a CSR matrix has."""
    if getattr(input, "layout", None) is not tenon.sparse_csr:
        raise NotImplementedError("sampled_addmm: Expected input to be a CSR matrix, but got %s" % input.layout)
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.layout is not tenon.strided:
            raise RuntimeError("sampled_addmm: Expected %s to have strided layout, but got %s" % (name, mat.layout))
        if mat.dim() < 2:
            raise RuntimeError("sampled_addmm: Expected %s to be a matrix, got %d-D tensor" % (name, mat.dim()))
    if mat1.dtype is not mat2.dtype or mat1.dtype is not input.dtype:
        first, other = (mat1, mat2) if mat1.dtype is not mat2.dtype else (mat1, input)
        raise RuntimeError("sampled_addmm: Expected mat1 and %s to have the same dtype, but got %s and %s" % (
            "mat2" if other is mat2 else "input", *(t.type().rsplit(".", 1)[-1][:-6] for t in (first, other))))
    if mat1.dim() > 2 or input.dim() > 2:
        raise NotImplementedError("sampled_addmm: batches of matrices are not supported")
    (m, inner), (rows, n) = mat1.shape, mat2.shape
    if inner != rows:
        raise RuntimeError("sampled_addmm: mat1 and mat2 shapes cannot be multiplied (%dx%d and %dx%d)" % (m, inner, rows, n))
    if tuple(input.shape) != (m, n):
        at = 0 if input.shape[0] != m else 1
        raise RuntimeError("sampled_addmm: self.shape[%d] must match mat%d.shape[%d]" % (at - 2, at + 1, at - 2))
    starts, at = input.crow_indices(), input.col_indices()
    row = tenon.repeat_interleave(tenon.arange(m, device=starts.device), starts.diff())
    values = alpha * (mat1[row] * mat2.mT[at]).sum(-1)
    return tenon.sparse_csr_tensor(starts, at, values if beta == 0 else values + beta * input.values(), (m, n))
