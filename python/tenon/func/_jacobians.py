# SPDX-License-Identifier: MIT
"""jvp, jacrev, jacfwd and hessian of functions: by rows from backward passes, by columns from tangents, or from backward passes
that are differentiated again where tangents cannot be pushed."""
import functools

import tenon
from tenon.autograd import forward_ad
from ._gradients import (_Level, _check_differentiable, _check_pushed, _detached, _forward, _gradients, _levels, _picked,
                         _reaches_others, _rebuild, _seeds_of, _split_aux, _with_own, _without_inner_history, _writable,
                         by_seeds, check_twice_differentiable, inside, products, recording, seen_outside)
from ._tree import flatten, tree_map


class NeedsRecording(BaseException):
    """Of something inside ``jvp`` that does not go with dual tensors, but with recording."""


# How messages about has_aux call what these are made of.
_AUX_OF = {"jacrev(f)(*args)": "vjp(f, *primals)", "jacfwd": "jvp(f, primals, tangents)"}


def no_duals_of_jvp():
    """What cannot push tangents says so first: then ``jvp`` begins again, without them."""
    if getattr(_levels, "duals", False):
        raise NeedsRecording


def _slices():
    from tenon.func import _batched
    return (_batched.Batched,)


def _may_be_dual(t):
    return type(t) in (tenon.Tensor, tenon.nn.Parameter) + _slices() and t.layout == tenon.strided and (
        t.is_floating_point() or t.is_complex())


class _Duals:
    """The dual level for one call of a function; ``entered`` is False where somebody is in it already, for there is one."""

    def __enter__(self):
        self.mode = tenon.inference_mode(False) if tenon.is_inference_mode_enabled() else None
        try:
            forward_ad.enter_dual_level()
            self.entered = True
        except RuntimeError:
            self.entered = False
        if self.entered:
            _levels.duals = True
            self.forward = tenon._C._set_fwd_grad_enabled(True)  # off in the forward of a Function, say
            if self.mode is not None:
                self.mode.__enter__()
        return self

    def __exit__(self, *args):
        if self.entered:
            if self.mode is not None:
                self.mode.__exit__(*args)
            tenon._C._set_fwd_grad_enabled(self.forward)
            _levels.duals = False
            forward_ad.exit_dual_level()


def _has_no_rule(error):
    return isinstance(error, NotImplementedError) and "Trying to use forward AD with" in str(error)


def _push(func, args, duals, has_aux, what):
    """Call the function, some of whose arguments ``duals()`` gives tangents: (how to build its result, value and tangent of
    each part of that, aux)."""
    def pushed(*args):
        return func(*duals(args))

    # no _Level: tangents go through gradients that are taken inside without these being recorded
    output, aux = _split_aux(inside(pushed, args), has_aux, _AUX_OF.get(what, what))
    leaves = []
    build = flatten(output, leaves)
    _check_pushed(leaves)
    aux = tree_map(lambda t: forward_ad.unpack_dual(t).primal if isinstance(t, tenon.Tensor) else t, aux)
    return build, [(p, _without_inner_history(t)) for p, t in map(forward_ad.unpack_dual, leaves)], aux


def _check_strict(strict, tangents):
    if strict and any(t is None for t in tangents):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                           "allowed with strict=True.")


def _by_duals(func, primals, first, second, has_aux, strict):
    """jvp in forward mode; None where that cannot be: there is one level of it, for plain tensors, and some operators
    have no rule."""
    if not all(_may_be_dual(t) for t in first + second):
        return None

    def duals(args):  # with tangents of its own, which are written together with what it writes
        return flatten(args, [])(iter([forward_ad.make_dual(p, t.clone()) for p, t in zip(first, second)]))

    with _Duals() as level:
        if not level.entered:
            return None
        try:
            build, pairs, aux = _push(func, primals, duals, has_aux, "jvp(f, primals, tangents)")
        except NeedsRecording:
            return None
        except NotImplementedError as error:
            if not _has_no_rule(error):
                raise
            return None
        _check_strict(strict, [t for _, t in pairs])
        made = [tenon.zeros_like(p) if t is None else t for p, t in pairs]
        result = build(iter([p for p, _ in pairs])), build(iter(made))
        return result + (aux,) if has_aux else result


def _unit_tangents(inputs):
    """One tensor for each input, whose slices are its tangents as one element of all inputs moves after the other."""
    count, at, made = sum(x.numel() for x in inputs), 0, []
    for x in inputs:
        whole = tenon.zeros((count, x.numel()), dtype=x.dtype, device=x.device)
        whole[at:at + x.numel()].fill_diagonal_(1)
        made.append(whole.reshape((count,) + tuple(x.shape)))
        at += x.numel()
    return made, count


def _alone(t):
    """The tensor in memory of its own: a tangent lies as its tensor does, among zeros if there is more, and slices cannot be
    written into a tensor that has none."""
    if type(t) is _slices()[0] or (t.is_contiguous() and t.untyped_storage().nbytes() == t.numel() * t.element_size()):
        return t
    return t.clone(memory_format=tenon.contiguous_format)


def _unit_by_unit(push, wholes, count):
    """What ``push`` gives for each unit tensor by itself, the tangents stacked behind each other."""
    state, calls = tenon.get_rng_state(), []
    for i in range(count):
        tenon.set_rng_state(state)  # each column is one of the same function
        build, pairs, aux = push(tenon.clone, lambda: [w[i].clone() for w in wholes])
        calls.append([tenon.zeros_like(p) if t is None else t for p, t in pairs])
    return build, pairs, aux, [tenon.stack(tangents, -1) for tangents in zip(*calls)]


def _by_pushing(func, args, numbers, argnums, has_aux):
    """jacfwd in forward mode, by one call: each tangent stands for all unit tensors, as slices do in vmap; by a call for each
    where slices cannot stand for them. None where that cannot be, either."""
    given = []
    build_given = flatten(tuple(args[n] for n in numbers), given)
    if not all(_may_be_dual(t) for t in given):
        return None
    from tenon.func import _batched
    wholes, count = _unit_tangents(given)
    if count == 0:
        return None
    slices = _batched.Level()

    def push(primal, tangents):
        def duals(args):
            args = list(args)
            made = build_given(iter([forward_ad.make_dual(primal(x), t) for x, t in zip(given, tangents())]))
            for n, value in zip(numbers, made):
                args[n] = value
            return args
        return _push(func, args, duals, has_aux, "jacfwd")

    with _Duals() as level:
        if not level.entered:
            return None
        try:
            try:  # tangents are made inside the transform, which may write them
                build, pairs, aux = push(_alone, lambda: [_batched.cut(w, 0, slices) for w in wholes])
                columns = [None if t is None else _batched.joined(t, count, slices).movedim(0, -1) for _, t in pairs]
            except Exception:
                if any(type(t) is _batched.Batched for t in given):
                    raise
                build, pairs, aux, columns = _unit_by_unit(push, wholes, count)
        except _batched.Unmapped:  # a vmap further out calls slice by slice
            raise
        except (Exception, NeedsRecording):  # what is wrong with the function itself shows again when it is recorded
            return None
    _check_real("jacfwd", [p for p, _ in pairs], "outputs")
    sizes = [x.numel() for x in given]
    builds = []
    for n in numbers:
        leaves = []
        builds.append((flatten(args[n], leaves), len(leaves)))
    made = []
    for (p, _), c in zip(pairs, columns):
        parts = (c if c is not None else p.new_zeros(tuple(p.shape) + (count,))).split(sizes, -1)
        made.append(_rebuild([part.reshape(tuple(p.shape) + tuple(x.shape)) for part, x in zip(parts, given)], builds,
                             argnums))
    made = build(iter(made))
    return (made, tree_map(_detached, aux)) if has_aux else made


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of ``func``, and the Jacobian times the tangents: in forward mode, or else by differentiating the
    product from the left."""
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call "
                           "f(*primals).")
    first, second = [], []
    flatten(primals, first)
    flatten(tangents, second)
    structure = tenon.utils._pytree.tree_structure
    if structure(primals) != structure(tangents):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For "
                           "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           "%s and tangents with structure %s" % (structure(primals), structure(tangents)))
    for what, leaves in (("primals", first), ("tangents", second)):
        if not leaves:
            raise RuntimeError("jvp(f, primals, tangents): Expected %s to contain at least one Tensor." % what)
        for leaf in leaves:
            if not isinstance(leaf, tenon.Tensor):
                raise RuntimeError("jvp(f, primals, tangents): Expected %s to only contain Tensors, got %s"
                                   % (what, type(leaf)))
    for p, t in zip(first, second):
        if isinstance(p, tenon.Tensor) and isinstance(t, tenon.Tensor) and p.shape != t.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                               f"is not supported. Tensor is of size {list(p.shape)} while the given forward gradient is of "
                               f"size {list(t.shape)}.")
    made = _by_duals(func, primals, first, second, has_aux, strict)
    if made is not None:
        return made
    recorded = tenon.is_grad_enabled()
    with _Level() as level, recording():
        args, own, builds = _with_own(primals, tuple(range(len(primals))))
        args = tree_map(_writable, args)
        output, aux = _split_aux(inside(func, args), has_aux, "jvp(f, primals, tangents)")
        leaves = []
        build = flatten(output, leaves)
        leaves = _forward(leaves)
        _check_pushed(leaves)
        seeds = _seeds_of(leaves)
        rows = products(leaves, own, seeds)
        pairs = [(r, t) for r, t in zip(rows, second) if isinstance(r, tenon.Tensor) and r.requires_grad]
        made = by_seeds([r for r, _ in pairs], seeds, [t for _, t in pairs], create_graph=True)
        _check_strict(strict, made)
        made = [tenon.zeros_like(o) if m is None else m for m, o in zip(made, leaves)]
    own = [t for t in own if isinstance(t, tenon.Tensor)] + seeds
    outer = any(isinstance(t, tenon.Tensor) and t.requires_grad for t in first + second)
    if level == 1 and not outer and not _reaches_others([o for o in leaves if o.requires_grad], own, outermost=True):
        leaves, made, aux = [_detached(o) for o in leaves], [_detached(m) for m in made], tree_map(_detached, aux)
    result = build(iter(leaves)), build(iter(made))
    return seen_outside(result + (aux,) if has_aux else result, recorded)


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
        moved = by_seeds([row], seeds, [tangent], create_graph=True, retain_graph=True)
        return tuple(tenon.zeros_like(o) if m is None else m for m, o in zip(moved, leaves))

    made = _over_basis(push, x, deep)
    return [m.movedim(0, -1).reshape(tuple(o.shape) + tuple(x.shape)) for m, o in zip(made, leaves)]


def _by_rows(leaves, own, builds, argnums, level, deep):
    again = level > 1 or _reaches_others([o for o in leaves if o.requires_grad], own, outermost=True)
    made = [_rebuild(_rows(o, own, again, deep), builds, argnums) for o in leaves]
    return made if again else tree_map(_detached, made)


def _by_columns(leaves, own, builds, argnums, level, deep, outer):
    leaves = _forward(leaves)
    _check_pushed(leaves)
    seeds = _seeds_of(leaves)
    rows = products(leaves, own, seeds)
    columns = [_columns(leaves, own, seeds, row, i, deep) for i, row in enumerate(rows)]
    if level == 1 and not outer and not _reaches_others([o for o in leaves if o.requires_grad], own + seeds, outermost=True):
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
        recorded = tenon.is_grad_enabled()
        with _Level() as level, recording():
            args, own, builds = _with_own(args, numbers)
            output, aux = _split_aux(inside(func, args), has_aux, _AUX_OF.get(what, what))
            leaves = []
            build = flatten(output, leaves)
            _check_real(name, leaves, "outputs")
            if is_wide(leaves, own):
                made = _by_columns(leaves, own, builds, argnums, level, deep or level > 1, outer)
            else:
                _check_differentiable(leaves)
                if deep:
                    check_twice_differentiable(leaves)
                made = _by_rows(leaves, own, builds, argnums, level, deep or level > 1)
        made = seen_outside(build(iter(made)), recorded)
        return (made, tree_map(_detached, aux)) if has_aux else made
    return wrapper


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of ``func``, row by row."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian(func, argnums, has_aux, "jacrev(f)(*args)", lambda outputs, inputs: False)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of ``func``, column by column: in forward mode, or else by differentiating the
    product from the left."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or 'same'. Got %s" % randomness)
    recorded = _jacobian(func, argnums, has_aux, "jacfwd", lambda outputs, inputs: True)

    @functools.wraps(func)
    def wrapper(*args):
        _check_real("jacfwd", args, "inputs")
        made = _by_pushing(func, args, _picked(args, argnums), argnums, has_aux)
        return recorded(*args) if made is None else made
    return wrapper


def hessian(func, argnums=0):
    """A function that gives the second derivatives of ``func``."""
    def is_wide(outputs, inputs):  # a column costs about two rows
        return sum(o.numel() for o in outputs) > 2 * sum(x.numel() for x in inputs)
    rows = jacrev(func, argnums)
    recorded = _jacobian(rows, argnums, False, "jacfwd", is_wide, True)

    @functools.wraps(func)
    def wrapper(*args):
        """Recording costs a fraction of pushing tangents, where it gives the same."""
        made, error, before = None, None, tenon._C._times_switched_off()
        try:
            made = recorded(*args)
        except RuntimeError as e:
            error = e
        if error is not None or tenon._C._times_switched_off() != before:
            pushed = _by_pushing(rows, args, _picked(args, argnums), argnums, False)
            made, error = (made, error) if pushed is None else (pushed, None)
        if error is not None:
            raise error
        return made
    return wrapper
