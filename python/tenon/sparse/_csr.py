# SPDX-License-Identifier: MIT
"""Sparse matrices by compressed rows (CSR): where each row begins, columns, and values. Products and sums go by way of
places (see _coo)."""
import tenon
from tenon import _C

from . import _math
from ._coo import SparseTensor


class SparseCsrTensor(tenon.Tensor):
    """What ``tenon.sparse_csr_tensor`` makes."""

    is_sparse_csr = True
    layout = tenon.sparse_csr

    @staticmethod
    def _of(crow, col, values, size):
        made = tenon.Tensor._make_wrapper_subclass(SparseCsrTensor, tuple(size), dtype=values.dtype, device=values.device)
        made._parts = (crow, col, values)
        return made

    @staticmethod
    def _of_coo(s):
        _math._matrix(s, "to_sparse_csr")
        counts = tenon.bincount(s._i[0], minlength=s.shape[0])
        crow = tenon.cat([counts.new_zeros(1), counts.cumsum(0)])
        return SparseCsrTensor._of(crow, s._i[1].clone(), s._v, s.shape)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", None)
        if name in ("detach", "clone", "to", "float", "double", "neg", "__neg__") or name in (
                "mul", "__mul__", "__rmul__", "div", "__truediv__") and not isinstance(args[1], tenon.Tensor):
            s = args[0]
            return SparseCsrTensor._of(*s._parts[:2], getattr(tenon.Tensor, name)(s._v, *args[1:], **(kwargs or {})),
                                       s.shape)
        handler = _math.FUNCTIONS.get(name)
        if handler is not None:
            made = handler(*(_math.as_coo(a) for a in args), **(kwargs or {}))
            return made.to_sparse_csr() if isinstance(made, SparseTensor) and made.dim() == 2 else made
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            "Could not run '%s' with arguments from the 'SparseCsrCPU' backend. Sparse tensors have no kernel for it; "
            "Tensor.to_dense() gives an ordinary tensor." % func.name())

    _v = property(lambda self: self._parts[2])
    requires_grad = property(lambda self: self._v.requires_grad)
    is_leaf = property(lambda self: self._v.is_leaf)

    def requires_grad_(self, requires_grad=True):
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        grad = self._v.grad
        return None if grad is None else SparseCsrTensor._of(*self._parts[:2], grad, self.shape)

    def crow_indices(self):
        return self._parts[0]

    def col_indices(self):
        return self._parts[1]

    def values(self):
        return self._v

    def _nnz(self):
        return self._v.shape[0]

    def sparse_dim(self):
        return 2

    def dense_dim(self):
        return 0

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout is tenon.sparse_csr:
            return self
        crow, col, values = self._parts
        rows = tenon.repeat_interleave(tenon.arange(self.shape[0]), crow[1:] - crow[:-1])
        return SparseTensor._of(tenon.stack([rows, col.to(tenon.int64)]), values, self.shape, True)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self, dense_dim=None):
        return self

    def to_dense(self, dtype=None, *, masked_grad=None):
        return _math.to_dense(self.to_sparse(), dtype)

    def numpy(self, *args, **kwargs):
        raise TypeError("can't convert SparseCsr layout tensor to numpy. Use Tensor.to_dense() first.")

    __array__ = numpy

    def __repr__(self, *, tensor_contents=None):
        from tenon import _tensor_str
        parts = [_tensor_str.part(name, part) for name, part in zip(("crow_indices", "col_indices", "values"), self._parts)]
        dtype = "" if self.dtype in (tenon.get_default_dtype(), tenon.int64, tenon.bool) else " dtype=%s," % self.dtype
        history = ", requires_grad=True" if self.requires_grad else ""
        return "tensor(%s, size=%s, nnz=%d,%s\n       layout=%s%s)" % (
            ",\n       ".join(parts), tuple(self.shape), self._nnz(), dtype, self.layout, history)

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        from tenon import _utils
        return _utils._rebuild_sparse_tensor, (self.layout, tuple(p.detach() for p in self._parts) + (tuple(self.shape),))
