# SPDX-License-Identifier: MIT
"""grad, vjp, jvp, jacrev, jacfwd and hessian of functions."""
import functools
import threading

import tenon
from tenon import autograd
from tenon.autograd import forward_ad
from ._tree import flatten, tree_map

_levels = threading.local()


class _Level:
    """How many transforms this thread is in."""

    def __enter__(self):
        _levels.n = getattr(_levels, "n", 0) + 1
        return _levels.n

    def __exit__(self, *args):
        _levels.n -= 1


def inside(func, args, kwargs={}):
    """Call a function that is differentiated as a whole: it may write what it is given and what it makes, and nothing
    that was there before."""
    given = []
    flatten((tuple(args), kwargs), given)
    guard, was = tenon._C._transform_begin(True), []
    tenon._C._in_transform(1)
    try:
        for t in given:
            if isinstance(t, tenon.Tensor):
                was.append((t, tenon._C._set_made_in(t, guard[0])))
        return func(*args, **kwargs)
    finally:
        tenon._C._in_transform(-1)
        tenon._C._transform_end(*guard)
        for t, number in reversed(was):
            tenon._C._set_made_in(t, number)


def _own(value):
    """A tensor that this transform records for; tied to the one given where that records for somebody else."""
    if not isinstance(value, tenon.Tensor):
        return value
    if not (value.is_floating_point() or value.is_complex()):
        return value
    if value.requires_grad:
        return value.view_as(value)
    tangent = forward_ad.unpack_dual(value).tangent
    own = value.detach().requires_grad_(True)
    return own if tangent is None else forward_ad.make_dual(own, tangent)


def _reaches_others(outputs, own):
    """Whether the graph of the outputs leads to leaves that are not our own."""
    mine = [t for t in own if t.is_leaf]
    ids = {id(t) for t in mine}
    seen, todo = {}, [o.grad_fn for o in outputs if o.grad_fn is not None]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node  # held, so that no other gets its address
        for following, _ in node.next_functions:
            if following is None:
                continue
            if type(following).__name__ != "AccumulateGrad":
                todo.append(following)
            elif id(following.variable) not in ids:
                return True
    return False


def products(outputs, inputs, seeds):
    """The products from the left with the seeds, from which products from the right come by differentiating again."""
    rows = _gradients(outputs, inputs, seeds, True)
    seen, todo = {}, [r.grad_fn for r in rows if isinstance(r, tenon.Tensor) and r.grad_fn is not None]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if type(node).__name__ == "Error":
            raise RuntimeError("the function goes through an autograd.Function whose backward is once_differentiable: its "
                               "products from the right are found by going through backward twice; func.jvp uses its jvp")
        todo += [following for following, _ in node.next_functions if following is not None]
    return rows


def _gradients(outputs, inputs, seeds, create_graph):
    """One gradient for each input that can have one; zeros where it was not used."""
    at = [i for i, x in enumerate(inputs) if isinstance(x, tenon.Tensor) and x.requires_grad]
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
    made = (None,) * len(at)
    if pairs and at:
        made = autograd.grad([o for o, _ in pairs], [inputs[i] for i in at], [s for _, s in pairs],
                             create_graph=create_graph, retain_graph=True, allow_unused=True)
    out = [tenon.zeros_like(x) if isinstance(x, tenon.Tensor) else None for x in inputs]
    for i, g in zip(at, made):
        if g is not None:
            out[i] = g
    return out


def _forward(leaves):
    """Outputs of a function that is differentiated in forward direction: a view that was made under no_grad requires grad
    and has no history, and its tangent is zero as that of other results from there."""
    return [o.detach() if isinstance(o, tenon.Tensor) and o.requires_grad and o._is_view() and o.grad_fn is None else o
            for o in leaves]


def _loose(value, own):
    """Results without the history that is ours alone."""
    leaves = []
    flatten(value, leaves)
    tensors = [t for t in leaves if isinstance(t, tenon.Tensor) and t.requires_grad]
    if not tensors or _reaches_others(tensors, own):
        return value
    return tree_map(lambda t: t.detach() if isinstance(t, tenon.Tensor) else t, value)


def _picked(args, argnums):
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError("argnums must be int or Tuple[int, ...], got: %s" % type(n))
        if not -len(args) <= n < len(args):
            raise RuntimeError("Got argnum=%d, but only %d positional inputs" % (n, len(args)))
    return tuple(n % len(args) for n in numbers)


def _with_own(args, numbers):
    """The arguments with ours in the chosen places; the tensors of those places; how to build gradients of them."""
    args, own, builds = list(args), [], []
    for n in numbers:
        leaves = []
        build = flatten(args[n], leaves)
        for v in leaves:
            if not isinstance(v, tenon.Tensor):
                raise ValueError("Thing passed to transform API must be Tensor, got %s" % type(v))
        if any(not v.is_floating_point() and not v.is_complex() for v in leaves):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        made = [_own(v) for v in leaves]
        args[n] = build(iter(made))
        own += made
        builds.append((build, len(made)))
    return args, own, builds


def _writable(t):
    """The same elements, so that the function may write what it was given: a leaf that requires grad may not be written."""
    plain = type(t) is tenon.Tensor and t.layout == tenon.strided
    return tenon.ops.aten._unsafe_view(t, t.shape) if plain else t


def _rebuild(values, builds, argnums):
    out, i = [], 0
    for build, n in builds:
        out.append(build(iter(values[i:i + n])))
        i += n
    return tuple(out) if isinstance(argnums, tuple) else out[0]


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient and the value of ``func``, whose value is one number."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        numbers = _picked(args, argnums)
        with _Level() as level, tenon.enable_grad():
            args, own, builds = _with_own(args, numbers)
            output, aux = _split_aux(inside(func, args, kwargs), has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, tenon.Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got %s"
                                   % type(output))
            if output.dim() != 0:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                                   "%d dims. Maybe you wanted to use the vjp or jacrev APIs instead?" % output.dim())
            if output.is_complex():
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got torch.%s"
                                   % str(output.dtype).rpartition(".")[2])
            tensors = [t for t in own if isinstance(t, tenon.Tensor)]
            again = level > 1 or _reaches_others([output] if output.requires_grad else [], tensors)
            made = _rebuild(_gradients([output], own, [tenon.ones_like(output)], again), builds, argnums)
        if not again:
            made, output, aux = tree_map(_detached, made), _detached(output), tree_map(_detached, aux)
        return (made, (output, aux)) if has_aux else (made, output)
    return wrapper


def _detached(t):
    return t.detach() if isinstance(t, tenon.Tensor) else t


def _split_aux(result, has_aux, what):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError("%s: output of function f should be a tuple: (output, aux) if has_aux is True" % what)
    return result


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of ``func``, whose value is one number."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        made, value = both(*args, **kwargs)
        return (made, value[1]) if has_aux else made
    return wrapper


def vjp(func, *primals, has_aux=False):
    """The value of ``func``, and a function that multiplies the Jacobian by vectors from the left."""
    with _Level(), tenon.enable_grad():
        args, own, builds = _with_own(primals, tuple(range(len(primals))))
        output, aux = _split_aux(inside(func, args), has_aux, "vjp(f, *primals)")
    leaves = []
    flatten(output, leaves)
    for o in leaves:
        if not isinstance(o, tenon.Tensor):
            raise RuntimeError("vjp(f, *primals): Expected f to be a function that returns only tensors, got %s" % type(o))
    tensors = [t for t in own if isinstance(t, tenon.Tensor)]
    nested = getattr(_levels, "n", 0) > 0

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        seeds = []
        flatten(cotangents, seeds)
        if len(seeds) != len(leaves):
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               "to the function.")
        again = tenon.is_grad_enabled() if create_graph is None else create_graph
        with tenon.enable_grad():
            made = _rebuild(_gradients(leaves, own, seeds, again), builds, ())
        again = again and (nested or any(isinstance(s, tenon.Tensor) and s.requires_grad for s in seeds)
                           or _reaches_others([o for o in leaves if o.requires_grad], tensors))
        return made if again else tree_map(_detached, made)

    shown = output if nested else _loose(output, tensors)
    return (shown, vjp_fn, tree_map(_detached, aux)) if has_aux else (shown, vjp_fn)


class NeedsRecording(BaseException):
    """Of something inside ``jvp`` that does not go with dual tensors, but with recording."""


def no_duals_of_jvp():
    """What cannot push tangents says so first: then ``jvp`` begins again, without them."""
    if getattr(_levels, "duals", False):
        raise NeedsRecording


def _may_be_dual(t):
    return type(t) in (tenon.Tensor, tenon.nn.Parameter) and t.layout == tenon.strided and (
        t.is_floating_point() or t.is_complex()) and not t.is_inference()


def _by_duals(func, primals, first, second, has_aux):
    """jvp in forward mode; None where that cannot be: there is one level of it, for plain tensors, and some operators
    have no rule."""
    if getattr(_levels, "n", 0) or not all(_may_be_dual(t) for t in first + second):
        return None

    def pushed(*args):  # with tangents of its own, which are written together with what it writes
        return func(*flatten(args, [])(iter([forward_ad.make_dual(p, t.clone()) for p, t in zip(first, second)])))

    try:
        forward_ad.enter_dual_level()
    except RuntimeError:  # somebody is in it
        return None
    _levels.duals = True
    try:
        with _Level():
            output, aux = _split_aux(inside(pushed, primals), has_aux, "jvp(f, primals, tangents)")
            leaves = []
            build = flatten(output, leaves)
            for o in leaves:
                if not isinstance(o, tenon.Tensor):
                    raise RuntimeError("jvp(f, primals, tangents): Expected f to be a function that returns only tensors, "
                                       "got unsupported type %s" % type(o))
            pairs = [forward_ad.unpack_dual(o) for o in leaves]
            made = [tenon.zeros_like(p) if t is None else t for p, t in pairs]
            result = build(iter([p for p, _ in pairs])), build(iter(made))
            return result + (tree_map(lambda t: forward_ad.unpack_dual(t).primal if isinstance(t, tenon.Tensor) else t,
                                      aux),) if has_aux else result
    except NeedsRecording:
        return None
    except NotImplementedError as error:
        if "Trying to use forward AD with" not in str(error):
            raise
        return None
    finally:
        _levels.duals = False
        forward_ad.exit_dual_level()


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of ``func``, and the Jacobian times the tangents: in forward mode, or else by differentiating the
    product from the left."""
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call "
                           "f(*primals).")
    first, second = [], []
    flatten(primals, first)
    flatten(tangents, second)
    if len(first) != len(second):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure.")
    for what, leaves in (("primals", first), ("tangents", second)):
        for leaf in leaves:
            if not isinstance(leaf, tenon.Tensor):
                raise RuntimeError("jvp(f, primals, tangents): Expected %s to only contain Tensors, got %s"
                                   % (what, type(leaf)))
    for p, t in zip(first, second):
        if isinstance(p, tenon.Tensor) and isinstance(t, tenon.Tensor) and p.shape != t.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                               f"is not supported. Tensor is of size {list(p.shape)} while the given forward gradient is of "
                               f"size {list(t.shape)}.")
    made = _by_duals(func, primals, first, second, has_aux)
    if made is not None:
        return made
    with _Level() as level, tenon.enable_grad():
        args, own, builds = _with_own(primals, tuple(range(len(primals))))
        args = tree_map(_writable, args)
        output, aux = _split_aux(inside(func, args), has_aux, "jvp(f, primals, tangents)")
        leaves = []
        build = flatten(output, leaves)
        leaves = _forward(leaves)
        seeds = [tenon.zeros_like(o, requires_grad=True) for o in leaves]
        rows = products(leaves, own, seeds)
        pairs = [(r, t) for r, t in zip(rows, second) if isinstance(r, tenon.Tensor) and r.requires_grad]
        made = autograd.grad([r for r, _ in pairs], seeds, [t for _, t in pairs], create_graph=True,
                             allow_unused=True) if pairs else (None,) * len(seeds)
        made = [tenon.zeros_like(o) if m is None else m for m, o in zip(made, leaves)]
    own = [t for t in own if isinstance(t, tenon.Tensor)] + seeds
    outer = any(isinstance(t, tenon.Tensor) and t.requires_grad for t in first + second)
    if level == 1 and not outer and not _reaches_others([o for o in leaves if o.requires_grad], own):
        leaves, made, aux = [_detached(o) for o in leaves], [_detached(m) for m in made], tree_map(_detached, aux)
    result = build(iter(leaves)), build(iter(made))
    return result + (aux,) if has_aux else result


_AT_ONCE = 32  # rows of a Jacobian from which on they are computed together: one pass of Batched costs as much as some


def _over_basis(func, like, deep):
    """What ``func``, a function of one tensor that gives a tuple, gives for every unit tensor like this one: stacked,
    in the order of its elements. ``deep``: it goes through another transform, where each call costs more."""
    n = like.numel()
    basis = tenon.eye(n, dtype=like.dtype, device=like.device).reshape((n,) + tuple(like.shape))
    if n >= _AT_ONCE or (n >= 4 and (deep or type(like).__name__ == "Batched")):
        from tenon.func._vmap import vmap
        return vmap(func)(basis)
    return tuple(tenon.stack(column) for column in zip(*[func(row) for row in basis.unbind(0)]))


def _rows(output, own, create_graph, deep):
    """The Jacobian of one output: a tensor of its shape and then of the input's, for each input."""
    if output.numel() == 0 or not output.requires_grad:
        return [x.new_zeros(tuple(output.shape) + tuple(x.shape)) for x in own]
    made = _over_basis(lambda seed: tuple(_gradients([output], own, [seed], create_graph)), output, deep)
    return [m.reshape(tuple(output.shape) + tuple(x.shape)) for m, x in zip(made, own)]


def _columns(leaves, own, seeds, row, at, deep):
    """The Jacobian of every output by one input, whose product from the left with the seeds is ``row``."""
    x = own[at]
    if x.numel() == 0 or not row.requires_grad:
        return [o.new_zeros(tuple(o.shape) + tuple(x.shape)) for o in leaves]

    def push(tangent):
        moved = autograd.grad([row], seeds, [tangent], create_graph=True, retain_graph=True, allow_unused=True)
        return tuple(tenon.zeros_like(o) if m is None else m for m, o in zip(moved, leaves))

    made = _over_basis(push, x, deep)
    return [m.movedim(0, -1).reshape(tuple(o.shape) + tuple(x.shape)) for m, o in zip(made, leaves)]


def _by_rows(leaves, own, builds, argnums, level, deep):
    again = level > 1 or _reaches_others([o for o in leaves if o.requires_grad], own)
    made = [_rebuild(_rows(o, own, again, deep), builds, argnums) for o in leaves]
    return made if again else tree_map(_detached, made)


def _by_columns(leaves, own, builds, argnums, level, deep, outer):
    leaves = _forward(leaves)
    seeds = [tenon.zeros_like(o, requires_grad=True) for o in leaves]
    rows = products(leaves, own, seeds)
    columns = [_columns(leaves, own, seeds, row, i, deep) for i, row in enumerate(rows)]
    if level == 1 and not outer and not _reaches_others([o for o in leaves if o.requires_grad], own + seeds):
        columns = tree_map(_detached, columns)
    return [_rebuild([c[o] for c in columns], builds, argnums) for o in range(len(leaves))]


def _check_real(name, tree, kind):
    leaves = []
    flatten(tree, leaves)
    for i, t in enumerate(leaves):
        if isinstance(t, tenon.Tensor) and t.is_complex():
            raise RuntimeError("%s: Expected all %s to be real but received complex tensor at flattened input idx: %d"
                               % (name, kind, i))


def _jacobian(func, argnums, has_aux, what, is_wide, deep=False):
    """``is_wide(outputs, inputs)``: column by column, as many as there are elements in the inputs; else row by row."""
    @functools.wraps(func)
    def wrapper(*args):
        name = what.partition("(")[0]
        _check_real(name, args, "inputs")
        numbers = _picked(args, argnums)
        given = []
        flatten(tuple(args[n] for n in numbers), given)
        outer = any(isinstance(t, tenon.Tensor) and t.requires_grad for t in given)
        with _Level() as level, tenon.enable_grad():
            args, own, builds = _with_own(args, numbers)
            output, aux = _split_aux(inside(func, args), has_aux, what)
            leaves = []
            build = flatten(output, leaves)
            _check_real(name, leaves, "outputs")
            if is_wide(leaves, own):
                made = _by_columns(leaves, own, builds, argnums, level, deep or level > 1, outer)
            else:
                made = _by_rows(leaves, own, builds, argnums, level, deep or level > 1)
        made = build(iter(made))
        return (made, tree_map(_detached, aux)) if has_aux else made
    return wrapper


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of ``func``, row by row."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian(func, argnums, has_aux, "jacrev(f)(*args)", lambda outputs, inputs: False)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of ``func``, column by column: by differentiating the product from the left."""
    return _jacobian(func, argnums, has_aux, "jacfwd", lambda outputs, inputs: True)


def hessian(func, argnums=0):
    """A function that gives the second derivatives of ``func``."""
    def is_wide(outputs, inputs):  # a column costs about two rows
        return sum(o.numel() for o in outputs) > 2 * sum(x.numel() for x in inputs)
    return _jacobian(jacrev(func, argnums), argnums, False, "jacfwd", is_wide, True)
