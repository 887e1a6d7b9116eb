# SPDX-License-Identifier: MIT
"""Sparse matrices by compressed rows or columns: where each row (or column) begins, what stands in it, and values. CSR and
CSC have a value a place, BSR and BSC a block of values. Batches are in front, dense dimensions behind. Products and sums go
by way of places (see _coo)."""
import tenon
from tenon import _C

from . import _math, _places, _shapes
from ._coo import SparseTensor
from ._shell import NAMES, Shell, refuse

_ROWS, _COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
# What is done to the values alone, whatever the layout; of the second set with numbers only.
_ON_VALUES = {"detach", "clone", "to", "cpu", "neg", "__neg__", "negative", "__abs__", "conj", "alias", *_math.KEEP_ZERO,
              *_shapes.CASTS}
_WITH_NUMBERS = {"mul", "__mul__", "__rmul__", "div", "__truediv__"}
_ASSIGNMENTS = {"__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div"}


def _written_as(name):
    """The operator whose result a write in place puts there, or None."""
    return _ASSIGNMENTS.get(name) or (name[:-1] if name and name.endswith("_") and not name.endswith("__") else None)


class SparseCompressedTensor(Shell):
    """The base of the four layouts."""

    _names = _ROWS  # of its two index tensors
    _blocks = False
    _twin: "type[SparseCompressedTensor]"  # the layout of a transposed one

    @classmethod
    def _of(cls, compressed, plain, values, size):
        return cls._shell((compressed, plain, values), size)

    def _with_values(self, values):
        return type(self)._of(*self._parts[:2], values, self.shape)

    def _from_fakes(self, parts):
        return type(self)._of(*parts, self.shape)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", None), kwargs or {}
        s = args[0] if args else None
        if isinstance(s, SparseCompressedTensor):
            if name in _ON_VALUES or name in _WITH_NUMBERS and not isinstance(args[1], tenon.Tensor):
                values = getattr(tenon.Tensor, name)(s._v, *args[1:], **kwargs)
                return s if values is s._v else s._with_values(values)
            if name in _HERE:
                return _HERE[name](s, *args[1:], **kwargs)
            computed = _written_as(name)
            if computed in _ON_VALUES or computed in _places.FUNCTIONS:
                return s._become(cls.__torch_function__(getattr(tenon.Tensor, computed), types, args, kwargs), computed)
        handler = _places.FUNCTIONS.get(name)
        if handler is not None:
            like = next(a for a in args if isinstance(a, SparseCompressedTensor))
            made = handler(*(_places.as_coo(a) for a in args), **kwargs)
            return like._back(made) if isinstance(made, SparseTensor) else made
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func._opname in ("detach", "alias"):  # of a result that a Function saves
            return args[0]._with_values(args[0]._v.detach())
        raise NotImplementedError(
            "Could not run '%s' with arguments from the 'SparseCsrCPU' backend. Sparse tensors have no kernel for it; "
            "Tensor.to_dense() gives an ordinary tensor." % func.name())

    def _become(self, made, name):
        """The result of an operator, written in place. Whoever kept the values has them as they were."""
        if made.layout is not self.layout or made.shape != self.shape:
            raise RuntimeError("%s_: the result has layout %s and size %s, which a tensor of layout %s and size %s cannot take"
                               % (name, NAMES[made.layout], list(made.shape), NAMES[self.layout], list(self.shape)))
        self._parts = _math.written_parts(self, made, name)
        _C._increment_version(self)
        self._wrote()
        return self

    def _back(self, made):
        """A result that was computed as places, in this layout where it has one."""
        if made.sparse_dim() != 2:
            return made
        block = self._block()
        if block and (made.shape[0] % block[0] or made.shape[1] % block[1]):
            return made
        return type(self)._of_coo(made.coalesce(), block)

    # ---- from places ----

    @classmethod
    def _of_coo(cls, s, block=None):
        if s.sparse_dim() != 2:
            raise RuntimeError("to_%s: expected a tensor of 2 sparse dimensions, but got %d"
                               % (str(cls.layout).rpartition(".")[2], s.sparse_dim()))
        rows, cols, values, (height, width) = s._i[0], s._i[1], s._v, s.shape[:2]
        if cls._blocks:
            high, wide = block
            _check_block(cls.layout, "sparse", height, width, block)
            height, width = height // high, width // wide
            key = rows // high * width + cols // wide
            keys, to = tenon.unique(key, return_inverse=True)
            room = values.new_zeros((keys.shape[0], high, wide) + tuple(values.shape[1:]))
            values = room.index_put((to, rows % high, cols % wide), values)
            rows, cols = keys // width, keys % width
        major, minor, n = (rows, cols, height) if cls._names is _ROWS else (cols, rows, width)
        if major is cols:  # places are in the order of rows
            order = tenon.argsort(cols, stable=True)
            major, minor, values = major[order], minor[order], values[order]
        counts = tenon.bincount(major, minlength=n)
        return cls._of(tenon.cat([counts.new_zeros(1), counts.cumsum(0)]), minor.clone(), values, s.shape)

    @classmethod
    def _of_dense(cls, x, block=None, dense_dim=None):
        dense_dim = dense_dim or 0
        what = str(cls.layout).rpartition(".")[2]
        if not 0 <= dense_dim <= x.dim() - 2:
            raise RuntimeError("dense_to_%s: dense_dim argument must be in [0,%d] range, but %d is given"
                               % (what, x.dim() - 2, dense_dim))
        batch = tuple(x.shape[:x.dim() - 2 - dense_dim])
        if not batch:
            if cls._blocks:
                _check_block(cls.layout, "strided", *x.shape[:2], block)
            return cls._of_coo(_places.from_dense(x, 2), block)
        made = [cls._of_dense(one, block, dense_dim) for one in x.reshape((-1,) + tuple(x.shape[len(batch):]))]
        if len({s._nnz() for s in made}) > 1:
            raise RuntimeError("Expect the same number of specified elements per batch.")
        parts = [tenon.stack(part) for part in zip(*(s._parts for s in made))]
        return cls._of(*(part.reshape(batch + tuple(part.shape[1:])) for part in parts), x.shape)

    # ---- parts ----

    crow_indices = refuse("crow_indices", "row compressed")
    col_indices = refuse("col_indices", "row compressed")
    ccol_indices = refuse("ccol_indices", "column compressed")
    row_indices = refuse("row_indices", "column compressed")
    indices = refuse("indices", "coordinate")
    coalesce = refuse("coalesce", "coordinate")
    is_coalesced = refuse("is_coalesced", "coordinate")

    def values(self):
        return self._v

    def _nnz(self):
        return self._parts[1].shape[-1]

    def sparse_dim(self):
        return 2

    def dense_dim(self):
        return self._v.dim() - self._parts[1].dim() - 2 * self._blocks

    def _block(self):
        at = self._parts[1].dim()
        return tuple(self._v.shape[at:at + 2]) if self._blocks else None

    def stride(self, dim=None):
        raise RuntimeError("Sparse %s tensors do not have strides" % NAMES[self.layout][-3:].upper())

    def is_contiguous(self, *args, **kwargs):
        raise RuntimeError("Sparse %s tensors do not have is_contiguous" % NAMES[self.layout][-3:].upper())

    def type(self, dtype=None, **kwargs):
        if dtype is None:
            raise RuntimeError("Unimplemented backend SparseCsrCPU")
        return self._with_values(self._v.type(dtype))

    T = property(lambda self: _transpose(self, 0, 1))
    mT = property(lambda self: _transpose(self, -2, -1))

    # ---- to other forms ----

    def _places(self):
        """Of each value its place, batches first; the values in the same order."""
        compressed, plain, values = self._parts
        batch, nnz, lines = tuple(plain.shape[:-1]), plain.shape[-1], compressed.shape[-1] - 1
        n = 1
        for k in batch:
            n *= k
        counts = compressed.reshape(n, lines + 1).diff(dim=1).reshape(-1)
        major = tenon.repeat_interleave(tenon.arange(n * lines), counts.to(tenon.int64)) % max(lines, 1)
        minor = plain.reshape(-1).to(tenon.int64)
        rows, cols = (major, minor) if self._names is _ROWS else (minor, major)
        values = values.reshape((n * nnz,) + tuple(values.shape[len(batch) + 1:]))
        flat = tenon.arange(n).repeat_interleave(nnz)
        if self._blocks:
            high, wide = self._block()
            down, along = tenon.arange(high).reshape(1, -1, 1), tenon.arange(wide).reshape(1, 1, -1)
            rows = (rows.reshape(-1, 1, 1) * high + down + along * 0).reshape(-1)
            cols = (cols.reshape(-1, 1, 1) * wide + along + down * 0).reshape(-1)
            values, flat = values.flatten(0, 2), flat.repeat_interleave(high * wide)
        return tenon.cat([_places._places_of(flat, batch), rows.unsqueeze(0), cols.unsqueeze(0)]), values

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout not in (None, tenon.sparse_coo):
            return _convert(self, layout, blocksize)
        if sparse_dim not in (None, 2):
            raise RuntimeError("sparse_compressed_to_sparse: conversion from %s to Sparse with sparse_dim argument !=2 is "
                               "not supported" % NAMES[self.layout])
        places, values = self._places()
        made = SparseTensor._of(places, values, self.shape, False)
        return SparseTensor._of(places, values, self.shape, True) if self._is_in_order() else _places.coalesce(made)

    to_sparse_coo = to_sparse

    def _is_in_order(self):
        """Whether places come row by row, as those of a coalesced tensor do."""
        return self._names is _ROWS and not self._blocks and _is_sorted(self._parts[0], self._parts[1])

    def to_sparse_csr(self, dense_dim=None):
        return _convert(self, tenon.sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        return _convert(self, tenon.sparse_csc)

    def to_sparse_bsr(self, blocksize, dense_dim=None):
        return _convert(self, tenon.sparse_bsr, blocksize)

    def to_sparse_bsc(self, blocksize, dense_dim=None):
        return _convert(self, tenon.sparse_bsc, blocksize)

    def to_dense(self, dtype=None, *, masked_grad=None):
        places, values = self._places()
        return _places.to_dense(SparseTensor._of(places, values, self.shape, False), dtype)

    def __repr__(self, *, tensor_contents=None):
        from tenon import _tensor_str
        parts = [_tensor_str.part(name, part) for name, part in zip(self._names + ("values",), self._parts)]
        ends = self._sizes()
        if self.dtype not in (tenon.get_default_dtype(), tenon.int64, tenon.bool):
            ends.append("dtype=%s" % self.dtype)
        ends.append("layout=%s" % self.layout)
        if self._history():
            ends.append(self._history())
        return _tensor_str._add_suffixes("tensor(" + ",\n       ".join(parts), ends, len("tensor("))

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        from tenon import _utils
        return _utils._rebuild_sparse_tensor, (self.layout, tuple(p.detach() for p in self._parts) + (tuple(self.shape),))


class SparseCsrTensor(SparseCompressedTensor):
    """What ``tenon.sparse_csr_tensor`` makes."""
    is_sparse_csr = True
    layout = tenon.sparse_csr


class SparseCscTensor(SparseCompressedTensor):
    """What ``tenon.sparse_csc_tensor`` makes."""
    layout = tenon.sparse_csc
    _names = _COLUMNS


class SparseBsrTensor(SparseCompressedTensor):
    """What ``tenon.sparse_bsr_tensor`` makes."""
    layout = tenon.sparse_bsr
    _blocks = True


class SparseBscTensor(SparseCompressedTensor):
    """What ``tenon.sparse_bsc_tensor`` makes."""
    layout = tenon.sparse_bsc
    _names = _COLUMNS
    _blocks = True


LAYOUTS = {cls.layout: cls for cls in (SparseCsrTensor, SparseCscTensor, SparseBsrTensor, SparseBscTensor)}
SparseCsrTensor._twin, SparseCscTensor._twin = SparseCscTensor, SparseCsrTensor
SparseBsrTensor._twin, SparseBscTensor._twin = SparseBscTensor, SparseBsrTensor
for _class in LAYOUTS.values():
    for _i, _name in enumerate(_class._names):
        setattr(_class, _name, lambda self, _i=_i: self._parts[_i])


def _check_block(layout, source, height, width, block):
    if block is None or min(block) < 1 or height % block[0] or width % block[1]:
        raise RuntimeError("%s_to_%s: tensor sparse size (%d,%d) must be divisible by given blocksize (%s)" % (
            "dense" if source == "strided" else source, str(layout).rpartition(".")[2], height, width,
            ",".join(map(str, block or ()))))


def _pair(blocksize):
    return (blocksize, blocksize) if isinstance(blocksize, int) else None if blocksize is None else tuple(blocksize)


def _convert(s, layout, blocksize=None):
    """A compressed matrix in another layout."""
    cls, block = LAYOUTS.get(layout), _pair(blocksize)
    if layout in (tenon.sparse_coo, None):
        return s.to_sparse()
    if layout is tenon.strided:
        return s.to_dense()
    if s.layout is layout and block in (None, s._block()):
        return s
    if s._blocks and not cls._blocks:
        raise RuntimeError("sparse_compressed_to_%s: expected SparseCsr or SparseCsc layout but got %s"
                           % (str(layout).rpartition(".")[2], NAMES[s.layout]))
    if s.dim() - s.dense_dim() > 2:
        return cls._of_dense(s.to_dense(), block or s._block(), s.dense_dim())
    return cls._of_coo(_places.coalesce(s.to_sparse()), block or s._block())


def from_any(x, layout, blocksize=None, dense_dim=None):
    """Tensor.to_sparse(layout=…) of what is no compressed matrix."""
    cls, block = LAYOUTS[layout], _pair(blocksize)
    if cls._blocks and block is None:
        raise RuntimeError("%s_to_sparse: conversion from %s to %s without blocksize argument given is not supported" % (
            "dense" if x.layout is tenon.strided else "sparse", NAMES[x.layout], NAMES[layout]))
    if isinstance(x, SparseTensor):
        return cls._of_coo(_places.coalesce(x), block)
    return cls._of_dense(x, block, dense_dim)


# ---- functions that know the layout ----

def _transpose(s, dim0, dim1):
    first = s.dim() - s.dense_dim() - 2
    a, b = sorted((_places._dim(s, dim0), _places._dim(s, dim1)))
    if (a, b) != (first, first + 1):
        if a == b:
            return s
        raise RuntimeError("transpose(): can only transpose the two sparse dimensions of a tensor of layout %s" % s.layout)
    size = list(s.shape)
    size[a], size[b] = size[b], size[a]
    at = s._parts[1].dim()
    values = s._v.transpose(at, at + 1) if s._blocks else s._v
    return s._twin._of(*s._parts[:2], values, size)


def _t(s):
    return _transpose(s, 0, 1)


def _zeros_like(s, *, dtype=None, **_):
    compressed, plain, values = s._parts
    at = plain.dim() - 1
    return type(s)._of(tenon.zeros_like(compressed), plain.narrow(at, 0, 0),
                       values.detach().narrow(at, 0, 0).to(dtype or s.dtype), s.shape)


def _copy(s, other, non_blocking=False):
    if getattr(other, "layout", None) is not s.layout or other.shape != s.shape:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different layouts or sizes is not "
                           "supported. self layout is %s and src layout is %s" % (NAMES[s.layout], NAMES[other.layout]))
    s._parts = tuple(part.clone() for part in other._parts[:2]) + (other._v.to(s.dtype, copy=True),)
    s._wrote()
    return s


def _zero(s):
    """No place holds anything; those of a tensor with a history stay, so that what was there has a gradient of zero."""
    nothing = s._with_values(s._v.clone().zero_()) if s.requires_grad and tenon.is_grad_enabled() else _zeros_like(s)
    return s._become(nothing, "zero")


def _fill(s, value):
    return s._become(s._with_values(s._v.clone().fill_(value)), "fill")


_HERE = {"transpose": _transpose, "swapaxes": _transpose, "t": _t, "zeros_like": _zeros_like, "empty_like": _zeros_like,
         "copy_": _copy, "zero_": _zero, "fill_": _fill, "contiguous": lambda s, *_, **__: s,
         "type_as": lambda s, other: s.to(other.dtype)}


# ---- making one of its parts ----

def _is_sorted(compressed, plain):
    """Whether in each line the indices grow."""
    if plain.shape[-1] < 2:
        return True
    grows = plain.diff(dim=-1) > 0
    begins = tenon.zeros(plain.shape[:-1] + (plain.shape[-1] + 1,), dtype=tenon.bool)
    begins = begins.scatter(-1, compressed.to(tenon.int64), True)
    return bool((grows | begins[..., 1:-1]).all())


def _check_values(cls, batch, values):
    if values.dim() <= batch + 2 * cls._blocks:
        raise RuntimeError("values must have dimensionality > sum of batch and block dimensionalities (=%d + %d) but got %d"
                           % (batch, 2 * cls._blocks, values.dim()))


def check_parts(layout, compressed, plain, values, size, order):
    """The rules of a layout, in torch's words; whether indices are in order is looked at if `order`."""
    cls = LAYOUTS[layout]
    (names, lines, inside) = (_ROWS, "rows", "ncols") if cls._names is _ROWS else (_COLUMNS, "columns", "nrows")
    batch = plain.dim() - 1
    if compressed.dim() != plain.dim() or plain.dim() < 1:
        raise RuntimeError("%s and %s dimensionalities must be equal but got %d and %d, respectively"
                           % (*names, compressed.dim(), plain.dim()))
    if compressed.dtype != plain.dtype:
        shown = [x.type().rpartition(".")[2][:-len("Tensor")] for x in (compressed, plain)]
        raise RuntimeError("%s and %s must have the same dtype, bot got %s and %s, respectively" % (*names, *shown))
    if compressed.dtype not in (tenon.int32, tenon.int64):
        raise RuntimeError("%s and %s must be an int32 or int64 type, but got %s" % (*names, compressed.type()))
    _check_values(cls, batch, values)
    if len(size) != values.dim() + (-1 if cls._blocks else 1):
        raise RuntimeError("tensor dimensionality must be sum of batch, base, and dense dimensionalities (=%d + 2 + %d) but "
                           "got %d" % (batch, values.dim() - batch - 1 - 2 * cls._blocks, len(size)))
    if tuple(compressed.shape[:-1]) != tuple(plain.shape[:-1]) or tuple(values.shape[:batch]) != tuple(plain.shape[:-1]) \
            or tuple(size[:batch]) != tuple(plain.shape[:-1]):
        raise RuntimeError("all batch dimensions of %s (=%s), %s (=%s), values (=%s), and tensor dimensions (=%s) must be "
                           "equal to tensor batch dimensions (=%s)"
                           % (names[0], list(compressed.shape[:-1]), names[1], list(plain.shape[:-1]),
                              list(values.shape[:batch]), list(size[:batch]), list(size[:batch])))
    block = tuple(values.shape[batch + 1:batch + 3]) if cls._blocks else (1, 1)
    sides = list(size[batch:batch + 2])
    for i in range(2):
        if block[i] == 0 or sides[i] % block[i]:
            raise RuntimeError("tensor shape[%d] (=%d) must be divisible with blocksize[%d] (=%d) as defined by values shape"
                               % (batch + i, sides[i], i, block[i]))
        sides[i] //= block[i]
    major, minor = sides if cls._names is _ROWS else sides[::-1]
    if compressed.shape[-1] != major + 1:
        raise RuntimeError("%s.shape[-1] must be equal to the number of %s + 1 (=%d), but got %d"
                           % (names[0], lines, major + 1, compressed.shape[-1]))
    nnz = plain.shape[-1]
    if values.shape[batch] != nnz:
        raise RuntimeError("%s.shape[-1] must be equal to nnz (=%d) as defined by values.shape[%d], but got %d"
                           % (names[1], values.shape[batch], batch, nnz))
    if tuple(values.shape[batch + 1 + 2 * cls._blocks:]) != tuple(size[batch + 2:]):
        raise RuntimeError("values dense dimensions %s do not match those of size %s" % (
            list(values.shape[batch + 1 + 2 * cls._blocks:]), list(size)))
    if compressed.is_meta:  # there are no indices to look at
        return
    rules = [("%s[..., 0] == 0" % names[0], compressed[..., 0] == 0),
             ("%s[..., -1] == nnz" % names[0], compressed[..., -1] == nnz),
             ("0 <= %s[..., 1:] - %s[..., :-1] <= %s" % (names[0], names[0], inside),
              (compressed.diff(dim=-1) >= 0) & (compressed.diff(dim=-1) <= max(minor, nnz))),
             ("0 <= %s < %s" % (names[1], inside), (plain >= 0) & (plain < minor))]
    for text, holds in rules:
        if not holds.all():
            raise RuntimeError("`%s` is not satisfied." % text)
    if order and not _is_sorted(compressed, plain):
        raise RuntimeError("`%s[..., %s[..., i - 1]:%s[..., i]] for all i = 1, ..., n%s are sorted and distinct along the "
                           "last dimension values` is not satisfied." % (
                               names[1], names[0], names[0], "rows" if lines == "rows" else "cols"))


def size_of(layout, compressed, plain, values):
    """The least size that holds the parts."""
    cls, batch = LAYOUTS[layout], plain.dim() - 1
    _check_values(cls, batch, values)
    block = tuple(values.shape[batch + 1:batch + 3]) if cls._blocks else (1, 1)
    inside = plain.max().item() + 1 if plain.numel() else 0
    sides = (compressed.shape[-1] - 1, inside) if cls._names is _ROWS else (inside, compressed.shape[-1] - 1)
    return (*plain.shape[:-1], sides[0] * block[0], sides[1] * block[1], *values.shape[batch + 1 + 2 * cls._blocks:])
