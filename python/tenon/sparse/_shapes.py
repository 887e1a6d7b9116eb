# SPDX-License-Identifier: MIT
"""Operators of sparse tensors that change places and types rather than numbers: shapes, copies and conversions."""
import tenon

from ._places import FUNCTIONS, _dim, _function, _is_sparse, _like, _sparse, as_coo, to_dense


# ---- shapes ----

@_function("transpose", "swapaxes")
def transpose(s, dim0, dim1):
    s = as_coo(s)
    order = list(range(s.dim()))
    a, b = _dim(s, dim0), _dim(s, dim1)
    order[a], order[b] = order[b], order[a]
    return permute(s, *order)


@_function("permute")
def permute(s, *dims):
    if len(dims) == 1 and not isinstance(dims[0], int):
        dims = tuple(dims[0])
    n, dims = s.sparse_dim(), [_dim(s, d) for d in dims]
    if sorted(dims) != list(range(s.dim())):
        raise RuntimeError("permute(sparse): the dims must name every dimension once, got %s" % list(dims))
    if builtin_any(d >= n for d in dims[:n]):
        raise RuntimeError("permute(sparse): dims of sparse and dense dimensions cannot be exchanged")
    values = s._v if s.dense_dim() == 0 else s._v.permute(0, *(d - n + 1 for d in dims[n:]))
    moved = dims[:n] != list(range(n))
    return _like(s, values, s._i[tenon.tensor(dims[:n])] if moved else s._i, [s.shape[d] for d in dims],
                 False if moved else None)


builtin_any = any


@_function("t")
def t(s):
    if s.dim() > 2:
        raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got %d sparse and %d dense "
                           "dimensions" % (s.sparse_dim(), s.dense_dim()))
    return s if s.dim() < 2 else transpose(s, 0, 1)


@_function("unsqueeze")
def unsqueeze(s, dim):
    at, n = dim % (s.dim() + 1), s.sparse_dim()
    size = list(s.shape[:at]) + [1] + list(s.shape[at:])
    if at > n:
        return _like(s, s._v.unsqueeze(at - n + 1), size=size)
    zeros = s._i.new_zeros((1, s._nnz()))
    return _like(s, s._v, tenon.cat([s._i[:at], zeros, s._i[at:]]), size)


@_function("reshape", "view_as", "flatten")
def reshape(s, *args, **kwargs):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@_function("select")
def select(s, dim, index):
    at, n = _dim(s, dim), s.sparse_dim()
    if not -s.shape[at] <= index < s.shape[at]:
        raise IndexError("select(): index %d out of range for tensor of size %s at dimension %d"
                         % (index, list(s.shape), dim))
    index %= s.shape[at]
    size = [k for d, k in enumerate(s.shape) if d != at]
    if at >= n:
        return _like(s, s._v.select(at - n + 1, index), size=size)
    keep = s._i[at] == index
    values = s._v[keep]
    if n == 1:
        return values.sum(0)
    return _like(s, values, tenon.cat([s._i[:at], s._i[at + 1:]])[:, keep], size)


@_function("index_select")
def index_select(s, dim, index):
    at, n = _dim(s, dim), s.sparse_dim()
    size = list(s.shape)
    size[at] = index.shape[0]
    if at >= n:
        return _like(s, s._v.index_select(at - n + 1, index), size=size)
    pairs = (s._i[at].unsqueeze(1) == index.unsqueeze(0)).nonzero()
    indices = s._i[:, pairs[:, 0]].clone()
    indices[at] = pairs[:, 1]
    return _like(s, s._v[pairs[:, 0]], indices, size, False)


@_function("narrow_copy", "narrow")
def narrow_copy(s, dim, start, length):
    at, n = _dim(s, dim), s.sparse_dim()
    size = list(s.shape)
    size[at] = length
    if at >= n:
        return _like(s, s._v.narrow(at - n + 1, start, length), size=size)
    keep = (s._i[at] >= start) & (s._i[at] < start + length)
    indices = s._i[:, keep].clone()
    indices[at] -= start
    return _like(s, s._v[keep], indices, size)


@_function("__getitem__")
def getitem(s, index):
    for one in index if isinstance(index, tuple) else (index,):
        if one is Ellipsis:
            continue
        if not isinstance(one, int):
            raise NotImplementedError("Could not run 'aten::as_strided' with arguments from the 'SparseCPU' backend. "
                                      "Sparse tensors are indexed with numbers; see index_select and narrow_copy.")
        s = s.select(0, one)
    return s


@_function("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    first = tensors[0]
    at, n = _dim(first, dim), first.sparse_dim()
    size, places, start = list(first.shape), [], 0
    if builtin_any(not _is_sparse(s) or s.sparse_dim() != n for s in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor or one of other sparse dimensions was found")
    for s in tensors:
        moved = s._i
        if at < n:
            moved = moved.clone()
            moved[at] += start
        places.append(moved)
        start += s.shape[at]
    size[at] = start
    if at >= n:
        raise RuntimeError("cat: concatenating sparse tensors along a dense dimension is not supported")
    return _sparse()._of(tenon.cat(places, 1), tenon.cat([s._v for s in tensors]), size, False)


@_function("stack")
def stack(tensors, dim=0):
    return cat([unsqueeze(s, dim) for s in tensors], dim)


# ---- copies and conversions ----

@_function("detach", "alias", "detach_")
def detach(s):
    return _like(s, s._v.detach())


@_function("clone")
def clone(s, *, memory_format=None):
    return _like(s, s._v.clone(), s._i.clone())


@_function("to", "_to_copy")
def to(s, *args, **kwargs):
    kwargs = {k: v for k, v in kwargs.items() if k not in ("layout", "pin_memory", "memory_format")}
    values = s._v.to(*args, **kwargs)
    if values is s._v:
        return s
    return _like(s, values, s._i.to(values.device))


def _cast(name):
    def function(s, *args, **kwargs):
        values = getattr(s._v, name)()
        return s if values is s._v else _like(s, values)
    FUNCTIONS[name] = function


CASTS = ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble", "cpu")
for _name in CASTS:
    _cast(_name)


@_function("type_as")
def type_as(s, other):
    return to(s, other.dtype)


@_function("contiguous")
def contiguous(s, *args, **kwargs):
    return s


@_function("zeros_like", "empty_like")
def zeros_like(s, *, dtype=None, **_):
    return _like(s, s._v.detach()[:0].to(dtype or s.dtype), s._i[:, :0])


@_function("new_zeros", "new_empty")
def new_zeros(s, *size, dtype=None, device=None, requires_grad=False, **_):
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    return tenon.sparse_coo_tensor(size, dtype=dtype or s.dtype, device=device or s.device, requires_grad=requires_grad)


@_function("sparse_mask")
def sparse_mask(x, mask):
    if _is_sparse(x):
        x = to_dense(x)
    return _like(mask, x[tuple(mask._i)])
