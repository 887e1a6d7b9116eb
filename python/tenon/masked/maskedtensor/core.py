# SPDX-License-Identifier: MIT
"""A tensor of which a mask says what counts: True means that an element does.

A masked tensor is a shell (a tensor with sizes and no memory) around `data` and `mask`. Its operators are written with operators
on the two, above autograd, so that gradients of the data come about as for any other program. An elementwise operator is
known by the tag of its declaration; what moves elements moves both; reductions are those of `tenon.masked`."""
import tenon
from tenon import _C
from tenon.nested._internal.nested_tensor import _is_elementwise

__all__ = ["MaskedTensor", "is_masked_tensor"]


def is_masked_tensor(obj, /):
    return isinstance(obj, MaskedTensor)


def _check(data, mask):
    if not isinstance(data, tenon.Tensor):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, tenon.Tensor):
        raise TypeError("mask must be a Tensor")
    if mask.dtype != tenon.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


class MaskedTensor(tenon.Tensor):
    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        return cls._of(data.detach().clone().requires_grad_(requires_grad), mask.detach().clone())

    def __init__(self, data, mask, requires_grad=False):
        pass

    @classmethod
    def _of(cls, data, mask):
        made = tenon.Tensor._make_wrapper_subclass(MaskedTensor, tuple(data.shape), strides=data.stride(), dtype=data.dtype,
                                                   device=data.device)
        made._masked_data, made._masked_mask = data, mask
        return made

    @staticmethod
    def _from_values(data, mask):
        _check(data, mask)
        return MaskedTensor._of(data, mask)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **kwargs)
        if name in _MOVES:
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

    # ---- parts ----

    def get_data(self):
        return self._masked_data

    def get_mask(self):
        return self._masked_mask

    def to_tensor(self, value):
        """An ordinary tensor, with `value` where the mask is False."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *args, **kwargs):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def item(self):
        return self._masked_data.item()

    def backward(self, gradient=None, *args, **kwargs):
        self._masked_data.backward(getattr(gradient, "_masked_data", gradient), *args, **kwargs)

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
        return "MaskedTensor(\n%s\n)" % _lines(self._masked_data.tolist(), self._masked_mask.tolist(), 1)

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        return MaskedTensor._from_values, (self._masked_data, self._masked_mask)


def _text(value):
    return "%8.4f" % value if isinstance(value, float) else str(value)


def _lines(data, mask, depth):
    pad = "  " * depth
    if not data or not isinstance(data[0], list):
        return "%s[%s]" % (pad, ", ".join(_text(d) if m else "      --" for d, m in zip(data, mask)))
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


def _elementwise(func, args, kwargs):
    masked = [a for a in [*args, *kwargs.values()] if isinstance(a, MaskedTensor)]
    first = masked[0]
    for other in masked[1:]:
        if not tenon.equal(first._masked_mask, other._masked_mask):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
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
        return MaskedTensor._of(out, _counts(x._masked_mask, dim, keepdim))
    return reduce


def _along(name):
    def compute(x, dim=None, *args, dtype=None, **kwargs):
        return MaskedTensor._of(getattr(tenon.masked, name)(x._masked_data, dim, dtype=dtype, mask=x._masked_mask),
                                x._masked_mask)
    return compute


def _where(condition, input, other):
    if not (isinstance(input, MaskedTensor) and isinstance(other, MaskedTensor)):
        raise ValueError("where: expected two masked tensors")
    condition = _data(condition)
    return MaskedTensor._of(tenon.where(condition, input._masked_data, other._masked_data),
                            tenon.where(condition, input._masked_mask, other._masked_mask))


FUNCTIONS = {"where": _where, "all": _truth("all"), "any": _truth("any")}
for _name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std"):
    FUNCTIONS[_name] = _reduction(_name)
for _name in ("softmax", "log_softmax", "cumsum", "cumprod"):
    FUNCTIONS[_name] = _along(_name)
