# SPDX-License-Identifier: MIT
"""A tensor of which a mask says what counts: True means that an element does.

A masked tensor is a shell (a tensor with sizes and no memory) around `data` and `mask`. Its operators are written with operators
on the two, above autograd, so that gradients of the data come about as for any other program. An elementwise operator is
known by the tag of its declaration; what moves elements moves both; reductions are those of `tenon.masked`. Data and mask may
both be sparse, with the same indices: elementwise operators then work on the values, reductions on the dense tensor."""
import tenon
from tenon import _C
from tenon.autograd._in_parts import InParts
from tenon.nested._internal.nested_tensor import _is_elementwise

__all__ = ["MaskedTensor", "is_masked_tensor"]


def is_masked_tensor(obj, /):
    return isinstance(obj, MaskedTensor)


_COMPRESSED = {tenon.sparse_coo: ("indices",), tenon.sparse_csr: ("crow_indices", "col_indices")}


def _check(data, mask):
    """The two as they are kept, sparse ones coalesced and with the same places; or an error."""
    if is_masked_tensor(data) or not isinstance(data, tenon.Tensor):
        raise TypeError("data must be a Tensor")
    if is_masked_tensor(mask) or not isinstance(mask, tenon.Tensor):
        raise TypeError("mask must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout != tenon.strided and data.layout not in _COMPRESSED:
        raise TypeError("data layout of %s is not supported." % data.layout)
    if mask.dtype != tenon.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")
    if data.layout == tenon.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout in _COMPRESSED:
        if data._nnz() != mask._nnz():
            data = _at_places_of(mask, data.to_dense())
        if not all(tenon.equal(getattr(data, part)(), getattr(mask, part)()) for part in _COMPRESSED[data.layout]):
            raise ValueError("data and mask are both sparse COO tensors but do not have the same indices."
                             if data.layout == tenon.sparse_coo else
                             "data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    return data, mask


def _with_values(sparse, values):
    """A sparse tensor with the places of another one."""
    parts = [getattr(sparse, part)() for part in _COMPRESSED[sparse.layout]]
    if sparse.layout == tenon.sparse_csr:
        return tenon.sparse_csr_tensor(*parts, values, sparse.shape)
    return tenon.sparse_coo_tensor(*parts, values, sparse.shape, is_coalesced=True)


def _at_places_of(sparse, dense):
    """A sparse tensor with the elements of a dense one at the places of another sparse one."""
    if sparse.layout == tenon.sparse_coo:
        return _with_values(sparse, dense[tuple(sparse.indices())])
    rows = tenon.repeat_interleave(tenon.arange(len(dense)), sparse.crow_indices().diff())
    return _with_values(sparse, dense[rows, sparse.col_indices()])


class MaskedTensor(InParts, tenon.Tensor):
    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        data, mask = _check(data, mask)
        return cls._of(data.detach().clone().requires_grad_(requires_grad), mask.detach().clone())

    def __init__(self, data, mask, requires_grad=False):
        pass

    @classmethod
    def _of(cls, data, mask):
        strides = data.stride() if data.layout == tenon.strided else None
        made = tenon.Tensor._make_wrapper_subclass(MaskedTensor, tuple(data.shape), strides=strides, dtype=data.dtype,
                                                   device=data.device)
        made._masked_data, made._masked_mask = data, mask
        return made

    @staticmethod
    def _from_values(data, mask):
        return MaskedTensor._of(*_check(data, mask))

    @classmethod
    def unary(cls, fn, data, mask):
        return MaskedTensor(fn(data), mask)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **kwargs)
        if name in _MOVES:
            args = [_dense(a) for a in args]
            return _moved(func, args, kwargs)
        if _is_elementwise(name) or name in _SAME_PLACE:
            return _elementwise(func, args, kwargs)
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        name = func._opname
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **(kwargs or {}))
        if _is_elementwise(name) or name in _SAME_PLACE:
            return _elementwise(func, args, kwargs or {})
        raise TypeError("Multiple dispatch failed for 'torch._ops.%s'; all __torch_dispatch__ handlers returned NotImplemented: "
                        "masked tensors have no implementation of it" % str(func).replace("::", "."))

    def __tensor_flatten__(self):
        return ["_masked_data", "_masked_mask"], None

    @staticmethod
    def __tensor_unflatten__(parts, nothing, outer_size, outer_stride):
        return MaskedTensor._of(parts["_masked_data"], parts["_masked_mask"])

    # ---- history: that of the data ----

    requires_grad = property(lambda self: self._masked_data.requires_grad, lambda self, on: self._masked_data.requires_grad_(on))
    is_leaf = property(lambda self: self._masked_data.is_leaf)
    grad_fn = property(lambda self: self._masked_data.grad_fn)
    T = property(lambda self: _moved(lambda t: t.T, (self,), {}))
    mT = property(lambda self: _moved(lambda t: t.mT, (self,), {}))

    def _history_parts(self):
        return (self._masked_data,)

    def _gradient_from(self, grads):
        return MaskedTensor._of(grads[0], self._masked_mask)

    def _gradient_to(self, grad):
        return (getattr(grad, "_masked_data", grad),)

    def requires_grad_(self, requires_grad=True):
        self._masked_data.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        grad = self._masked_data.grad
        return None if grad is None else MaskedTensor._of(grad, self._masked_mask)

    @grad.setter
    def grad(self, value):
        self._masked_data.grad = None if value is None else getattr(value, "_masked_data", value)

    # ---- layouts ----

    layout = property(lambda self: self._masked_data.layout)
    is_sparse = property(lambda self: self.layout in _COMPRESSED)

    def is_sparse_coo(self):
        return self.layout == tenon.sparse_coo

    def is_sparse_csr(self):
        return self.layout == tenon.sparse_csr

    def to_dense(self, dtype=None, *, masked_grad=None):
        data = self._masked_data if self.layout == tenon.strided else self._masked_data.to_dense()
        mask = self._masked_mask if self.layout == tenon.strided else self._masked_mask.to_dense()
        return MaskedTensor._of(data if dtype is None else data.to(dtype), mask)

    def to_sparse_coo(self):
        """Data and mask with the places where the mask is True alone."""
        return _compressed(self, tenon.Tensor.to_sparse, tenon.sparse_coo)

    def to_sparse_csr(self, dense_dim=None):
        return _compressed(self, tenon.Tensor.to_sparse_csr, tenon.sparse_csr)

    def to_sparse(self, *args, layout=None, **kwargs):
        return self.to_sparse_csr() if layout == tenon.sparse_csr else self.to_sparse_coo()

    # ---- parts ----

    def get_data(self):
        return self._masked_data

    def get_mask(self):
        return self._masked_mask

    def to_tensor(self, value):
        """An ordinary tensor, with `value` where the mask is False."""
        dense = _dense(self)
        return dense._masked_data.masked_fill(~dense._masked_mask, value)

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *args, **kwargs):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def item(self):
        return self._masked_data.item()

    def __bool__(self):
        return bool(self._masked_data)

    def __len__(self):
        return len(self._masked_data)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self, *, tensor_contents=None):
        if self.dim() == 0:
            shown = self._masked_mask.item()
            return "MaskedTensor(%s, %s)" % (_text(self._masked_data.item()) if shown else "--", shown)
        dense = _dense(self)
        return "MaskedTensor(\n%s\n)" % _lines(dense._masked_data.tolist(), dense._masked_mask.tolist(), 1)

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        return MaskedTensor._from_values, (self._masked_data, self._masked_mask)


def _text(value):
    return "%8.4f" % value if isinstance(value, float) else str(value)


def _lines(data, mask, depth):
    pad = "  " * depth
    if not data or not isinstance(data[0], list):
        texts = [_text(d) if m else None for d, m in zip(data, mask)]
        width = max((8 if t is None else len(t) for t in texts), default=0)
        return "%s[%s]" % (pad, ", ".join("--".rjust(width) if t is None else t for t in texts))
    return "%s[\n%s\n%s]" % (pad, ",\n".join(_lines(d, m, depth + 1) for d, m in zip(data, mask)), pad)


# ---- elementwise, and what moves elements ----

def _data(a):
    if isinstance(a, (list, tuple)):
        return type(a)([_data(x) for x in a])
    return a._masked_data if isinstance(a, MaskedTensor) else a


def _mask(a):
    if isinstance(a, (list, tuple)):
        return type(a)([_mask(x) for x in a])
    return a._masked_mask if isinstance(a, MaskedTensor) else a


def _dense(a):
    return a.to_dense() if isinstance(a, MaskedTensor) and a.layout in _COMPRESSED else a


def _compressed(masked, convert, layout):
    if masked.layout == layout:
        return masked
    masked = _dense(masked)
    mask = convert(masked._masked_mask)
    mask = mask.coalesce() if layout == tenon.sparse_coo else mask
    return MaskedTensor._of(_at_places_of(mask, masked._masked_data), mask)


def _values(a):
    return a._masked_data.values() if isinstance(a, MaskedTensor) else a


def _same_masks(a, b):
    if a.layout != b.layout:
        raise ValueError("`a` and `b` must have the same layout. Got %s and %s" % (a.layout, b.layout))
    if a.layout == tenon.strided:
        return tenon.equal(a._masked_mask, b._masked_mask)
    return all(tenon.equal(getattr(a._masked_mask, part)(), getattr(b._masked_mask, part)())
               for part in (*_COMPRESSED[a.layout], "values"))


def _elementwise(func, args, kwargs):
    masked = [a for a in [*args, *kwargs.values()] if isinstance(a, MaskedTensor)]
    first = masked[0]
    for other in masked[1:]:
        if not _same_masks(first, other):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    if first.layout in _COMPRESSED:
        plain = [a for a in [*args, *kwargs.values()] if isinstance(a, tenon.Tensor) and not isinstance(a, MaskedTensor) and a.dim()]
        if plain:
            raise TypeError("an operator on a sparse MaskedTensor takes other masked tensors and numbers, not a Tensor")
        version = first._masked_data.values()._version
        values = func(*[_values(a) for a in args], **{k: _values(a) for k, a in kwargs.items()})
        if first._masked_data.values()._version != version:  # written in place
            return first
        return MaskedTensor._of(_with_values(first._masked_data, values), first._masked_mask)
    out = func(*[_data(a) for a in args], **{k: _data(a) for k, a in kwargs.items()})
    if out is first._masked_data:  # written in place
        return first
    return MaskedTensor._of(out, first._masked_mask.expand(out.shape))


def _moved(func, args, kwargs):
    data = func(*[_data(a) for a in args], **{k: _data(a) for k, a in kwargs.items()})
    mask = func(*[_mask(a) for a in args], **{k: _mask(a) for k, a in kwargs.items()})
    if isinstance(data, (tuple, list)):
        return type(data)([MaskedTensor._of(d, m) for d, m in zip(data, mask)])
    return MaskedTensor._of(data, mask)


# What goes to other places, the mask with the data; and what makes a copy in place.
_MOVES = frozenset("""__getitem__ transpose t permute reshape view expand expand_as unsqueeze squeeze flatten unflatten select narrow
                      split chunk unbind cat concat stack movedim swapaxes contiguous view_as reshape_as index_select flip roll
                      repeat tile""".split())
_SAME_PLACE = frozenset("""clone detach to half float double bfloat16 int long short bool ones_like zeros_like empty_like
                           full_like rand_like randn_like to_dense type_as cpu""".split())


# ---- reductions ----

def _counts(mask, dim, keepdim):
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return mask.any()
    for d in sorted((d % mask.dim() for d in (dim if isinstance(dim, (tuple, list)) else (dim,))), reverse=True):
        mask = mask.any(d, keepdim)
    return mask


def _reduction(name):
    def reduce(x, dim=None, keepdim=False, **kwargs):
        x = _dense(x)
        data, mask = x._masked_data, x._masked_mask
        if name in ("var", "std"):
            kwargs.setdefault("unbiased", True)
        out = getattr(tenon.masked, name)(data, dim, keepdim=keepdim, mask=mask, **kwargs)
        if name in ("argmax", "argmin"):
            out = out.to(data.dtype)
        return MaskedTensor._of(out, _counts(mask, dim, keepdim))
    return reduce


def _truth(name):
    def reduce(x, dim=None, keepdim=False):
        data = x.to_tensor(name == "all")
        out = getattr(data, name)() if dim is None else getattr(data, name)(dim, keepdim)
        return MaskedTensor._of(out, _counts(_dense(x)._masked_mask, dim, keepdim))
    return reduce


def _along(name):
    def compute(x, dim=None, *args, dtype=None, **kwargs):
        x = _dense(x)
        return MaskedTensor._of(getattr(tenon.masked, name)(x._masked_data, dim, dtype=dtype, mask=x._masked_mask),
                                x._masked_mask)
    return compute


def _where(*args):
    if len(args) != 3:
        raise ValueError("__torch_function__, torch.where: len(args) must be 3 but got %d" % len(args))
    condition, *both = map(_dense, args)
    condition = _data(condition)
    masks = [x._masked_mask if isinstance(x, MaskedTensor) else tenon.ones((), dtype=tenon.bool) for x in both]
    data = tenon.where(condition, *map(_data, both))
    return MaskedTensor._of(data, tenon.where(condition, *masks).expand(data.shape))


FUNCTIONS = {"where": _where, "all": _truth("all"), "any": _truth("any")}
for _name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std"):
    FUNCTIONS[_name] = _reduction(_name)
for _name in ("softmax", "log_softmax", "softmin", "cumsum", "cumprod"):
    FUNCTIONS[_name] = _along(_name)
