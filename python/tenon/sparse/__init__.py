# SPDX-License-Identifier: MIT
"""Sparse tensors: how they are made, and functions of them. Loaded when the first is made."""
import functools
import warnings

import tenon

from . import _compressed, _math, _places, _shapes
from ._coo import SparseTensor

__all__ = ["addmm", "mm", "sampled_addmm", "sum", "softmax", "log_softmax", "spdiags", "check_sparse_tensor_invariants"]


def _values_of(values, dtype, device):
    if not isinstance(values, tenon.Tensor):
        return tenon.tensor(values, dtype=dtype, device=device)
    return values.to(device=device or values.device, dtype=dtype or values.dtype)


def _indices_of(indices, device):
    if not isinstance(indices, tenon.Tensor):
        indices = tenon.as_tensor(indices, device=device)
        if indices.numel() == 0:
            indices = indices.to(tenon.int64)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == tenon.bool:
        raise RuntimeError("indices must be an int64 tensor, but got %s" % indices.type())
    return indices.to(device=device or indices.device, dtype=tenon.int64)


def _check_places(indices, size):
    if indices.is_meta:  # there are none to look at
        return
    for d, n in enumerate(size[:indices.shape[0]]):
        row = indices[d]
        if row.numel() == 0:
            continue
        low, high = row.min().item(), row.max().item()
        if low < 0:
            raise RuntimeError("found negative index %d for dim %d" % (low, d))
        if high >= n:
            raise RuntimeError("size is inconsistent with indices: for dim %d, size is %d but found index %d"
                               % (d, n, high))


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, is_coalesced=None):
    """A sparse tensor of values (nnz, …) at places given by the columns of ``indices`` (sparse dimensions, nnz)."""
    if values is None:
        size = tuple(indices if size is None else size)
        indices = tenon.zeros((len(size), 0), dtype=tenon.int64, device=device)
        values = tenon.zeros(0, dtype=dtype, device=device)
    indices, values = _indices_of(indices, device), _values_of(values, dtype, device)
    if values.dim() == 0:  # the value of the one element
        values = values.unsqueeze(0)
    if indices.dim() != 2:
        raise RuntimeError("indices must be sparse_dim x nnz, but got: %s" % list(indices.shape))
    if values.dim() < 1 or indices.shape[1] != values.shape[0]:
        raise RuntimeError("indices and values must have same nnz, but got nnz from indices: %d, nnz from values: %d"
                           % (indices.shape[1], values.shape[0] if values.dim() else 1))
    if size is None:
        if indices.shape[1] == 0 and indices.shape[0]:
            size = (0,) * indices.shape[0] + tuple(values.shape[1:])
        else:
            size = tuple(row.max().item() + 1 for row in indices) + tuple(values.shape[1:])
    size = tuple(size)
    if len(size) != indices.shape[0] + values.dim() - 1:
        raise RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = %d, sparse_dim = %d, "
                           "dense_dim = %d" % (len(size), indices.shape[0], values.dim() - 1))
    if tuple(values.shape[1:]) != size[indices.shape[0]:]:
        raise RuntimeError("values has incorrect size, expected %s, got %s" % (
            [indices.shape[1]] + list(size[indices.shape[0]:]), list(values.shape)))
    _check_places(indices, size)
    if requires_grad:
        values = values.detach().requires_grad_()
    return SparseTensor._of(indices, values, size, is_coalesced)


def _compressed_indices(given, device):
    """As they are given: int32 stays int32."""
    if not isinstance(given, tenon.Tensor):
        given = tenon.as_tensor(given, device=device)
        if given.numel() == 0:
            given = given.to(tenon.int64)
    return given.to(device=device or given.device)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):
    """A sparse matrix by rows or columns, after `layout`: line i has the values ``compressed_indices[i]`` to
    ``compressed_indices[i + 1]``, at ``plain_indices``."""
    if layout not in _compressed.LAYOUTS:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got %s"
                           % ("none" if layout is None else _compressed.NAMES[layout]))
    compressed, plain = _compressed_indices(compressed_indices, device), _compressed_indices(plain_indices, device)
    values = _values_of(values, dtype, device)
    if size is None:
        size = _compressed.size_of(layout, compressed, plain, values)
    size = tuple(size)
    order = check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants
    _compressed.check_parts(layout, compressed, plain, values, size, order)
    if requires_grad:
        values = values.detach().requires_grad_()
    return _compressed.LAYOUTS[layout]._of(compressed, plain, values, size)


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options):
    """A sparse matrix: row i has the values ``crow_indices[i]`` to ``crow_indices[i + 1]``, at ``col_indices``."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=tenon.sparse_csr, **options)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """A sparse matrix: column i has the values ``ccol_indices[i]`` to ``ccol_indices[i + 1]``, at ``row_indices``."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=tenon.sparse_csc, **options)


def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options):
    """A sparse matrix of blocks, by rows of them: as sparse_csr_tensor, with a matrix for each value."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=tenon.sparse_bsr, **options)


def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """A sparse matrix of blocks, by columns of them: as sparse_csc_tensor, with a matrix for each value."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=tenon.sparse_bsc, **options)


def to_sparse(x, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """Tensor.to_sparse: the elements that are not 0."""
    if layout in _compressed.LAYOUTS:
        return _compressed.from_any(x, layout, blocksize, dense_dim)
    return x if layout is tenon.strided else _places.from_dense(x, sparse_dim)


def to_sparse_csr(x, dense_dim=None):
    return _compressed.from_any(x, tenon.sparse_csr, None, dense_dim)


def to_sparse_csc(x, dense_dim=None):
    return _compressed.from_any(x, tenon.sparse_csc, None, dense_dim)


def to_sparse_bsr(x, blocksize, dense_dim=None):
    return _compressed.from_any(x, tenon.sparse_bsr, blocksize, dense_dim)


def to_sparse_bsc(x, blocksize, dense_dim=None):
    return _compressed.from_any(x, tenon.sparse_bsc, blocksize, dense_dim)


def sparse_mask(x, mask):
    """Tensor.sparse_mask: the elements at the places of a sparse tensor."""
    return _shapes.sparse_mask(x, mask)


def _no_sparse(name, text):
    def method(x, *args, **kwargs):
        raise RuntimeError(text)
    method.__name__ = name
    return method


_EXPECTED = "%s expected sparse coordinate tensor layout but got Strided"
coalesce = _no_sparse("coalesce", _EXPECTED % "coalesce")
is_coalesced = _no_sparse("is_coalesced", _EXPECTED % "is_coalesced")
indices = _no_sparse("indices", _EXPECTED % "indices")
values = _no_sparse("values", "values expected sparse tensor layout but got Strided")
_nnz = _no_sparse("_nnz", _EXPECTED % "_nnz")
_indices = _no_sparse("_indices", _EXPECTED % "_indices")
_values = _no_sparse("_values", _EXPECTED % "_values")
crow_indices = _no_sparse("crow_indices", "crow_indices expected sparse row compressed tensor layout but got Strided")
ccol_indices = _no_sparse("ccol_indices", "ccol_indices expected sparse column compressed tensor layout but got Strided")
row_indices = _no_sparse("row_indices", "row_indices expected sparse column compressed tensor layout but got Strided")
col_indices = _no_sparse("col_indices", "col_indices expected sparse row compressed tensor layout but got Strided")


def sparse_dim(x):
    return 0


def dense_dim(x):
    return x.dim()


def spmm(input, mat2):
    """tenon.spmm"""
    return tenon.mm(input, mat2)


def smm(input, mat2):
    """tenon.smm: a sparse matrix times a dense one, as a sparse one."""
    return _math.smm(input, mat2)


def hspmm(mat1, mat2):
    """tenon.hspmm: a sparse matrix times a dense one, as rows."""
    return _math.hspmm(mat1, mat2)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """tenon.sspaddmm: a sparse matrix, and a sparse one times a dense one, as a sparse one."""
    return _math.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


hsmm = hspmm
dsmm = spmm  # its name before PyTorch 1.0, which libraries still call


def mm(mat1, mat2, reduce=None):
    """The product of a sparse matrix and a dense or sparse one; sparse when both are. With `reduce`, the mean or the
    largest or smallest of the products that it sums; of a CSR matrix."""
    if reduce not in (None, "sum"):
        return _math.reduced_matmul(mat1, mat2, reduce)
    return tenon.mm(mat1, mat2)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    return _math.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """tenon.sparse.sampled_addmm: beta * input + alpha * mat1 @ mat2 where a CSR matrix has elements, and only there."""
    return _math.sampled_addmm(input, mat1, mat2, beta, alpha)


def sum(input, dim=None, dtype=None):
    """The sum over some dimensions; sparse unless no sparse dimension is left."""
    return _math.sum(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """Of each row of places along ``dim``: what is not there counts as minus infinity."""
    return log_softmax(input, dim, dtype=dtype, _exp=True)


def log_softmax(input, dim, *, dtype=None, _exp=False):
    input = _places.as_coo(input)
    s = _places.coalesce(input if dtype is None else input.to(dtype))
    at, n = _places._dim(s, dim), s.sparse_dim()
    if at >= n:
        made = s._v.softmax(at - n + 1) if _exp else s._v.log_softmax(at - n + 1)
        return _places._like(s, made)
    rest = [d for d in range(n) if d != at]
    flat = _places._flat_places(s._i[tenon.tensor(rest)], [s.shape[d] for d in rest]) if rest else s._i[0] * 0
    rows, to = tenon.unique(flat, return_inverse=True)
    inner = tuple(s._v.shape[1:])
    index = to.reshape((-1,) + (1,) * len(inner)).expand(s._v.shape)
    top = tenon.full((rows.shape[0],) + inner, float("-inf"), dtype=s.dtype).scatter_reduce(
        0, index, s._v.detach(), "amax", include_self=True)
    moved = s._v - top[to]
    logs = moved - _places._sum_rows(moved.exp(), to, rows.shape[0]).log()[to]
    return _places._like(s, logs.exp() if _exp else logs)


def spdiags(diagonals, offsets, shape, layout=None):
    """The sparse matrix that has these rows as diagonals."""
    diagonals = diagonals.reshape(-1, diagonals.shape[-1])
    rows, cols, values = [], [], []
    for row, offset in zip(diagonals, offsets.reshape(-1).tolist()):
        column = tenon.arange(max(offset, 0), min(shape[1], shape[0] + offset, row.shape[0]))
        rows.append(column - offset)
        cols.append(column)
        values.append(row[column])
    made = SparseTensor._of(tenon.stack([tenon.cat(rows), tenon.cat(cols)]), tenon.cat(values), shape, False)
    return made if layout in (None, tenon.sparse_coo) else made.to_sparse(layout=layout)


class check_sparse_tensor_invariants:
    """Places are always checked here: the setting is kept."""

    _on = False

    def __init__(self, enable=True):
        self._wanted = enable

    @staticmethod
    def is_enabled():
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable():
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable():
        check_sparse_tensor_invariants._on = False

    def __enter__(self):
        self._before, check_sparse_tensor_invariants._on = self._on, self._wanted

    def __exit__(self, *args):
        check_sparse_tensor_invariants._on = self._before

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with type(self)(self._wanted):
                return fn(*args, **kwargs)
        return wrapper


@functools.cache
def _deprecated(given, instead):
    """Warn of a form of the older constructors, once each."""
    warnings.warn("torch.sparse.SparseTensor(%s) is deprecated.  Please use torch.sparse_coo_tensor(%s)." % (given, instead),
                  stacklevel=3)


def _legacy(name, dtype):
    """torch.sparse.FloatTensor(indices, values, size), (indices, values) or (*size)."""
    class Legacy:
        def __new__(cls, *args, device=None):
            if args and isinstance(args[0], tenon.Tensor):
                if args[1].dtype != dtype:
                    raise TypeError("expected values of %s, but got %s" % (dtype, args[1].dtype))
                given = "indices, values, shape, " if len(args) > 2 else "indices, values, "
                _deprecated(given + "*, device=", given + "dtype=, device=")
                return sparse_coo_tensor(*args, device=device)
            size = args[0] if args and not isinstance(args[0], int) else args
            _deprecated(*(("shape, *, device=", "shape, dtype=, device=") if args else ("", "(0,), dtype=")))
            return sparse_coo_tensor(size=size, dtype=dtype, device=device)
    Legacy.__name__ = Legacy.__qualname__ = name
    Legacy.__module__ = "torch.sparse"
    Legacy.dtype = dtype
    return Legacy


DoubleTensor = _legacy("DoubleTensor", tenon.float64)
FloatTensor = _legacy("FloatTensor", tenon.float32)
HalfTensor = _legacy("HalfTensor", tenon.float16)
BFloat16Tensor = _legacy("BFloat16Tensor", tenon.bfloat16)
LongTensor = _legacy("LongTensor", tenon.int64)
IntTensor = _legacy("IntTensor", tenon.int32)
ShortTensor = _legacy("ShortTensor", tenon.int16)
CharTensor = _legacy("CharTensor", tenon.int8)
ByteTensor = _legacy("ByteTensor", tenon.uint8)
