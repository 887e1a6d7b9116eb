# SPDX-License-Identifier: MIT
"""How operators work on all slices of a vmap at once. An operator without a rule here is called once a slice.

The batch is the first dimension of every whole. A rule gets the operator, its arguments with wholes in the place of
slices, and which of them these are; it returns wholes.
"""
import tenon
from tenon.utils import _pytree
from tenon.utils._mode_utils import no_dispatch
from ._batched import Batched, Unmapped, refused

aten = tenon.ops.aten


class Call:
    """One call at one level: its arguments by name, and the number of slices."""

    def __init__(self, func, args, kwargs):
        self.func, self.args = func, dict(zip(func._names, args))
        self.args.update(kwargs)
        innermost = None
        for v in self.args.values():
            for x in v if isinstance(v, (list, tuple)) else (v,):
                if isinstance(x, Batched) and (innermost is None or x.level.number > innermost.level.number):
                    innermost = x
        self.level, self.n = innermost.level, innermost.whole.shape[0]

    def maps(self, x):
        return isinstance(x, Batched) and x.level is self.level

    def whole(self, x):
        """All slices, also of what is the same for each."""
        return x.whole if self.maps(x) else x.expand((self.n,) + tuple(x.shape))

    def inner(self, x):
        """All slices, or what is the same for each as it is."""
        return x.whole if self.maps(x) else x

    def get(self, *names):
        return [self.args.get(name) for name in names]

    def run(self, /, **changed):
        """The operator with other arguments."""
        return self.func(**{**self.args, **changed})

    def result(self, made):
        if isinstance(made, tenon.Tensor):
            return Batched(made, self.level)
        return type(made)(Batched(x, self.level) if isinstance(x, tenon.Tensor) else x for x in made)


def _pad(whole, rank):
    """Ones behind the batch until a slice has this many dimensions."""
    lack = rank + 1 - whole.dim()
    return whole.view(whole.shape[:1] + (1,) * lack + whole.shape[1:]) if lack > 0 else whole


# ---- operators of elements

def _pointwise(c):
    tensors = {k: v for k, v in c.args.items() if isinstance(v, tenon.Tensor)}
    rank = max(t.dim() for t in tensors.values())
    inner = {k: _pad(c.inner(t), rank) if c.maps(t) else t for k, t in tensors.items()}
    made = c.run(**inner)
    if len({t.dtype for t in tensors.values()}) > 1 and any(c.maps(t) and t.dim() == 0 for t in tensors.values()):
        # A slice without dimensions counts less where dtypes meet than the row of all of them.
        made = made.to(c.run(**{k: tenon.empty((1,) * t.dim(), dtype=t.dtype, device="meta")
                                for k, t in tensors.items()}).dtype)
    return made


def _in_place(c):
    """An operator of elements that writes its first argument."""
    first = c.func._names[0]
    mine = c.args[first]
    if not c.maps(mine):
        raise Unmapped("vmap: inplace arithmetic on a tensor that is not mapped is not possible")
    rank, changed = mine.dim(), {}
    for k, v in c.args.items():
        if not isinstance(v, tenon.Tensor):
            continue
        more = max(v.dim() - rank, 0)
        if any(s != 1 for s in v.shape[:more]):  # they would be taken for the slices
            raise Unmapped("vmap: a slice does not grow as it is written")
        whole = c.inner(v)
        if more:
            whole = whole.reshape(whole.shape[:1] * c.maps(v) + v.shape[more:])
        changed[k] = _pad(whole, rank) if c.maps(v) else whole
    c.run(**changed)
    return None


def _alike(c):
    """Made like its argument."""
    changed = {"self": c.args["self"].whole}
    if c.args.get("memory_format") not in (None, tenon.preserve_format):
        changed["memory_format"] = tenon.contiguous_format
    return c.run(**changed)


# ---- dimensions

def _shift(d, rank):
    return d + 1 if d >= 0 else d


_DIMS = ("dim", "dim0", "dim1", "dim2", "dims")
_SIZES = ("size", "sizes", "input_sizes", "self_sizes")


def _dimensions(c):
    """Tensors of as many dimensions each, and arguments that name dimensions or sizes."""
    changed, rank = {}, None
    for k, v in c.args.items():
        if isinstance(v, tenon.Tensor):
            if rank is not None and v.dim() != rank:
                return _each(c)
            rank = v.dim()
            changed[k] = c.whole(v)
        elif isinstance(v, (list, tuple)) and v and isinstance(v[0], tenon.Tensor):
            rank = v[0].dim()
            if any(x.dim() != rank for x in v):
                return _each(c)
            changed[k] = [c.whole(x) for x in v]
    if rank == 0 and c.func in _KEEP_NONE:
        return c.args["self"].whole.view_as(c.args["self"].whole)
    if rank == 0 and c.func not in _ADD_ONE:
        return _each(c)
    names = c.func._names
    for k in _DIMS:
        if k not in names:
            continue
        v = c.args[k] if k in c.args else c.func._schema.arguments[names.index(k)].default_value
        if v is None or (isinstance(v, (list, tuple)) and not v):
            changed[k] = list(range(1, rank + 1))
        else:
            changed[k] = [_shift(d, rank) for d in v] if isinstance(v, (list, tuple)) else _shift(v, rank)
    for k in _SIZES:
        if k in c.args:
            changed[k] = [c.n] + list(c.args[k])
    return c.run(**changed)


_ADD_ONE = (aten.unsqueeze.default, aten.stack.default, aten.select_backward.default)  # take what has no dimension
_KEEP_NONE = (aten.transpose.int, aten.squeeze.dim, aten.squeeze.dims)  # and leave it so


def _flat(op, *more):
    """A reduction of everything: of all that stands behind the batch."""

    def rule(c):
        rest = {k: v for k, v in c.args.items() if k == "dtype"}
        whole = c.args["self"].whole
        return op(whole.reshape(c.n, -1), *more, **rest)
    return rule


def _view(c):
    whole, size = c.args["self"].whole, [c.n] + list(c.args["size"] if "size" in c.args else c.args["shape"])
    if c.func is not aten.view.default:
        return whole.reshape(size)
    try:
        return whole.view(size)
    except RuntimeError as error:  # each slice by itself may lie otherwise; a copy would not be written with it
        raise Unmapped(str(error)) from error


def _resize(c):
    raise Unmapped("vmap: a slice cannot be resized in its place among others")


def _expand(c):
    size = list(c.args["size"])
    return _pad(c.args["self"].whole, len(size)).expand([c.n] + size)


def _repeat(c):
    times = list(c.args["repeats"])
    return _pad(c.args["self"].whole, len(times)).repeat([1] + times)


def _permute(c):
    part = c.args["self"]
    return part.whole.permute([0] + [d % part.dim() + 1 for d in c.args["dims"]])


def _t(c):
    part = c.args["self"]
    return part.whole.transpose(1, 2) if part.dim() == 2 else part.whole.view_as(part.whole)


def _as_strided(c):
    """The same elements of every slice. Places are counted from the beginning of the memory, which gradients take for the
    first element of a slice: where it is not, a place cannot be named."""
    part, size, stride, offset = c.get("self", "size", "stride", "storage_offset")
    whole, start = part.whole, part.whole.storage_offset()
    first = start if offset is None else offset
    end = start + sum((s - 1) * d for s, d in zip(part.shape, whole.stride()[1:])) + 1
    last = first + sum((s - 1) * d for s, d in zip(size, stride)) + 1
    if 0 not in size and not start <= first <= last <= end:
        raise refused(RuntimeError(
            "result = tensor.as_strided(%s, %s, %d) can access memory outside of `tensor`. `result` can access some memory in "
            "range [%d, %d], but `tensor` can only access some memory in range [%d, %d]. This is not supported inside of "
            "vmap, please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
            % (list(size), list(stride), first, first, last, start, end)))
    if offset is not None and start:
        raise refused(RuntimeError("as_strided with a storage_offset is not supported inside of vmap for a tensor whose own is "
                                   "not 0 (%d), please try to rewrite it as a sequence of view operations" % start))
    return whole.as_strided([c.n] + list(size), [whole.stride(0)] + list(stride), offset)


def _squeeze(c):
    part = c.args["self"]
    return part.whole.view([c.n] + [s for s in part.shape if s != 1]) if part.whole.is_contiguous() else \
        part.whole.squeeze([d + 1 for d, s in enumerate(part.shape) if s == 1])


def _geometry(name, overload="default"):
    """An operator that changes how its argument is seen: so is what it holds, by the one that gives a new view."""
    view = getattr(getattr(aten, name), overload)

    def rule(c):
        part = c.args["self"]
        whole = _rule_of(view)(Call(view, tuple(c.args.values()), {}))
        with no_dispatch():
            c.func(**c.args)
        part.whole = whole
    return rule


def _new(c):
    return c.run(self=c.args["self"].whole, size=[c.n] + list(c.args["size"]))


def _new_strided(c):
    """Each slice has the strides that were asked for: views of it are found by them."""
    size, stride = list(c.args["size"]), list(c.args["stride"])
    room = 1 + sum((s - 1) * d for s, d in zip(size, stride)) if 0 not in size else 1
    return c.run(self=c.args["self"].whole, size=[c.n] + size, stride=[room] + stride)


def _behind(c):
    """An operator that leaves all dimensions but the last ones alone."""
    tensors = {k: v for k, v in c.args.items() if isinstance(v, tenon.Tensor)}
    if len({t.dim() for t in tensors.values()}) > 1:
        return _each(c)
    return c.run(**{k: c.whole(t) for k, t in tensors.items()})


def _index(c):
    part, places = c.get("self", "indices")
    places = list(places)
    used = [i for i, p in enumerate(places) if p is not None]
    if used != list(range(used[0], used[-1] + 1)) or not c.maps(part):
        return _each(c)
    if not any(c.maps(p) for p in places if p is not None):
        if any(p is not None and p.dtype in (tenon.bool, tenon.uint8) for p in places):
            return _each(c)
        return c.run(self=part.whole, indices=[None] + places)
    if used[0] != 0 or any(p.dtype in (tenon.bool, tenon.uint8) for p in places if p is not None):
        return _each(c)
    rank = max(p.dim() for p in places if p is not None)
    rows = tenon.arange(c.n, device=part.device).view([c.n] + [1] * rank)
    return c.run(self=part.whole, indices=[rows] + [_pad(c.inner(p), rank) if c.maps(p) else p for p in places
                                                    if p is not None])


def _index_select(c):
    part, dim, index = c.get("self", "dim", "index")
    if not c.maps(part) or c.maps(index) or part.dim() == 0:
        return _each(c)
    return c.run(self=part.whole, dim=_shift(dim, part.dim()))


def _index_add(c):
    part, dim, index, source = c.get("self", "dim", "index", "source")
    if c.maps(index) or index.dim() > 1 or max(part.dim(), source.dim()) > 1 and min(part.dim(), source.dim()) == 0:
        return _each(c)
    mine, theirs = c.whole(part), c.whole(source)
    # One number and a vector of one are the same here, as they are in the reference's rule.
    if source.dim() == 0:
        theirs = theirs.unsqueeze(-1)
    if part.dim() > 0:
        return c.run(self=mine, dim=_shift(dim, part.dim()), index=index.reshape(-1), source=theirs)
    return c.run(self=mine.unsqueeze(-1), dim=-1, index=index.reshape(-1), source=theirs).squeeze(-1)


def _index_add_in_place(c):
    return _index_add(c) if c.maps(c.args["self"]) else _each(c)


def _embedding(c):
    if c.maps(c.args["weight"]):
        return _each(c)
    return c.run(indices=c.args["indices"].whole)


# ---- products

def _rows(a, b):
    """(n, ..., k) times (k, m): one product of matrices."""
    return (a.reshape(-1, a.shape[-1]) @ b).view(a.shape[:-1] + (b.shape[1],))


def _mm(c, a=None, b=None):
    if a is None:
        a, b = c.get(*c.func._names[:2])
    if c.maps(a) and not c.maps(b):
        return _rows(a.whole, b)
    return tenon.matmul(c.inner(a), c.inner(b))


def _mv(c, a=None, x=None):
    if a is None:
        a, x = c.get(*c.func._names[:2])
    if not c.maps(a):
        return x.whole @ a.t()
    if not c.maps(x):
        return a.whole @ x
    return (a.whole @ x.whole.unsqueeze(2)).squeeze(2)


def _dot(c):
    a, b = (c.inner(v) for v in c.get(*c.func._names[:2]))
    return (a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1) if a.dim() == b.dim() == 2 else a @ b if a.dim() == 2 \
        else b @ a


def _bmm(c, a=None, b=None):
    if a is None:
        a, b = c.get(*c.func._names[:2])
    return tenon.matmul(c.inner(a), c.inner(b))


def _plus(product, first, second):
    """beta * self + alpha * product(first, second)"""
    def rule(c):
        bias, a, b = c.get("self", first, second)
        alpha, beta = c.args.get("alpha", 1), c.args.get("beta", 1)
        if c.maps(a) or c.maps(b):
            made, rank = product(c, a, b), c.args[first].dim() if product is not _mv else 1
        else:
            made, rank = (a @ b).unsqueeze(0), c.args[first].dim() if product is not _mv else 1
        bias = _pad(c.inner(bias), rank) if c.maps(bias) else bias
        if beta != 1:
            bias = bias * beta
        return tenon.add(bias, made, alpha=alpha) if beta != 0 else made * alpha
    return rule


def _of_matrices(rule, names, ranks):
    """The rule for factors of so many dimensions, which batched products do not ask for: the operator itself says what is wrong
    with others, slice by slice."""
    def checked(c):
        factors = c.get(*names)
        fits = tuple(f.dim() for f in factors) == ranks and (ranks != (3, 3) or factors[0].shape[0] == factors[1].shape[0])
        bias = c.args.get("self")
        if fits and bias is not None and "self" not in names:  # it is expanded, the product is not
            size = factors[0].shape[:-1] + factors[1].shape[ranks[1] - 1:] * (ranks[1] > 1)
            fits = bias.dim() <= len(size) and all(b in (1, s) for b, s in zip(reversed(bias.shape), reversed(size)))
        return rule(c) if fits else _each(c)
    return checked


# ---- layers

def _convolution(c):
    """A batch of batches for one set of weights; each set of weights has its own call."""
    part, weight, bias = c.get("input", "weight", "bias")
    if not c.maps(part) or c.maps(weight) or c.maps(bias) or part.dim() != weight.dim():
        return _each(c)
    return _unfold(c, c.run(input=part.whole.flatten(0, 1)), part.shape[0])


def _unfold(c, made, rows):
    if isinstance(made, tenon.Tensor):
        return made.view((c.n, rows) + tuple(made.shape[1:]))
    return tuple(_unfold(c, x, rows) for x in made)


def _images(rank):
    """A layer of images, or of batches of them."""
    def rule(c):
        tensors = {k: v for k, v in c.args.items() if isinstance(v, tenon.Tensor)}
        ranks = {t.dim() for t in tensors.values()}
        if ranks == {rank}:
            return c.run(**{k: c.whole(t) for k, t in tensors.items()})
        if ranks != {rank + 1}:
            return _each(c)
        rows = next(iter(tensors.values())).shape[0]
        return _unfold(c, c.run(**{k: c.whole(t).flatten(0, 1) for k, t in tensors.items()}), rows)
    return rule


def _layer_norm(c):
    part, weight, bias = c.get("input", "weight", "bias")
    if not c.maps(part) or c.maps(weight) or c.maps(bias):
        return _each(c)
    return c.run(input=part.whole)


def _reduced(made, reduction):
    if reduction == 0:
        return made
    flat = made.reshape(made.shape[0], -1)
    return flat.mean(1) if reduction == 1 else flat.sum(1)


def _mse(c):
    a, b = c.get("self", "target")
    if a.shape != b.shape:
        return _each(c)
    gap = c.inner(a) - c.inner(b)
    return _reduced(gap * gap, c.args.get("reduction", 1))


def _mse_backward(c):
    grad, a, b, reduction = c.get("grad_output", "self", "target", "reduction")
    if a.shape != b.shape or not (c.maps(a) or c.maps(b)):
        return _each(c)
    gap = c.inner(a) - c.inner(b)
    grad = _pad(c.inner(grad), a.dim()) if c.maps(grad) else grad
    return gap * (grad * (2 / max(a.numel(), 1) if reduction == 1 else 2))


# ---- what has no rule

def _each(c):
    """One call a slice."""
    written = [a.name for a in c.func._schema.arguments if a.is_write]
    if any(not c.maps(c.args[k]) for k in written if k in c.args):
        raise Unmapped("vmap: %s writes a tensor that is not mapped" % c.func)
    if not written and any(r.alias_info is not None for r in c.func._schema.returns):
        raise Unmapped("vmap: what is written through %s would be lost" % c.func)  # slices are put together by copying
    flat, spec = _pytree.tree_flatten(c.args)
    at = [i for i, x in enumerate(flat) if c.maps(x)]
    columns = {i: flat[i].whole.unbind(0) for i in at}
    rows = []
    for k in range(c.n):
        for i in at:
            flat[i] = columns[i][k]
        rows.append(c.func(**spec.unflatten(flat)))
    if written:
        return None
    if isinstance(rows[0], tenon.Tensor):
        return tenon.stack(rows)
    if not isinstance(rows[0], (tuple, list)):
        raise Unmapped("vmap: %s gives numbers" % c.func)
    return tuple(None if column[0] is None else tenon.stack(column) for column in zip(*rows))


_rules = {}
for _names, _rule in (
    ("sum.dim_IntList mean.dim prod.dim_int max.dim min.dim amax amin all.dim any.dim var.correction std.correction "
     "linalg_vector_norm logsumexp norm.ScalarOpt_dim _softmax _log_softmax _softmax_backward_data "
     "_log_softmax_backward_data cumsum cumprod logcumsumexp flip sort sort.stable topk gather scatter.src scatter_add "
     "select.int slice.Tensor unsqueeze squeeze.dim squeeze.dims split.Tensor split_with_sizes unbind.int cat stack "
     "transpose.int diagonal select_backward slice_backward diagonal_backward _fft_r2c _fft_c2c _fft_c2r "
     "linalg_cross unfold count_nonzero.dim_IntList", _dimensions),
    ("sum", _flat(aten.sum.dim_IntList, [1])), ("mean", _flat(aten.mean.dim, [1])), ("prod", _flat(aten.prod.dim_int, 1)),
    ("max", _flat(aten.amax.default, [1])), ("min", _flat(aten.amin.default, [1])), ("all", _flat(aten.all.dim, 1)),
    ("any", _flat(aten.any.dim, 1)),
    ("clone detach alias _to_copy zeros_like ones_like empty_like full_like lift_fresh positive contiguous", _alike),
    ("new_zeros new_ones new_empty new_full", _new), ("new_empty_strided", _new_strided),
    ("view _unsafe_view _reshape_alias reshape", _view), ("expand", _expand), ("repeat", _repeat), ("permute", _permute),
    ("t", _t), ("squeeze", _squeeze), ("as_strided", _as_strided),
    ("squeeze_.dim", _geometry("squeeze", "dim")), ("squeeze_.dims", _geometry("squeeze", "dims")), ("squeeze_", _geometry("squeeze")), ("t_", _geometry("t")),
    ("resize_ resize_as_", _resize), ("unsqueeze_", _geometry("unsqueeze")), ("transpose_", _geometry("transpose", "int")),
    ("tril triu linalg_inv_ex linalg_cholesky_ex linalg_qr linalg_matrix_exp constant_pad_nd linalg_lu_factor_ex "
     "view_as_real view_as_complex _linalg_det _linalg_eigh _linalg_slogdet", _behind),
    ("index.Tensor", _index), ("index_select", _index_select), ("index_add", _index_add),
    ("index_add_", _index_add_in_place),
    ("embedding", _embedding),
    ("mm", _of_matrices(_mm, ("self", "mat2"), (2, 2))), ("mv", _of_matrices(_mv, ("self", "vec"), (2, 1))),
    ("dot", _of_matrices(_dot, ("self", "tensor"), (1, 1))), ("bmm", _of_matrices(_bmm, ("self", "mat2"), (3, 3))),
    ("addmm", _of_matrices(_plus(_mm, "mat1", "mat2"), ("mat1", "mat2"), (2, 2))),
    ("addmv", _of_matrices(_plus(_mv, "mat", "vec"), ("mat", "vec"), (2, 1))),
    ("baddbmm", _of_matrices(_plus(_bmm, "batch1", "batch2"), ("batch1", "batch2"), (3, 3))),
    ("convolution", _convolution), ("native_layer_norm", _layer_norm),
    ("max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d "
     "_adaptive_avg_pool2d_backward", _images(3)),
    ("mse_loss", _mse), ("mse_loss_backward", _mse_backward),
):
    for _name in _names.split():
        _rules[_name if "." in _name else _name + ".default"] = _rule
_found = {}


def _rule_of(func):
    namespace, _, name = func._schema.name.rpartition("::")
    name += "." + (func._schema.overload_name or "default")
    if namespace not in ("aten", "tenon"):  # an operator from outside, whatever it is called
        name = ""
    rule = _rules.get(name)
    if rule is None and any(tag.name == "pointwise" for tag in func.tags):
        writes = [a.name for a in func._schema.arguments if a.is_write]
        lists = any("List[" in str(a.type) and "Tensor" in str(a.type) for a in func._schema.arguments)
        rule = _each if lists or len(writes) > 1 or (writes and writes[0] != "self") else _in_place if writes else _pointwise
    if rule is None and name in ("copy_.default", "fill_.Scalar", "fill_.Tensor", "zero_.default"):
        rule = _in_place
    if rule is None and func._can_decompose():
        return None
    return rule or _each


# Which operators the reference has rules of their own for: they say it in other words.
_ARITHMETIC = ("sub_", "mul_", "div_", "copy_", "logical_and_", "logical_or_", "logical_xor_", "masked_fill_")
_SHAPED = ("add_", "atan2_", "bitwise_and_", "bitwise_or_", "bitwise_xor_")
_BARE = ("index_add_", "index_put_", "fill_", "index_fill_")


def _written_by(func):
    """The name of an operator that writes its first argument; of another ""."""
    packet = str(func).split(".")[1]
    return packet if packet.endswith("_") and not packet.endswith("__") else ""


def _check_captured(c, packet):
    """Slices cannot be written into a tensor that was there before, and that all of them share."""
    mine = c.args.get(c.func._names[0])
    if not isinstance(mine, tenon.Tensor) or c.maps(mine) or not tenon._C._is_captured(mine):
        return
    if packet in _SHAPED:
        tensors = [v for v in c.args.values() if isinstance(v, tenon.Tensor)]
        shape = tenon.broadcast_shapes((c.n,) + (1,) * max(v.dim() for v in tensors), *[v.shape for v in tensors])
        raise refused(RuntimeError("output with shape %s doesn't match the broadcast shape %s"
                                   % (list(mine.shape), list(shape))))
    name = "inplace arithmetic" if packet in _ARITHMETIC else packet if packet in _BARE else "aten::" + packet
    where = "in a vmap" if packet in _ARITHMETIC + _BARE else "at level %d" % (c.level.depth + 1)
    raise refused(RuntimeError(
        "vmap: %s(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
        "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over %s. Please "
        "try to use out-of-place operators instead of %s. If said operator is being called inside the PyTorch framework, "
        "please file a bug report instead." % (name, where, name)))


def _check_out(func, kwargs):
    """Nor into an `out=` that was there before: each slice would overwrite the one before it."""
    outs = []
    for value in kwargs.values():
        outs += value if isinstance(value, (list, tuple)) else [value]
    if not any(isinstance(t, tenon.Tensor) and not isinstance(t, Batched) and tenon._C._is_captured(t) for t in outs):
        return
    lists = "Tensor[]" in str(func._schema).partition("*,")[0]
    why = ". We could not generate a fallback." if lists else "; the fallback path doesn't work on out= or view ops."
    raise refused(RuntimeError("Batching rule not implemented for %s%s" % (str(func).replace(".", "::", 1), why)))


def call(func, args, kwargs):
    """The operator on slices."""
    given = tenon.library._vmap_rules.get(func._name)
    if given is not None:
        from ._function_rule import by_rule, level_of
        return by_rule(given, args, kwargs, level_of(args))
    if func in _found:
        rule, written_by, takes_out = _found[func]
    else:
        takes_out = "!" in str(func._schema).partition("*,")[2].partition(" -> ")[0]
        rule, written_by, _ = _found[func] = _rule_of(func), _written_by(func), takes_out
    if takes_out:
        _check_out(func, kwargs)
    if rule is None:  # made of other operators
        return func.decompose(*args, **kwargs)
    c = Call(func, args, kwargs)
    if written_by:
        _check_captured(c, written_by)
    made = rule(c)
    if made is None:  # written in place
        return c.args[func._names[0]]
    return c.result(made)
