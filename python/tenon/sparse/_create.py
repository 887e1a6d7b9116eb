# SPDX-License-Identifier: MIT
"""Sparse tensors without elements: `zeros` and its kind with a sparse `layout`, and tensors that get other sizes in place."""
import tenon

from . import _math
from ._shell import NAMES

_ADVICE = """
You could try the following options:
1. If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.
2. If you need to resize this tensor, you have the following options:
    1. For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and then try the same call again.
    2. Or, create a new sparse tensor with the correct indices and values from this sparse tensor."""

EMPTY = ("zeros", "empty", "zeros_like", "new_zeros", "new_empty")
FILLED = ("ones", "full", "ones_like", "full_like", "new_ones", "new_full")


def make(name, args, kwargs):
    """What the function or method `name` gives with the sparse layout in `kwargs`; None: it has no answer."""
    layout, requires_grad = kwargs["layout"], kwargs.get("requires_grad", False)
    if name in FILLED and layout is tenon.sparse_coo:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    if name not in EMPTY:
        return None
    words = {key: value for key, value in kwargs.items() if key not in ("layout", "requires_grad", "pin_memory")}
    if words.get("out") is not None:
        raise RuntimeError("layout %s does not match layout of out parameter (%s)" % (NAMES[layout], NAMES[words["out"].layout]))
    home = tenon.Tensor if name.startswith("new_") else tenon
    plain = getattr(home, name)(*args, **dict(words, device="meta"))  # sizes and dtype
    device = words.get("device") or (args[0].device if args and isinstance(args[0], tenon.Tensor) else None)
    if layout is tenon.sparse_coo:
        made = tenon.sparse_coo_tensor(plain.shape, dtype=plain.dtype, device=device)
    else:
        made = _compressed("zeros" if "zeros" in name else "empty", plain, layout, device)
    return made.requires_grad_() if requires_grad else made


def _compressed(name, plain, layout, device):
    if layout not in (tenon.sparse_csr, tenon.sparse_csc):
        raise RuntimeError("%s_sparse_compressed expected sparse compressed (non-block) tensor layout but got %s" % (name, NAMES[layout]))
    if plain.dim() < 2:
        raise RuntimeError("torch.%s: Only batched sparse compressed (non-block) tensors are supported, but got size %s"
                           % (name, list(plain.shape)))
    batch, lines = plain.shape[:-2], plain.shape[-2 if layout is tenon.sparse_csr else -1]
    ends = tenon.zeros((*batch, lines + 1), dtype=tenon.int64, device=device)
    return tenon.sparse_compressed_tensor(ends, tenon.zeros((*batch, 0), dtype=tenon.int64, device=device),
                                          tenon.zeros((*batch, 0), dtype=plain.dtype, device=device), tuple(plain.shape), layout=layout)


# ---- other sizes ----

def _check_sum(size, sparse_dim, dense_dim):
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = %d, sparse_dim = %d, dense_dim = %d"
                           % (len(size), sparse_dim, dense_dim))


def _check_kept(s, size, sparse_dim, dense_dim):
    """Elements that are there stay where they are."""
    for kind, was, wanted in (("sparse", s.sparse_dim(), sparse_dim), ("dense", s.dense_dim(), dense_dim)):
        if was != wanted:
            raise RuntimeError("changing the number of %s dimensions (from %d to %d) on a non-empty sparse tensor is not supported.%s"
                               % (kind, was, wanted, _ADVICE))
    for kind, part in (("sparse", slice(None, sparse_dim)), ("dense", slice(sparse_dim, None))):
        before, after = list(s.shape[part]), list(size[part])
        if any(b < a for a, b in zip(before, after)):
            raise RuntimeError("shrinking the size of %s dimensions (from %s to %s) on a non-empty sparse tensor is not supported.%s"
                               % (kind, before, after, _ADVICE))


def _become(s, indices, values, size, coalesced):
    made = type(s)._of(indices, values, size, coalesced)
    _math._become(s, made)
    tenon.Tensor.data.__set__(s, made)  # the sizes
    return s


def resize_(s, size, sparse_dim, dense_dim):
    size = tuple(size)
    _check_sum(size, sparse_dim, dense_dim)
    if s._nnz():
        _check_kept(s, size, sparse_dim, dense_dim)
    indices = s._i if s.sparse_dim() == sparse_dim else s._i.new_zeros((sparse_dim, 0))
    values = s._v.detach()
    if tuple(values.shape[1:]) != size[sparse_dim:]:
        values = values.new_zeros((indices.shape[1], *size[sparse_dim:]))
        values[tuple(slice(n) for n in s._v.shape)] = s._v.detach() if s._nnz() else 0
    return _become(s, indices, values, size, s._is_coalesced)


def resize_and_clear_(s, size, sparse_dim, dense_dim):
    size = tuple(size)
    _check_sum(size, sparse_dim, dense_dim)
    return _become(s, s._i.new_zeros((sparse_dim, 0)), s._v.detach().new_zeros((0, *size[sparse_dim:])), size, True)
