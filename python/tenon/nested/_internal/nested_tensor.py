# SPDX-License-Identifier: MIT
"""The jagged layout: sizes (B, j, …), of which j differs from one to the next.

A nested tensor is a shell (a tensor with sizes and no memory) around `values`, in which the batch and the ragged dimension are
one, and `offsets`. Its operators are written with operators on the values, above autograd: gradients of the values, and
of what they were made from, come about as for any other program. An elementwise operator is known by the tag of its
declaration; the others are in FUNCTIONS."""
import functools

import tenon
from tenon import _C
from tenon.autograd._in_parts import InParts

_count = 0


class RaggedInt(int):
    """The size of a ragged dimension: it is equal to itself alone. `lengths` are the sizes that it stands for."""

    def __repr__(self):
        return "j%d" % (int(self) - (1 << 40))

    __str__ = __repr__

    def __format__(self, spec):
        return repr(self)


def ragged_of(lengths):
    global _count
    _count += 1
    made = RaggedInt((1 << 40) + _count)
    made.lengths = [int(n) for n in lengths]
    return made


class NestedTensor(InParts, tenon.Tensor):
    """What ``tenon.nested.nested_tensor(…, layout=tenon.jagged)`` makes."""

    is_nested = True
    layout = tenon.jagged

    @staticmethod
    def _of(values, offsets, lengths, ragged_idx, ragged):
        outer = list(values.shape)
        outer[ragged_idx - 1] = max(ragged.lengths, default=0)
        made = tenon.Tensor._make_wrapper_subclass(NestedTensor, (len(ragged.lengths), *outer), dtype=values.dtype,
                                                   device=values.device)
        made._v, made._offsets, made._lengths, made._ragged_idx, made._ragged = values, offsets, lengths, ragged_idx, ragged
        return made

    def _with(self, values, ragged_idx=None):
        """The same lengths with other values."""
        return NestedTensor._of(values, self._offsets, self._lengths, ragged_idx or self._ragged_idx, self._ragged)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        handler = FUNCTIONS.get(name)
        if handler is not None:
            return handler(*args, **kwargs)
        if _is_elementwise(name):
            return _elementwise(func, args, kwargs)
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        handler = FUNCTIONS.get(func._opname)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        if _is_elementwise(func._opname):
            return _elementwise(func, args, kwargs or {})
        raise NotImplementedError("%s: nested tensors of the jagged layout have no implementation of it" % func.name())

    def __tensor_flatten__(self):
        return ["_v", "_offsets"], (self._lengths, self._ragged_idx, self._ragged)

    @staticmethod
    def __tensor_unflatten__(parts, rest, outer_size, outer_stride):
        return NestedTensor._of(parts["_v"], parts["_offsets"], *rest)

    # ---- history: that of the values ----

    requires_grad = property(lambda self: self._v.requires_grad, lambda self, on: self._v.requires_grad_(on))
    is_leaf = property(lambda self: self._v.is_leaf)
    grad_fn = property(lambda self: self._v.grad_fn)
    data = property(lambda self: self._with(self._v.detach()))

    def requires_grad_(self, requires_grad=True):
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        return None if self._v.grad is None else self._with(self._v.grad)

    @grad.setter
    def grad(self, value):
        self._v.grad = None if value is None else value._v

    def _history_parts(self):
        return (self._v,)

    def _gradient_from(self, grads):
        return self._with(grads[0])

    def _gradient_to(self, grad):
        if not isinstance(grad, NestedTensor) or grad.shape != self.shape or grad._ragged_idx != self._ragged_idx:
            raise RuntimeError("the gradient of a nested tensor of size %s cannot be a tensor of size %s"
                               % (tuple(self.shape), tuple(grad.shape)))
        return (grad._v,)

    # ---- sizes ----

    @property
    def shape(self):
        sizes = list(self._v.shape)
        sizes[self._ragged_idx - 1] = self._ragged
        return tenon.Size([len(self._ragged.lengths), *sizes])

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[_dim(self, dim)]

    def stride(self, dim=None):
        raise RuntimeError("a nested tensor has no strides: its values() have")

    def numel(self):
        return sum(self._ragged.lengths) * (self._v.numel() // max(self._v.shape[self._ragged_idx - 1], 1))

    nelement = numel

    def __len__(self):
        return len(self._ragged.lengths)

    def is_contiguous(self, memory_format=None):
        return self._lengths is None and self._v.is_contiguous()

    # ---- parts ----

    def values(self):
        return self._v

    def offsets(self):
        return self._offsets

    def lengths(self):
        return self._lengths

    def _max_seqlen(self):
        return max(self._ragged.lengths, default=0)

    def _min_seqlen(self):
        return min(self._ragged.lengths, default=0)

    def to_padded_tensor(self, padding, output_size=None):
        return _padded(self, padding, output_size)

    def __iter__(self):
        return iter(_unbind(self))

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *args, **kwargs):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __repr__(self, *, tensor_contents=None):
        history = ", grad_fn=<%s>" % type(self.grad_fn).__name__ if self.grad_fn is not None else ""
        if self.requires_grad and not history:
            history = ", requires_grad=True"
        return "NestedTensor(size=%s, offsets=%s%s, contiguous=%s)" % (tuple(self.shape), self._offsets, history,
                                                                       self.is_contiguous())

    __hash__ = tenon.Tensor.__hash__

    def __reduce_ex__(self, protocol):
        from tenon import _utils
        state = {"_offsets": self._offsets, "_lengths": self._lengths, "_ragged_idx": self._ragged_idx,
                 "_metadata_cache": {}}
        made = {"values": self._v.detach(), "offsets": self._offsets, "lengths": self._lengths,
                "_ragged_idx": self._ragged_idx, "_metadata_cache": {}, "requires_grad": self.requires_grad}
        state["_values"] = made["values"]
        return _utils._rebuild_from_type_v2, (_rebuild_njt, NestedTensor, (made,), state)

    def __setstate__(self, state):
        """Its parts made it: there is nothing else."""

    def __deepcopy__(self, memo):
        import copy
        return self._with(copy.deepcopy(self._v, memo))


def _rebuild_njt(parts):
    """What a pickle has of it, PyTorch's or ours: a dictionary of what it is made of. Nothing in it is believed."""
    from pickle import UnpicklingError

    from tenon.nested import nested_tensor_from_jagged
    values, offsets, lengths = parts.get("values"), parts.get("offsets"), parts.get("lengths")
    at = parts.get("_ragged_idx", 1)
    for part in (values, offsets) + (() if lengths is None else (lengths,)):
        if type(part) is not tenon.Tensor:
            raise UnpicklingError("a nested tensor of something else than tensors")
    if type(at) is not int or not 1 <= at <= values.dim() or offsets.dim() != 1 or offsets.shape[0] < 1 or any(
            p.dtype not in (tenon.int32, tenon.int64) for p in (offsets, lengths) if p is not None):
        raise UnpicklingError("a nested tensor of parts that do not fit each other")
    begins = offsets.tolist()
    counts = offsets.diff().tolist() if lengths is None else lengths.tolist()
    room = values.shape[at - 1]
    if len(counts) != len(begins) - 1 or any(not (0 <= b and 0 <= n and b + n <= room) for b, n in zip(begins, counts)):
        raise UnpicklingError("a nested tensor with parts outside of its values")
    made = nested_tensor_from_jagged(values, offsets, lengths, at)
    return made.requires_grad_() if parts.get("requires_grad") is True else made


def _dim(x, dim):
    n = x._v.dim() + 1
    if not -n <= dim < n:
        raise IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)" % (-n, n - 1, dim))
    return dim % n


def _dense_dim(name, x, dim):
    """A dimension of the values, which is neither the batch nor ragged."""
    d = _dim(x, dim)
    if d == 0 or d == x._ragged_idx:
        raise RuntimeError("%s(): not supported for NestedTensor on %s" % (name, "dim=0" if d == 0 else "ragged dim"))
    return d - 1


# ---- elementwise ----

_SYMBOLS = {"truediv": "div", "rtruediv": "div", "radd": "add", "rmul": "mul", "rpow": "pow", "and": "bitwise_and",
            "or": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not", "floordiv": "floor_divide", "mod": "remainder"}


@functools.lru_cache(None)
def _is_elementwise(name):
    """Whether an operator of this name is declared elementwise."""
    name = name.strip("_")
    packet = getattr(tenon.ops.aten, _SYMBOLS.get(name, name), None)
    if packet is None:
        return False
    return any(tag.name == "pointwise" for o in packet.overloads() for tag in getattr(packet, o).tags)


def _beside(func, x, other):
    """A dense tensor as it stands beside the values of a nested one."""
    below = x._v.dim() - x._ragged_idx  # dimensions behind the ragged one
    if other.dim() <= below or other.numel() == 1 and other.dim() <= x._v.dim():
        return other
    sizes, n = tuple(other.shape), x._v.dim() + 1
    if len(sizes) == n and sizes[x._ragged_idx] == 1 and sizes[0] in (1, len(x)):
        flat = other.select(x._ragged_idx, 0)
        if sizes[0] == 1:
            return flat.movedim(0, x._ragged_idx - 1)
        rows = flat.repeat_interleave(tenon.tensor(_steps(x)), 0)
        return rows.movedim(0, x._ragged_idx - 1)
    if len(sizes) == n and sizes[0] == len(x) and sizes[x._ragged_idx] == x._max_seqlen() and x._lengths is None:
        return _packed(x, other)
    raise RuntimeError("cannot call binary pointwise function %s with inputs of shapes %s and %s"
                       % (getattr(func, "__name__", func).strip("_") + ".Tensor", x.shape, other.shape))


def _steps(x):
    """How many places of the values each of the batch has."""
    return x._offsets.diff().tolist()


def _elementwise(func, args, kwargs):
    nested = [a for a in [*args, *kwargs.values()] if isinstance(a, NestedTensor)]
    x = nested[0]
    for y in nested[1:]:
        if y._ragged != x._ragged or y._ragged_idx != x._ragged_idx or len(y._v.shape) != len(x._v.shape):
            raise RuntimeError("cannot call binary pointwise function %s with inputs of shapes %s and %s"
                               % (getattr(func, "__name__", str(func)).strip("_") + ".Tensor", tuple(x.shape), tuple(y.shape)))

    def value(a):
        if isinstance(a, NestedTensor):
            return a._v
        return _beside(func, x, a) if isinstance(a, tenon.Tensor) else a
    out = func(*[value(a) for a in args], **{k: value(a) for k, a in kwargs.items()})
    if out is x._v:  # written in place
        return x
    return x._with(out)


# ---- dense and back ----

def _places(x):
    """Of each entry along the ragged dimension: its row in the batch, its place in the row, its place in the values."""
    lengths = tenon.tensor(x._ragged.lengths, dtype=tenon.int64)
    row = tenon.arange(len(x)).repeat_interleave(lengths)
    place = tenon.arange(row.numel()) - tenon.nn.functional.pad(lengths.cumsum(0), (1, 0))[:-1].repeat_interleave(lengths)
    return row, place, x._offsets[:-1][row] + place


def _padded(x, padding, output_size=None):
    at = x._ragged_idx
    row, place, source = _places(x)
    values = x._v.movedim(at - 1, 0)[source]
    room = x._max_seqlen()
    if output_size is not None:
        sizes = tuple(output_size)
        if len(sizes) != x._v.dim() + 1 or sizes[at] < room:
            raise RuntimeError("to_padded_tensor(): output_size %s is too small for %s" % (list(sizes), tuple(x.shape)))
        room = sizes[at]
    out = tenon.full((len(x), room, *values.shape[1:]), padding, dtype=values.dtype, device=values.device)
    return out.index_put((row, place), values).movedim(1, at)


def _packed(x, dense):
    """A dense tensor's entries where `x` has some, as values."""
    row, place, source = _places(x)
    return dense.movedim(x._ragged_idx, 1)[row, place].movedim(0, x._ragged_idx - 1)


def _unbind(x, dim=0):
    if _dim(x, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    starts = x._offsets.tolist()
    return tuple(x._v.narrow(x._ragged_idx - 1, s, n) for s, n in zip(starts, x._ragged.lengths))


def _select(x, dim, index):
    if _dim(x, dim) == 0:
        return _unbind(x)[index]
    d = _dense_dim("select", x, dim)
    return x._with(x._v.select(d, index), x._ragged_idx - (d < x._ragged_idx - 1))


def _getitem(x, index):
    if isinstance(index, int):
        return _unbind(x)[index]
    if isinstance(index, tuple) and index and isinstance(index[0], int):
        return _unbind(x)[index[0]][index[1:]]
    if isinstance(index, tuple) and index and all(i == slice(None) for i in index[:x._ragged_idx + 1]):
        return x._with(x._v[index[1:]])
    if isinstance(index, tuple) and index and index[0] is Ellipsis:
        return x._with(x._v[index])
    raise RuntimeError("a nested tensor is indexed by a number, or behind its ragged dimension")


# ---- along a dimension ----

def _reduction(name, padding):
    def reduce(x, dim=None, keepdim=False, **kwargs):
        whole = _unbind(x)
        if dim is None or (isinstance(dim, (tuple, list)) and not dim):
            parts = x._v if x._lengths is None else tenon.cat([p.flatten() for p in whole])
            return getattr(tenon.Tensor, name)(parts, **kwargs)
        dims = sorted(_dim(x, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
        if x._ragged_idx in dims:
            if name == "mean":
                total = _reduction("sum", 0)(x, dims, keepdim, **kwargs)
                count = tenon.tensor(x._ragged.lengths, dtype=total.dtype)
                other = 1
                for d in dims:
                    other *= x._v.shape[d - 1] if d not in (0, x._ragged_idx) else 1
                if 0 in dims:
                    return total / (count.sum() * other)
                return total / (count * other).reshape([-1] + [1] * (total.dim() - 1))
            return getattr(tenon.Tensor, name)(_padded(x, padding(x._v) if callable(padding) else padding), dims, keepdim, **kwargs)
        if 0 in dims:
            raise RuntimeError("%s(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
                               "tensors" % name)
        out = getattr(tenon.Tensor, name)(x._v, [d - 1 for d in dims], keepdim, **kwargs)
        before = 0 if keepdim else sum(d < x._ragged_idx for d in dims)
        return x._with(out, x._ragged_idx - before)
    return reduce


def _extreme(name):
    def reduce(x, dim=None, keepdim=False):
        if dim is None:
            return getattr(x._v, name)()
        return getattr(_padded(x, -tenon.inf if name == "max" else tenon.inf), name)(_dim(x, dim), keepdim)
    return reduce


def _along(name):
    """softmax and its kin: along the ragged dimension each of the batch for itself."""
    def compute(x, dim=None, *args, **kwargs):
        d = _dim(x, dim)
        if d == 0:
            raise RuntimeError("%s(): not supported when dim=0 for NestedTensor" % name)
        kwargs.pop("_stacklevel", None)
        args = args[1:] if args and isinstance(args[0], int) and not isinstance(args[0], bool) else args  # F's _stacklevel
        if d != x._ragged_idx:
            return x._with(getattr(tenon, name)(x._v, d - 1, *args, **kwargs))
        return x._with(_packed(x, getattr(tenon, name)(_padded(x, -tenon.inf), d, *args, **kwargs)))
    return compute


def _transpose(x, dim0, dim1):
    a, b = _dim(x, dim0), _dim(x, dim1)
    if 0 in (a, b) and a != b:
        raise RuntimeError("transpose(): not supported for NestedTensor on dim=0")
    at = {a: b, b: a}.get(x._ragged_idx, x._ragged_idx)
    return x._with(x._v.transpose(a - 1, b - 1) if a != b else x._v, at)


def _unsqueeze(x, dim):
    n = x._v.dim() + 1
    d = dim + n + 1 if dim < 0 else dim
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return x._with(x._v.unsqueeze(d - 1), x._ragged_idx + (d <= x._ragged_idx))


def _squeeze(x, dim):
    d = _dim(x, dim)
    if d in (0, x._ragged_idx):
        raise RuntimeError("squeeze(): not supported for NestedTensor on %s" % ("dim=0" if d == 0 else "ragged dim"))
    gone = x._v.shape[d - 1] == 1 and d < x._ragged_idx
    return x._with(x._v.squeeze(d - 1), x._ragged_idx - gone)


def _flatten(x, start_dim=0, end_dim=-1):
    a, b = _dim(x, start_dim), _dim(x, end_dim)
    if a == b:
        return x
    if a <= x._ragged_idx <= b:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return x._with(x._v.flatten(a - 1, b - 1), x._ragged_idx - (b - a) * (b < x._ragged_idx))


def _unflatten(x, dim, sizes):
    d = _dense_dim("unflatten", x, dim)
    return x._with(x._v.unflatten(d, sizes), x._ragged_idx + (len(sizes) - 1) * (d + 1 < x._ragged_idx))


def _view(x, *sizes):
    sizes = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)
    found = [i for i, n in enumerate(sizes) if isinstance(n, RaggedInt)]
    if not found and x._ragged_idx < len(sizes) and sizes[x._ragged_idx] == -1:
        found = [x._ragged_idx]
    if sizes[:1] not in ([len(x)], [-1]) or len(found) != 1 or (
            isinstance(sizes[found[0]], RaggedInt) and sizes[found[0]] != x._ragged):
        raise RuntimeError("view(): cannot view a nested tensor of shape %s as %s" % (tuple(x.shape), sizes))
    at = found[0]
    inner = sizes[1:]
    inner[at - 1] = x._v.shape[x._ragged_idx - 1]
    return x._with(x._v.reshape(inner), at)


def _chunks(name):
    def cut(x, sizes, dim=0):
        if _dim(x, dim) == 0 and name == "chunk":
            parts = _unbind(x)
            each = -(-len(parts) // sizes)
            from tenon.nested import as_nested_tensor
            return tuple(as_nested_tensor(list(parts[i:i + each]), layout=tenon.jagged) for i in range(0, len(parts), each))
        return tuple(x._with(v) for v in getattr(x._v, name)(sizes, _dense_dim(name, x, dim)))
    return cut


def _cat(tensors, dim=0, **kwargs):
    x = next(t for t in tensors if isinstance(t, NestedTensor))
    if _dim(x, dim) == 0:
        from tenon.nested import as_nested_tensor
        return as_nested_tensor([p for t in tensors for p in t.unbind()], layout=tenon.jagged)
    d = _dense_dim("cat", x, dim)
    if any(not isinstance(t, NestedTensor) or t._ragged != x._ragged for t in tensors):
        raise RuntimeError("cat(): expected nested tensors of one ragged structure")
    return x._with(tenon.cat([t._v for t in tensors], d))


# ---- products ----

def _matmul(x, other):
    if isinstance(x, NestedTensor) and not isinstance(other, NestedTensor) and x._ragged_idx != x._v.dim():
        if other.dim() <= 2:
            return x._with(x._v.matmul(other))
        if other.shape[0] == len(x) and other.dim() == x._v.dim() + 1:
            return x._with(_packed(x, _padded(x, 0).matmul(other)))
    if isinstance(x, NestedTensor) and isinstance(other, NestedTensor) and x._ragged == other._ragged:
        parts = [a.matmul(b) for a, b in zip(_unbind(x), _unbind(other))]
        if x._ragged_idx == x._v.dim() and other._ragged_idx == other._v.dim() - 1:  # the ragged dimension is summed over
            return tenon.stack(parts)
    raise RuntimeError("matmul(): not supported between inputs of shapes %s and %s" % (tuple(x.shape), tuple(other.shape)))


def _rowwise(name):
    """Operators that work behind the ragged dimension: the values are as good as a batch."""
    def compute(x, *args, **kwargs):
        if x._ragged_idx == x._v.dim() and name != "embedding":
            raise RuntimeError("%s(): not supported for NestedTensor on ragged dim" % name)
        return x._with(getattr(tenon.nn.functional, name)(x._v, *args, **kwargs))
    return compute


def _embedding(input, weight, *args, **kwargs):
    if isinstance(weight, NestedTensor):  # as the operator has them: weight first
        input, weight = weight, input
    return input._with(tenon.nn.functional.embedding(input._v, weight, *args, **kwargs))


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if not all(isinstance(x, NestedTensor) for x in (query, key, value)):
        raise ValueError("Expected query, key, and value to be nested tensors, but got query.is_nested: %s, key.is_nested: %s, "
                         "and value.is_nested: %s instead." % (query.is_nested, key.is_nested, value.is_nested))
    if not (query._ragged_idx == key._ragged_idx == value._ragged_idx == query._v.dim() - 1):
        raise RuntimeError("scaled_dot_product_attention: expected nested tensors of shape (batch, heads, ragged, size)")
    attend = tenon.nn.functional.scaled_dot_product_attention
    parts = [attend(q[None], k[None], v[None], None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
             for q, k, v in zip(_unbind(query), _unbind(key), _unbind(value))]
    lengths = query._ragged.lengths
    offsets = query._offsets if query._lengths is None else tenon.tensor([0] + lengths).cumsum(0)
    return NestedTensor._of(tenon.cat(parts, query._ragged_idx - 1), offsets, None, query._ragged_idx, query._ragged)


# ---- copies ----

def _copy(name):
    def make(x, *args, **kwargs):
        kwargs.pop("layout", None)
        return x._with(getattr(tenon.Tensor, name)(x._v, *args, **kwargs))
    return make


def _like(name):
    def make(x, *args, **kwargs):
        kwargs.pop("layout", None)
        return x._with(getattr(tenon, name)(x._v, *args, **kwargs))
    return make


def _contiguous(x, memory_format=None):
    if x._lengths is None:
        return x._with(x._v.contiguous())
    parts = tenon.cat(_unbind(x), x._ragged_idx - 1)
    return NestedTensor._of(parts, tenon.tensor([0] + x._ragged.lengths).cumsum(0), None, x._ragged_idx, x._ragged)


def _dropout(x, p=0.5, training=True, inplace=False):
    return x._with(tenon.nn.functional.dropout(x._v, p, training, inplace))


FUNCTIONS = {
    "unbind": _unbind, "select": _select, "__getitem__": _getitem, "transpose": _transpose, "unsqueeze": _unsqueeze,
    "squeeze": _squeeze, "flatten": _flatten, "unflatten": _unflatten, "view": _view, "reshape": _view, "cat": _cat,
    "concat": _cat, "matmul": _matmul, "__matmul__": _matmul, "bmm": _matmul, "embedding": _embedding,
    "scaled_dot_product_attention": _attention, "contiguous": _contiguous, "to_padded_tensor": _padded,
    "max": _extreme("max"), "min": _extreme("min"), "dropout": _dropout,
    "is_same_size": lambda x, y: x.shape == y.shape,
}
for _name in ("linear", "layer_norm", "rms_norm"):
    FUNCTIONS[_name] = _rowwise(_name)
for _name, _padding in (("sum", 0), ("mean", 0), ("prod", 1), ("amax", lambda v: -tenon.inf), ("amin", lambda v: tenon.inf),
                        ("any", False), ("all", True)):
    FUNCTIONS[_name] = _reduction(_name, _padding)
for _name in ("softmax", "log_softmax"):
    FUNCTIONS[_name] = _along(_name)
for _name in ("chunk", "split", "split_with_sizes"):
    FUNCTIONS[_name] = _chunks("split" if _name == "split_with_sizes" else _name)
for _name in ("clone", "detach", "to", "half", "float", "double", "bfloat16", "bool", "int", "long", "cpu", "type_as"):
    FUNCTIONS[_name] = _copy(_name)
for _name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"):
    FUNCTIONS[_name] = _like(_name)
