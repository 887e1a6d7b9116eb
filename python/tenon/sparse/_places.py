# SPDX-License-Identifier: MIT
"""Places of sparse tensors, and the table of what is known of them: `FUNCTIONS`, by the names of functions, methods and
operators. What is not in it is refused."""
import tenon

FUNCTIONS: dict = {}


def _function(*names):
    def remember(fn):
        for name in names or (fn.__name__,):
            FUNCTIONS[name] = fn
        return fn
    return remember


def _sparse():
    from ._coo import SparseTensor
    return SparseTensor


def _is_sparse(x):
    return isinstance(x, _sparse())


def as_coo(x):
    """A sparse tensor of whatever layout as a list of places."""
    from ._compressed import SparseCompressedTensor
    return x.to_sparse() if isinstance(x, SparseCompressedTensor) else x


def _like(s, values, indices=None, size=None, coalesced=None):
    return _sparse()._of(s._i if indices is None else indices, values, s.shape if size is None else size,
                         s._is_coalesced if coalesced is None else coalesced)


def _dim(s, dim):
    n = s.dim()
    if not -n <= dim < n:
        raise IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)" % (-n, n - 1, dim))
    return dim % n


def _flat_places(indices, size):
    """Of each place its number among all places of the sparse dimensions."""
    flat = tenon.zeros(indices.shape[1], dtype=tenon.int64, device=indices.device)
    for row, n in zip(indices, size):
        flat = flat * n + row
    return flat


def _places_of(flat, size):
    rows = []
    for n in reversed(size):
        rows.append(flat % n)
        flat = flat // n
    return tenon.stack(rows[::-1]) if rows else flat.new_zeros((0, flat.shape[0]))


def _sum_rows(values, to, n):
    """Rows of the values added up: row i to row to[i] of n."""
    whole = values.dtype == tenon.bool
    out = tenon.zeros((n,) + tuple(values.shape[1:]), dtype=tenon.int64 if whole else values.dtype, device=values.device)
    out = out.index_add(0, to, values.to(out.dtype))
    return out.bool() if whole else out


@_function()
def coalesce(s):
    """Every place once, in order."""
    if s._is_coalesced:
        return s
    size = s.shape[:s.sparse_dim()]
    if s._nnz() < 2:
        return _like(s, s._v, coalesced=True)
    places, to = tenon.unique(_flat_places(s._i, size), return_inverse=True)
    return _like(s, _sum_rows(s._v, to, places.shape[0]), _places_of(places, size), coalesced=True)


@_function()
def to_dense(s, dtype=None, **_):
    n = s.sparse_dim()
    size = s.shape[:n]
    total = 1
    for k in size:
        total *= k
    out = _sum_rows(s._v, _flat_places(s._i, size), total).reshape(s.shape)
    return out if dtype is None else out.to(dtype)


def from_dense(x, sparse_dim=None):
    """The elements that are not 0; of the first dimensions, where a number of them is given."""
    n = x.dim() if sparse_dim is None else sparse_dim
    if not 0 <= n <= x.dim() or (x.dim() and n == 0):
        raise RuntimeError("sparse_dim argument must be in >0 and <= the number of dimensions, but got %d for a tensor of "
                           "%d dimensions" % (n, x.dim()))
    there = x.detach() != 0
    for _ in range(x.dim() - n):
        there = there.any(-1)
    places = there.nonzero().t().contiguous() if n else there.reshape(1).nonzero()[:, :0].t()
    values = x[tuple(places)] if n else x.reshape(1)[there.reshape(1)]
    return _sparse()._of(places, values, x.shape, True)
