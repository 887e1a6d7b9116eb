# SPDX-License-Identifier: MIT
"""grad and vjp of functions, and what other transforms that differentiate share."""
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


def recording():
    """Grad mode for a transform, whatever mode it is called in: under inference mode nothing would be recorded, and all
    derivatives be zero."""
    return tenon.inference_mode(False) if tenon.is_inference_mode_enabled() else tenon.enable_grad()


def seen_outside(value, recorded):
    """Results as they are behind the transform: where recording was off there (``recorded``), they are constants as those of any
    other function, and only what the transform itself computes was recorded."""
    return value if recorded else tree_map(_detached, value)


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
    if value.is_inference():
        value = value.clone()
    tangent = forward_ad.unpack_dual(value).tangent
    own = value.detach().requires_grad_(True)
    own.of_transform = True
    if tangent is None:
        return own
    dual = forward_ad.make_dual(own, tangent)
    dual.own_leaf, own.made_inside = own, True
    return dual


def _reaches_others(outputs, own, inside_too=False, outermost=False):
    """Whether the graph of the outputs leads to leaves that are not our own, nor (``inside_too``) those of a transform inside
    the function, nor (``outermost``) of any: around the outermost transform all others have ended."""
    mine = [getattr(t, "own_leaf", t) for t in own]
    ids = {id(t) for t in mine if t.is_leaf}
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
            elif id(following.variable) in ids or inside_too and hasattr(following.variable, "made_inside"):
                continue
            elif not following.variable.requires_grad:  # made for a tangent
                continue
            elif not (outermost and hasattr(following.variable, "of_transform")):
                return True
    return False


def _without_inner_history(tangent):
    """What transforms inside the function recorded of a tangent is of no use outside."""
    if tangent is None or not tangent.requires_grad or _reaches_others([tangent], (), inside_too=True):
        return tangent
    return tangent.detach()


def products(outputs, inputs, seeds):
    """The products from the left with the seeds, from which products from the right come by differentiating again."""
    rows = _gradients(outputs, inputs, seeds, True)
    check_twice_differentiable(rows)
    return rows


def check_twice_differentiable(rows):
    """Gradients that went through a backward which may not be differentiated have a history that leads to an error, or to
    nothing where that is not asked for."""
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


def _differentiable(t):
    return isinstance(t, tenon.Tensor) and (t.is_floating_point() or t.is_complex())


def _check_some(outputs, what):
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError("%s: Expected f to be a function that has non-empty output (got output = %s)" % (what, outputs))


def _check_differentiable(outputs):
    _check_some(outputs, "vjp(f, *primals)")
    for o in outputs:
        if not isinstance(o, tenon.Tensor):
            raise RuntimeError(_NOT_TENSORS % ("vjp(f, *primals)", type(o)))
        if not _differentiable(o):
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                               "torch.%s" % str(o.dtype).rpartition(".")[2])


def _seeds_of(outputs):
    """What products from the left are taken with, to be differentiated by; of whole numbers there are none."""
    seeds = [tenon.zeros_like(o, requires_grad=_differentiable(o)) for o in outputs]
    if getattr(_levels, "duals", False):
        for s in seeds:
            s.made_inside = True
    return seeds


def by_seeds(rows, seeds, tangents, **options):
    """The derivatives of the rows by the seeds times tangents; None for a seed that they do not depend on."""
    at = [s for s in seeds if s.requires_grad]
    made = iter(autograd.grad(rows, at, tangents, allow_unused=True, **options) if rows and at else (None,) * len(at))
    return [next(made) if s.requires_grad else None for s in seeds]


_NOT_TENSORS = "%s: expected f(*primals) to return only tensors, got unsupported type %s"


def _check_pushed(outputs):
    _check_some(outputs, "jvp(f, primals, tangents)")
    for o in outputs:
        if not isinstance(o, tenon.Tensor):
            raise RuntimeError(_NOT_TENSORS % ("jvp(f, primals, tangents)", type(o)))


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
    if not tensors or _reaches_others(tensors, own, outermost=True):
        return value
    return tree_map(_detached, value)


def _picked(args, argnums):
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError("argnums must be int or Tuple[int, ...], got: %s" % type(argnums))
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError("argnum must be int, got: %s" % type(n))
        if not -len(args) <= n < len(args):
            raise RuntimeError("Got argnum=%d, but only %d positional inputs" % (n, len(args)))
    picked = tuple(n % len(args) for n in numbers)
    if len(set(picked)) != len(picked):
        raise RuntimeError("argnums elements must be unique, got %s" % (picked,))
    return picked


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
        numbers, recorded = _picked(args, argnums), tenon.is_grad_enabled()
        with _Level() as level, recording():
            args, own, builds = _with_own(args, numbers)
            output, aux = _split_aux(inside(func, args, kwargs), has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, tenon.Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got %s"
                                   % type(output))
            if output.dim() != 0:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                                   "%d dims. Maybe you wanted to use the vjp or jacrev APIs instead?" % output.dim())
            if output.is_complex() and output.requires_grad:
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got torch.%s"
                                   % str(output.dtype).rpartition(".")[2])
            tensors = [t for t in own if isinstance(t, tenon.Tensor)]
            again = level > 1 or _reaches_others([output] if output.requires_grad else [], tensors, outermost=True)
            made = _rebuild(_gradients([output], own, [tenon.ones_like(output)], again), builds, argnums)
        made, output, aux = seen_outside((made, output, aux), again and recorded)
        return (made, (output, aux)) if has_aux else (made, output)
    return wrapper


def _detached(t):
    """Without history; a tangent stays, for it belongs to a transform further out."""
    if not isinstance(t, tenon.Tensor):
        return t
    tangent = forward_ad.unpack_dual(t).tangent
    return t.detach() if tangent is None else forward_ad.make_dual(t.detach(), _without_inner_history(tangent))


def _split_aux(result, has_aux, what):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError("%s: output of function f should be a tuple: (output, aux) if has_aux is True" % what)
    leaves = []
    flatten(result[1], leaves)
    for leaf in leaves:
        if not isinstance(leaf, tenon.Tensor):
            raise RuntimeError("Expected tensors, got unsupported type %s" % type(leaf))
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
    recorded = tenon.is_grad_enabled()
    with _Level(), recording():
        args, own, builds = _with_own(primals, tuple(range(len(primals))))
        output, aux = _split_aux(inside(func, args), has_aux, "vjp(f, *primals)")
    leaves = []
    flatten(output, leaves)
    _check_differentiable(leaves)
    tensors = [t for t in own if isinstance(t, tenon.Tensor)]
    nested = getattr(_levels, "n", 0) > 0

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        seeds, pytree = [], tenon.utils._pytree
        flatten(cotangents, seeds)
        given, wanted = pytree.tree_structure(cotangents), pytree.tree_structure(output)
        if given != wanted:
            given, wanted = pytree.treespec_pprint(given), pytree.treespec_pprint(wanted)
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               "to the function. cotangents: %s, primal output: %s" % (given, wanted))
        again = tenon.is_grad_enabled() if create_graph is None else create_graph
        with recording():
            made = _rebuild(_gradients(leaves, own, seeds, again), builds, ())
        again = again and (nested or any(isinstance(s, tenon.Tensor) and s.requires_grad for s in seeds)
                           or _reaches_others([o for o in leaves if o.requires_grad], tensors, outermost=True))
        return made if again else tree_map(_detached, made)

    shown = seen_outside(output if nested else _loose(output, tensors), recorded)
    return (shown, vjp_fn, tree_map(_detached, aux)) if has_aux else (shown, vjp_fn)
