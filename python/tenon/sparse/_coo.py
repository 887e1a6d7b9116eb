# SPDX-License-Identifier: MIT
"""Sparse tensors as lists of places and values (COO).

A sparse tensor is a shell (a tensor with sizes, a dtype and a device, and no memory) that holds two ordinary tensors:
indices of (sparse_dim, nnz) and values of (nnz, dense sizes). Operators are written with operators on these two, so
gradients of values and of dense operands come about as for any other program. See docs/decisions/0018-sparse.md.
"""
import tenon
from tenon import _C

from . import _create, _places, _shapes
from ._shell import Shell, refuse


class SparseTensor(Shell):
    """What ``tenon.sparse_coo_tensor`` makes."""

    is_sparse = True
    layout = tenon.sparse_coo

    @staticmethod
    def _of(indices, values, size, coalesced=False):
        made = SparseTensor._shell((indices, values), size)
        made._is_coalesced = bool(coalesced) or indices.shape[1] == 0
        return made

    def _with_values(self, values):
        return SparseTensor._of(self._i, values, self.shape, self._is_coalesced)

    def _gradient(self, values):
        # Entries of one place are terms of a sum: each has the gradient of the place, which counts once.
        if self._is_coalesced or self._nnz() < 2:
            return self._with_values(values)
        size = self.shape[:self.sparse_dim()]
        places, to = tenon.unique(_places._flat_places(self._i, size), return_inverse=True)
        first = tenon.full_like(places, self._nnz()).scatter_reduce(0, to, tenon.arange(self._nnz(), device=to.device), "amin")
        return SparseTensor._of(_places._places_of(places, size), values[first], self.shape, True)

    def _has_each_place_once(self):
        return self._is_coalesced

    def _entries(self, grad):
        grad = grad.coalesce()
        if grad.sparse_dim() != self.sparse_dim():
            raise RuntimeError("assigned grad has %d sparse dimensions instead of %d" % (grad.sparse_dim(), self.sparse_dim()))
        if self._is_coalesced and tenon.equal(self._i, grad._i):
            return grad._v
        size = self.shape[:self.sparse_dim()]
        mine, its = _places._flat_places(self._i, size), _places._flat_places(grad._i, size)
        if not tenon.isin(its, mine).all():
            raise RuntimeError("assigned grad has places that the tensor has not")
        values = tenon.zeros_like(self._v, dtype=grad.dtype, requires_grad=False)
        there = tenon.isin(mine, its)
        values[there] = grad._v[tenon.searchsorted(its, mine[there])]
        return values

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        handler = _places.FUNCTIONS.get(getattr(func, "__name__", None))
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        handler = _places.FUNCTIONS.get(func._opname)
        if handler is None:
            raise NotImplementedError(
                "Could not run '%s' with arguments from the 'SparseCPU' backend. Sparse tensors have no kernel for it; "
                "Tensor.to_dense() gives an ordinary tensor." % func.name())
        if tenon.is_grad_enabled() and func._opname not in ("detach", "alias") and any(
                isinstance(a, SparseTensor) and a._v.requires_grad for a in args):
            raise NotImplementedError("%s of a sparse tensor whose values require grad is not differentiable: use the "
                                      "functions of torch, torch.Tensor and torch.sparse" % func.name())
        return handler(*args, **(kwargs or {}))

    def __tensor_flatten__(self):
        return ["_i", "_v"], self._is_coalesced

    @staticmethod
    def __tensor_unflatten__(parts, coalesced, outer_size, outer_stride):
        return SparseTensor._of(parts["_i"], parts["_v"], outer_size, coalesced)

    _i = property(lambda self: self._parts[0])

    # ---- parts ----

    def indices(self):
        if not self._is_coalesced:
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return self._i

    def values(self):
        if not self._is_coalesced:
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        return self._v

    crow_indices = refuse("crow_indices", "row compressed")
    col_indices = refuse("col_indices", "row compressed")
    ccol_indices = refuse("ccol_indices", "column compressed")
    row_indices = refuse("row_indices", "column compressed")

    def _indices(self):
        return self._i

    def _values(self):
        # The gradient of a place is that of its sum: entries of a leaf have none of their own.
        return self._v if self._is_coalesced or not self._v.is_leaf else self._v.detach()

    def _nnz(self):
        return self._i.shape[1]

    def is_coalesced(self):
        return self._is_coalesced

    def _coalesced_(self, on):
        self._is_coalesced = bool(on)
        return self

    def coalesce(self):
        return _places.coalesce(self)

    def sparse_dim(self):
        return self._i.shape[0]

    def dense_dim(self):
        return self._v.dim() - 1

    def stride(self, dim=None):
        return (0,) * self.dim() if dim is None else 0

    T = property(lambda self: _shapes.permute(self, *reversed(range(self.dim()))))
    mT = property(lambda self: _shapes.transpose(self, -2, -1))

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        return _create.resize_(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        return _create.resize_and_clear_(self, size, sparse_dim, dense_dim)

    # ---- to other forms ----

    def to_dense(self, dtype=None, *, masked_grad=None):
        return _places.to_dense(self, dtype)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout not in (None, tenon.sparse_coo):
            return self._compressed(layout, blocksize)
        if sparse_dim is None or sparse_dim == self.sparse_dim():
            return self
        return _places.to_dense(self).to_sparse(sparse_dim)

    to_sparse_coo = to_sparse

    def _compressed(self, layout, blocksize=None):
        if layout is tenon.strided:
            return self.to_dense()
        from ._compressed import from_any
        return from_any(self, layout, blocksize)

    def to_sparse_csr(self, dense_dim=None):
        return self._compressed(tenon.sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        return self._compressed(tenon.sparse_csc)

    def to_sparse_bsr(self, blocksize, dense_dim=None):
        return self._compressed(tenon.sparse_bsr, blocksize)

    def to_sparse_bsc(self, blocksize, dense_dim=None):
        return self._compressed(tenon.sparse_bsc, blocksize)

    def type(self, dtype=None, **kwargs):
        if dtype is None:
            return self._v.type().replace("torch.", "torch.sparse.", 1)
        return _shapes.to(self, dtype if isinstance(dtype, tenon.dtype) else self._v.type(dtype).dtype)

    def __iter__(self):
        return iter(tuple(_shapes.select(self, 0, i) for i in range(self.shape[0])))

    def __repr__(self, *, tensor_contents=None):
        from tenon import _tensor_str
        ends = self._sizes()
        if self.dtype not in (tenon.get_default_dtype(), tenon.int64, tenon.bool):
            ends.append("dtype=%s" % self.dtype)
        ends.append("layout=%s" % self.layout)
        if self._history():
            ends.append(self._history())
        lines = [_tensor_str.part("indices", self._i), _tensor_str.part("values", self._v), ends.pop(0)]
        return _tensor_str._add_suffixes("tensor(" + ",\n       ".join(lines), ends, len("tensor("))

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        from tenon import _utils
        return _utils._rebuild_sparse_tensor, (self.layout, (self._i.detach(), self._v.detach(), tuple(self.shape),
                                                             self._is_coalesced))
