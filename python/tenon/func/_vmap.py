# SPDX-License-Identifier: MIT
"""vmap: a function of slices as a function of the whole. The function is called once, with tensors that stand for all
slices (`_batched`); where it looks into one, asks for random numbers, or does what cannot be done so, it is called once
for each slice."""
import contextlib
import functools

import tenon
from tenon.utils import _pytree
from tenon.func import _batched
from tenon.func._jacobians import no_duals_of_jvp

_RANDOM = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
           "randomness flags on vmap or perform the randomness operation out of vmap")


def _name(func):
    return getattr(func, "__name__", None) or repr(func)


def _is_container(x):
    """Whether it is an object of tensors that says how vmap cuts it, as a TensorDict does: it is cut by its own unbind,
    and put together by its own stack."""
    return hasattr(type(x), "_add_batch_dim") and hasattr(type(x), "unbind") and not isinstance(x, tenon.Tensor)


def _slice(x, d, i):
    return x.unbind(d)[i] if _is_container(x) else x.select(d, i)


_flat_specs = {}  # of tuples of so many leaves; None: of one leaf


def _flatten(x, tensors):
    """(leaves, spec) of a tuple, or of a result. `tensors`: it is one tensor, or nothing but tensors."""
    if not tensors:
        return _pytree.tree_flatten(x, is_leaf=_is_container)
    n = len(x) if type(x) is tuple else None
    spec = _flat_specs.get(n)
    if spec is None:
        spec = _flat_specs[n] = _pytree.tree_structure(x)
    return [x] if n is None else list(x), spec


def _flat_dims(func, in_dims, args, spec, leaves):
    """Which dimension of each leaf is mapped; None: it is given as it is."""
    if type(in_dims) is int and leaves and all(type(x) is tenon.Tensor and x.dim() > in_dims for x in leaves) and in_dims >= 0:
        return [in_dims] * len(leaves)
    head = "vmap(%s, in_dims=%s, ...)(<inputs>): " % (_name(func), in_dims)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(head + "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
                         "inputs, got: %s." % type(in_dims))
    if not args:
        raise ValueError("vmap(%s)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
                         "a function with no inputs. The latter is unsupported." % _name(func))
    dims = _pytree._broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(head + "in_dims is not compatible with the structure of `inputs`. in_dims has structure %s but "
                         "inputs has structure %s." % (_pytree.tree_structure(in_dims), spec))
    for i, (x, d) in enumerate(zip(leaves, dims)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise ValueError(head + "Got in_dim=%s for an input but in_dim must be either an integer dimension or None."
                             % (d,))
        if not isinstance(x, tenon.Tensor) and not _is_container(x):
            raise ValueError(head + "Got in_dim=%s for an input but the input is of type %s. We cannot vmap over non-Tensor "
                             "arguments, please use None as the respective in_dim" % (d, type(x)))
        n = x.dim()
        if not -n <= d < n:
            raise ValueError(head + "Got in_dim=%s for some input, but that input is a Tensor of dimensionality %d so "
                             "expected in_dim to satisfy -%d <= in_dim < %d." % (d, n, n, n))
        dims[i] = d % n
    return dims


def _size(leaves, dims):
    found = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
    if not found:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(found)) > 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes %s for the "
                         "mapped dimension" % found)
    return found[0]


def _flat_out_dims(func, out_dims, spec, outputs):
    if type(out_dims) is int and len(outputs) == 1 and spec.is_leaf():
        dims = [out_dims]
    elif not isinstance(out_dims, int) and spec.is_leaf():  # one result: (d,) is d
        dims = [out_dims] if out_dims is None else _pytree.tree_leaves(out_dims)
        dims = dims if len(dims) == 1 else None
    else:
        dims = _pytree._broadcast_to_and_flatten(out_dims, spec)
    if dims is not None and not all(d is None or isinstance(d, int) for d in dims):
        raise ValueError("vmap(%s, ..., out_dims=%s): `out_dims` must be an int, None or a python collection of ints "
                         "representing where in the outputs the vmapped dimension should appear."
                         % (_name(func), out_dims))
    if dims is None:
        raise ValueError("vmap(%s, ..., out_dims=%s)(<inputs>): out_dims is not compatible with the structure of "
                         "`outputs`. out_dims has structure %s but outputs has structure %s."
                         % (_name(func), out_dims, _pytree.tree_structure(out_dims), spec))
    return dims


def _same(a, b):
    return a is b or (tenon.equal(a, b) if isinstance(a, tenon.Tensor) and isinstance(b, tenon.Tensor) else a == b)


def _join(func, rows, out_dims, n):
    """The results of all calls, stacked where each is to be."""
    columns, spec = [], None
    for row in rows:
        leaves, spec = _pytree.tree_flatten(row, is_leaf=_is_container)
        columns.append(leaves)
    made = []
    for i, d in enumerate(_flat_out_dims(func, out_dims, spec, columns[0])):
        parts = [c[i] for c in columns]
        if d is None:
            if not all(_same(parts[0], p) for p in parts[1:]):
                raise ValueError("vmap(%s, ...): `%s` can not return a BatchedTensor when out_dim is None"
                                 % (_name(func), _name(func)))
            made.append(parts[0])
            continue
        if not isinstance(parts[0], tenon.Tensor) and not _is_container(parts[0]):
            raise ValueError("vmap(%s, ...): `%s` must only return Tensors, got type %s. Did you mean to set out_dims= to "
                             "None for output?" % (_name(func), _name(func), type(parts[0])))
        made.append(tenon.stack(parts, dim=d) if n else tenon.stack(parts, dim=d).narrow(d, 0, 0))
    return spec.unflatten(made)


class _Random:
    """What random operators may do in the calls of one vmap."""

    def __init__(self, rule):
        self.rule, self.start = rule, None if rule == "different" else tenon.get_rng_state()
        self.generators = contextlib.nullcontext()
        if rule == "same":
            from tenon.func._generators import Generators
            self.generators = Generators()

    def before(self):
        if self.rule == "same":
            tenon.set_rng_state(self.start)
            for generator, start in self.generators.starts.items():
                generator.set_state(start)

    def after(self):
        if self.rule == "error" and not tenon.equal(self.start, tenon.get_rng_state()):
            tenon.set_rng_state(self.start)
            raise RuntimeError(_RANDOM)


def _plain(leaves, dims):
    """Whether tensors can stand for all slices: whether no class of its own must be seen."""
    kinds = (tenon.Tensor, tenon.nn.Parameter, _batched.Batched)
    return all(d is None or type(x) in kinds for x, d in zip(leaves, dims))


def _called(func, args, kwargs):
    """The function, which may not do what functions that are transformed may not."""
    tenon._C._in_transform(2)
    try:
        return func(*args, **kwargs)
    finally:
        tenon._C._in_transform(-2)


def _at_once(func, out_dims, spec, leaves, dims, n, kwargs):
    """One call for all slices."""
    level = _batched.Level()
    args = spec.unflatten([x if d is None else _batched.cut(x, d, level) for x, d in zip(leaves, dims)])
    guard = tenon._C._transform_begin(False)  # what is made from here on is the function's
    try:
        output = _called(func, args, kwargs)
    finally:
        tenon._C._transform_end(*guard)
    one = type(output) is _batched.Batched
    parts, spec = _flatten(output, one)
    if not one and any(_is_container(p) for p in parts):
        raise _batched.Unmapped("a container")
    with_history = [p for p in parts if isinstance(p, tenon.Tensor) and p.requires_grad]
    if with_history:
        _batched.sum_what_is_shared(with_history, level)
    made = []
    for part, d in zip(parts, _flat_out_dims(func, out_dims, spec, parts)):
        if d is None:
            if _batched.holds(part, level):
                raise ValueError("vmap(%s, ...): `%s` can not return a BatchedTensor when out_dim is None"
                                 % (_name(func), _name(func)))
            made.append(part)
        elif not isinstance(part, tenon.Tensor):
            raise ValueError("vmap(%s, ...): `%s` must only return Tensors, got type %s. Did you mean to set out_dims= to "
                             "None for output?" % (_name(func), _name(func), type(part)))
        else:
            whole = _batched.joined(part, n, level, walked=True)
            made.append(whole.movedim(0, d) if d else whole)
    return spec.unflatten(made)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """``func`` over a dimension of its inputs. Random operators are refused, or give the same numbers ("same") or other
    ones ("different") in each slice. ``chunk_size``: so many slices at a time."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or 'same'. Got %s" % randomness)
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ValueError("vmap: chunk_size should be None or greater than 0. (got %s)" % chunk_size)

    def each(spec, leaves, dims, n, kwargs, random=None):
        if n == 0:  # one call tells what the results look like
            leaves = [x if d is None else x.new_zeros(x.shape[:d] + (1,) + x.shape[d + 1:])
                      for x, d in zip(leaves, dims)]
        random, rows = random or _Random(randomness), []
        for i in range(n or 1):
            random.before()
            args = spec.unflatten(x if d is None else _slice(x, d, i) for x, d in zip(leaves, dims))
            with random.generators:
                rows.append(_called(func, args, kwargs))
            random.after()
        return _join(func, rows, out_dims, n)

    def all_slices(spec, leaves, dims, n, kwargs, random=None):
        # One call for all does not push every tangent, and what it saves is of no use to hooks that keep it.
        if (n == 0 or randomness != "error" or not _plain(leaves, dims) or tenon._C._in_dual_level()
                or tenon._C._saved_hooks_on()):
            return each(spec, leaves, dims, n, kwargs, random)
        random = _Random(randomness)
        try:
            made = _at_once(func, out_dims, spec, leaves, dims, n, kwargs)
        except Exception as e:
            if getattr(e, "_vmap_refused", False):
                raise
            # Whether it is the function's mistake or a limit of ours, slices tell.
            tenon.set_rng_state(random.start)
            return each(spec, leaves, dims, n, kwargs)
        random.after()
        return made

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        no_duals_of_jvp()
        leaves, spec = _flatten(args, all(type(x) is tenon.Tensor for x in args))
        dims = _flat_dims(func, in_dims, args, spec, leaves)
        n = _size(leaves, dims)
        if chunk_size is None or n <= chunk_size:
            return all_slices(spec, leaves, dims, n, kwargs)
        chunks, same = [], _Random(randomness) if randomness == "same" else None  # the same in all chunks
        for i in range(0, n, chunk_size):
            some = min(chunk_size, n - i)
            made = all_slices(spec, [x if d is None else x.narrow(d, i, some) for x, d in zip(leaves, dims)], dims, some,
                              kwargs, same)
            parts, out_spec = _pytree.tree_flatten(made)
            chunks.append(parts)
        out = _flat_out_dims(func, out_dims, out_spec, chunks[0])
        return out_spec.unflatten(p[0] if d is None else tenon.cat(p, dim=d) for p, d in zip(zip(*chunks), out))
    return wrapper
