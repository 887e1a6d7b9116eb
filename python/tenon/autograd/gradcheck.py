# SPDX-License-Identifier: MIT
"""Checking gradients against differences."""
import tenon
from tenon.autograd import grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """What a failed check raises."""


def _tuple_of(x):
    if x is None:
        return ()
    return (x,) if isinstance(x, tenon.Tensor) else tuple(x)


def _differentiable(x):
    return isinstance(x, tenon.Tensor) and x.requires_grad


def _outputs(result):
    return tuple(o for o in _tuple_of(result) if _differentiable(o))


def _check_inputs(inputs):
    found = False
    for i, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        found = True
        if x.dtype not in (tenon.float64, tenon.complex128):
            import warnings
            warnings.warn("Input #%d requires gradient and is not a double precision floating point or complex. This "
                          "check will likely fail if all the inputs are not of double precision floating point or "
                          "complex. " % i, stacklevel=4)
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            raise RuntimeError("The %dth input has a dimension with stride 0. gradcheck only supports inputs that are "
                               "non-overlapping to be able to compute the numerical gradients correctly. You should "
                               "call .contiguous on the input before passing it to gradcheck." % i)
    if not found:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")


# ---- Jacobians: rows are elements of the input, columns of the output ----

def _copy(o):
    return o.detach().clone()


def _difference(plus, minus, eps):
    """The slopes of the outputs, which must be the same ones on both sides."""
    for a, b in zip(plus, minus):
        for what, of in (("shape", a.shape), ("dtype", a.dtype)):
            if of != getattr(b, what):
                raise AssertionError("Expected `func` to return outputs with the same %s when inputs are perturbed by %s, but got: "
                                     "%ss %s and %s." % (what, eps, what, getattr(b, what), of))
    return [(a - b) / (2 * eps) for a, b in zip(plus, minus)]


# The function runs in the grad mode that the caller is in: it may take gradients itself, or ask what requires grad.

def _numerical(fn, inputs, x, eps):
    """One matrix for each output, by central differences. Recording stays on: a function may run backward inside itself."""
    data = x.data
    count = len(_tuple_of(fn(*inputs)))
    columns = [[] for _ in range(count)]
    directions = (eps, eps * 1j) if x.is_complex() else (eps,)
    import itertools
    for index in itertools.product(*[range(n) for n in x.shape]):
        slopes = []
        for step in directions:
            old = data[index].clone()
            data[index] = old + step
            plus = [_copy(o) for o in _tuple_of(fn(*inputs))]
            data[index] = old - step
            minus = [_copy(o) for o in _tuple_of(fn(*inputs))]
            data[index] = old
            slopes.append([s.reshape(-1) for s in _difference(plus, minus, eps)])
        for i in range(count):
            columns[i].append([s[i] for s in slopes])
    return columns


def _analytical(outputs, output, inputs, x, seed):
    made = grad(output, [x], seed, retain_graph=True, allow_unused=True)[0]
    return tenon.zeros_like(x) if made is None else made


def _seeds(output):
    """One for each element of the output; of complex ones also along the imaginary axis."""
    for k in range(output.numel()):
        for value in ((1, 1j) if output.is_complex() else (1,)):
            seed = tenon.zeros(output.numel(), dtype=output.dtype)
            seed[k] = value
            yield k, value, seed.reshape(output.shape)


def _real_product(slope, value):
    """Re(conj(value) * slope): how the output moves along the direction of the seed."""
    if slope.is_complex():
        return slope.real if value == 1 else slope.imag
    return slope


def _expected(columns, k, value, x):
    """The gradient that differences say: real along the real axis, imaginary along the other."""
    rows = []
    for slopes in columns:
        real = _real_product(slopes[0][k], value)
        if len(slopes) == 1:
            rows.append(real)
        else:
            rows.append(tenon.view_as_complex(tenon.stack([real, _real_product(slopes[1][k], value)], -1)))
    if not rows:
        return tenon.zeros_like(x).reshape(-1)
    made = tenon.stack(rows)
    return made.to(x.dtype)


def _mismatch(kind, i, j, numerical, analytical, more="", within=""):
    return GradcheckError("%sJacobian %smismatch for output %d with respect to input %d,\nnumerical:%s\nanalytical:%s\n%s"
                          % (within, kind, i, j, numerical, analytical, more))


def _halves(is_complex, what):
    """What is compared on its own: (0 along the real axis or 1 along the other, how a failure begins)."""
    if not is_complex:
        return ((0, ""),)
    return tuple((step, "While considering the %s part of complex %s only, " % (name, what))
                 for step, name in ((1, "imaginary"), (0, "real")))


def _check_reentrant(found, again, nondet_tol):
    if found.numel() and (found - again).abs().max().item() > nondet_tol:
        raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and "
                             "grad_output multiple times gives different values, although analytical "
                             "gradient matches numerical gradient.The tolerance for nondeterminism was "
                             "%s." % nondet_tol)


def _backward_columns(outputs, output, inputs, x, columns, nondet_tol):
    """The gradients of each element of the output: as differences say, and as passes give."""
    wanted_all, found_all = [], []
    for k, value, seed in _seeds(output):
        found = _analytical(outputs, output, inputs, x, seed)
        again = _analytical(outputs, output, inputs, x, seed)
        _check_reentrant(found, again, nondet_tol)
        wanted_all.append(_expected(columns, k, value, x))
        found_all.append(found.reshape(-1))
    return wanted_all, found_all


def _check_backward(fn, inputs, outputs, eps, atol, rtol, nondet_tol):
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        columns = _numerical(fn, inputs, x, eps)
        plain = [o for o in _tuple_of(fn(*inputs))]
        at = [i for i, o in enumerate(plain) if _differentiable(o)]
        for n, i in enumerate(at):
            output = outputs[n]
            wanted_all, found_all = _backward_columns(outputs, output, inputs, x, columns[i], nondet_tol)
            if not wanted_all:
                continue
            for step, within in _halves(output.is_complex(), "outputs"):
                some = slice(step, None, 2 if within else 1)
                wanted, found = tenon.stack(wanted_all[some], 1), tenon.stack(found_all[some], 1)
                if not tenon.allclose(found, wanted, rtol=rtol, atol=atol):
                    raise _mismatch("", n, j, wanted, found.detach(), within=within)


def _check_forward(fn, inputs, eps, atol, rtol):
    wanted = {j: _numerical(fn, inputs, x, eps) for j, x in enumerate(inputs) if _differentiable(x)}
    for step, within in _halves(any(inputs[j].is_complex() for j in wanted), "inputs"):
        for j, columns in wanted.items():
            x = inputs[j]
            step = step if x.is_complex() else 0
            rows = [_row(fn, inputs, j, row, 1j if step else 1) for row in range(x.numel())]
            for i in range(len(columns) if rows else 0):
                slopes = tenon.stack([slopes[step] for slopes in columns[i]])
                if not _moves(slopes):
                    continue
                found = tenon.stack([tenon.zeros_like(slopes[0]) if tangents[i] is None else tangents[i] for tangents in rows])
                if not tenon.allclose(found, slopes, rtol=rtol, atol=atol):
                    raise _mismatch("computed with forward mode ", i, j, slopes, found, within=within)


def _row(fn, inputs, j, row, value):
    """Of each output the tangent along one element of input j, as a vector."""
    from . import forward_ad
    direction = tenon.zeros(inputs[j].numel(), dtype=inputs[j].dtype)
    direction[row] = value
    with forward_ad.dual_level():
        return [None if t is None else t.detach().reshape(-1) for t in _tangents(fn, inputs, j, direction.reshape(inputs[j].shape))]


# ---- in one direction: fast mode ----

_FAST = """
The above quantities relating the numerical and analytical jacobians are computed\x20
in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background
about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:

Numerical:
 %s
Analytical:
%s

The max per-element difference (slow mode) is: %s.
"""

_ONLY_FAST = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!
"""


def _slowly(wanted, found, atol, rtol):
    """What a failure goes on with: the whole Jacobians, which tell which elements are wrong."""
    text = _FAST % (wanted, found, (wanted - found).abs().max().item())
    return text + _ONLY_FAST if tenon.allclose(found, wanted, rtol=rtol, atol=atol) else text


def _random_like(t, generator):
    """A direction of length 1; of complex tensors in both axes."""
    made = tenon.rand(t.numel() * (2 if t.is_complex() else 1), generator=generator, dtype=tenon.float64)
    if made.numel():
        made = made / made.norm()
    made = tenon.view_as_complex(made.reshape(-1, 2)) if t.is_complex() else made
    return made.reshape(t.shape).to(t.dtype)


def _along(a, b):
    """Re(sum(conj(a) * b)): how a function moves whose gradient is a."""
    if a.is_complex() or b.is_complex():
        return (a.conj() * b).real.sum().item()
    return (a * b).sum().item()


def _directional(fn, inputs, x, direction, eps):
    """Central differences of every output along the direction."""
    data, old = x.data, x.detach().clone()
    sides = []
    for sign in (1, -1):
        data.copy_(old + sign * eps * direction)
        sides.append([_moving(o).detach().clone() for o in _tuple_of(fn(*inputs))])
        data.copy_(old)
    return _difference(*sides, eps)


def _moves(o):
    return o.is_floating_point() or o.is_complex()


def _moving(o):
    return o if _moves(o) else o.to(tenon.float64)


def _weight(direction):
    """How much larger than that of one element the tolerance is of what is added up along the direction."""
    return direction.abs().sum().item()


def _near(found, wanted, atol, rtol):
    return abs(found - wanted) <= atol + rtol * abs(wanted)


def _directions(fn, inputs, eps, generator):
    """For each input that has a gradient: its number, itself, a direction, and the slopes of the results along that."""
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        direction = _random_like(x, generator)
        slopes = _directional(fn, inputs, x, direction, eps)
        yield j, x, direction, slopes


def _fast_backward(fn, inputs, outputs, eps, atol, rtol, nondet_tol):
    generator = tenon.Generator().manual_seed(0)
    for j, x, direction, slopes in _directions(fn, inputs, eps, generator):
        at = [i for i, o in enumerate(_tuple_of(fn(*inputs))) if _differentiable(o)]
        for n, i in enumerate(at):
            seed = _random_like(outputs[n], generator)
            first, again = (_analytical(outputs, outputs[n], inputs, x, seed) for _ in range(2))
            _check_reentrant(first, again, nondet_tol)
            found, wanted = _along(first, direction), _along(seed, slopes[i])
            if not _near(found, wanted, atol * _weight(seed) * _weight(direction), rtol):
                columns = _backward_columns(outputs, outputs[n], inputs, x, _numerical(fn, inputs, x, eps)[i], nondet_tol)
                more = _slowly(*(tenon.stack(made, 1).detach() for made in columns), atol, rtol)
                raise _mismatch("", n, j, wanted, found, more)


def _fast_forward(fn, inputs, eps, atol, rtol):
    from . import forward_ad
    generator = tenon.Generator().manual_seed(0)
    for j, x, direction, slopes in _directions(fn, inputs, eps, generator):
        with forward_ad.dual_level():
            tangents = _tangents(fn, inputs, j, direction)
        for i, (t, slope) in enumerate(zip(tangents, slopes)):
            found = tenon.zeros_like(slope) if t is None else t
            if not tenon.allclose(found, slope, rtol=rtol, atol=atol * _weight(direction)):
                whole = tenon.stack([slopes[0] for slopes in _numerical(fn, inputs, x, eps)[i]])
                rows = [_row(fn, inputs, j, row, 1)[i] for row in range(x.numel())]
                rows = tenon.stack([tenon.zeros_like(whole[0]) if t is None else t for t in rows])
                raise _mismatch("computed with forward mode ", i, j, slope, found, _slowly(whole, rows, atol, rtol))


# ---- sparse inputs ----

def _rebuilt(like, values):
    """The sparse tensor with other stored elements; recorded."""
    if like.layout == tenon.sparse_coo:
        return tenon.sparse_coo_tensor(like.indices(), values, like.shape, is_coalesced=True)
    ends, inner = ((like.crow_indices(), like.col_indices()) if like.layout == tenon.sparse_csr
                   else (like.ccol_indices(), like.row_indices()))
    return tenon.sparse_compressed_tensor(ends, inner, values, like.shape, layout=like.layout)


def _of_stored(func, inputs, masked):
    """The function, and its inputs, of the stored elements of those that are sparse and have a gradient."""
    known = (tenon.sparse_coo, tenon.sparse_csr, tenon.sparse_csc)
    at = {i: x.detach() for i, x in enumerate(inputs) if _differentiable(x) and x.layout in known}
    if not at:
        return func, inputs
    if not masked:
        raise ValueError("gradcheck of sparse inputs wants masked=True: a sparse tensor has the gradient of its stored elements")
    given = list(inputs)
    for i, x in at.items():
        at[i] = x.coalesce() if x.layout == tenon.sparse_coo else x
        given[i] = at[i].values().detach().clone().requires_grad_()

    def dense(*args):
        return func(*(_rebuilt(at[i], x) if i in at else x for i, x in enumerate(args)))
    return dense, tuple(given)


# ---- several gradients at once ----

def _tangents(fn, inputs, j, direction):
    """Of every output, for input j, where the others stay as they are: have tangents of zero; inside a dual level."""
    from . import forward_ad
    duals = [forward_ad.make_dual(y.detach(), direction if i == j else tenon.zeros_like(y.detach())) if _differentiable(y)
             else y.detach() if isinstance(y, tenon.Tensor) else y for i, y in enumerate(inputs)]
    return [forward_ad.unpack_dual(o)[1] if isinstance(o, tenon.Tensor) else None for o in _tuple_of(fn(*duals))]


def _check_undefined_forward(fn, inputs):
    """An input without a tangent counts as one whose tangent is zero."""
    from . import forward_ad
    generator = tenon.Generator().manual_seed(0)
    directions = [_random_like(x.detach(), generator) if _differentiable(x) else None for x in inputs]
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        made = []
        for tangent in (tenon.zeros_like(x.detach()), None):
            with forward_ad.dual_level():
                duals = [y.detach() if i == j and tangent is None else
                         forward_ad.make_dual(y.detach(), tangent if i == j else directions[i]) if _differentiable(y) else y
                         for i, y in enumerate(inputs)]
                made.append([forward_ad.unpack_dual(o) if isinstance(o, tenon.Tensor) else (None, None)
                             for o in _tuple_of(fn(*duals))])
        for i, ((primal, zero), (_, undefined)) in enumerate(zip(*made)):
            if zero is None and undefined is None:
                continue
            zero, undefined = (tenon.zeros_like(primal) if t is None else t for t in (zero, undefined))
            if not tenon.allclose(zero, undefined):
                raise GradcheckError("Mismatch in tangent values for output with index: %d when input: %s has an undefined "
                                     "tangent value.  Got: %s but expected: %s" % (i, x, zero, undefined))


def _compare_batched(kind, where, one_by_one, batched):
    for j, (a, b) in enumerate(zip(one_by_one, batched)):
        if a is None and b is None:
            continue
        a, b = (tenon.zeros_like(y) if x is None else x for x, y in ((a, b), (b, a)))
        if not tenon.allclose(a, b):
            raise GradcheckError("While computing batched gradients, got: For %s%s\n%s: batched:\n%s\none by one:\n%s" % (
                where, j, kind, b, a))


def _check_batched(outputs, inputs):
    """A pass with a batch of gradients must give what as many passes give."""
    wanted = [x for x in inputs if _differentiable(x)]
    for i, output in enumerate(outputs):
        seeds = [tenon.randn_like(output).detach() for _ in range(2)]
        made = [grad(output, wanted, seed, retain_graph=True, allow_unused=True) for seed in seeds]
        one_by_one = [None if pair[0] is None else tenon.stack(pair) for pair in zip(*made)]
        try:
            batched = grad(output, wanted, tenon.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError("While computing batched gradients, got: %s" % error) from error
        _compare_batched("backward", "output %d and input " % i, one_by_one, batched)


def _check_batched_forward(fn, inputs):
    from . import forward_ad
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        directions = [tenon.randn_like(x).detach() for _ in range(2)]
        with forward_ad.dual_level():
            made = [_tangents(fn, inputs, j, direction) for direction in directions]
            one_by_one = [None if pair[0] is None else tenon.stack(pair) for pair in zip(*made)]
            at = [i for i, t in enumerate(one_by_one) if t is not None]
            if not at:
                continue

            def some(direction, j=j, at=at):
                found = _tangents(fn, inputs, j, direction)
                return tuple(found[i] for i in at)

            try:
                batched = tenon.func.vmap(some)(tenon.stack(directions))
            except RuntimeError as error:
                raise GradcheckError("While computing batched gradients, got: %s" % error) from error
            _compare_batched("forward", "input %d and output " % j, [one_by_one[i] for i in at], batched)


def _check_undefined(outputs, inputs):
    """An undefined gradient must act as zeros."""
    wanted = [x for x in inputs if _differentiable(x)]
    for i in range(len(outputs)):
        others = [o for n, o in enumerate(outputs) if n != i]
        if not others:
            return
        seeds = [tenon.ones_like(o) for o in others]
        some = grad(others, wanted, seeds, retain_graph=True, allow_unused=True)
        zeros = grad([outputs[i]] + others, wanted, [tenon.zeros_like(outputs[i])] + seeds, retain_graph=True,
                     allow_unused=True)
        for a, b in zip(some, zeros):
            a = None if a is None or bool((a == 0).all()) else a
            b = None if b is None or bool((b == 0).all()) else b
            if (a is None) != (b is None) or a is not None and not tenon.allclose(a, b):
                raise GradcheckError("Expected backward function to handle undefined output grads. Please look at "
                                     "\"Notes about undefined output gradients\" in \"tools/autograd/derivatives.yaml\"")


def _check_zeros(outputs, inputs, dtypes):
    wanted = [x for x in inputs if _differentiable(x)]
    made = grad(list(outputs), wanted, [tenon.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True)
    for g, x in zip(made, wanted):
        if g is None:
            continue
        if not bool((g == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if dtypes and g.dtype != x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")
        if g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")


def _no_outputs(fn, inputs, eps):
    """Nothing requires grad: then nothing may move."""
    for x in inputs:
        if not _differentiable(x):
            continue
        for column in _numerical(fn, inputs, x, eps):
            for slopes in column:
                for s in slopes:
                    if (s.is_floating_point() or s.is_complex()) and not bool((s == 0).all()):
                        raise GradcheckError("Numerical gradient for function expected to be zero")


def _require(held, text):
    if not held:
        raise AssertionError(text)


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None):
    """Compare the gradients of ``func`` with central differences: of every element, or in ``fast_mode`` in one random direction
    for each input and output."""
    _require(check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad to be True")
    _require(check_backward_ad or not check_batched_grad, "Setting check_batched_grad=True requires check_backward_ad to be True")
    _require(check_forward_ad or not check_batched_forward_grad,
             "Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    func, inputs = _of_stored(func, _tuple_of(inputs), masked)
    try:
        _check_inputs(inputs)
        outputs = _outputs(func(*inputs))
        if any(o.layout != tenon.strided for o in outputs):
            raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                             "of fn for gradcheck.")
        if not outputs:
            _no_outputs(func, inputs, eps)
        elif check_backward_ad:
            (_fast_backward if fast_mode else _check_backward)(func, inputs, outputs, eps, atol, rtol, nondet_tol)
            if check_batched_grad:
                _check_batched(outputs, inputs)
            if check_undefined_grad:
                _check_undefined(outputs, inputs)
            _check_zeros(outputs, inputs, check_grad_dtypes)
        if check_forward_ad:
            (_fast_forward if fast_mode else _check_forward)(func, inputs, eps, atol, rtol)
            if check_undefined_grad:
                _check_undefined_forward(func, inputs)
            if check_batched_forward_grad:
                _check_batched_forward(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
                  check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
                  masked=False):
    """The same for the gradients of the gradients."""
    _require(check_fwd_over_rev or check_rev_over_rev, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, on in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        _require(check_rev_over_rev or not on, "Setting %s=True requires check_rev_over_rev to be True" % name)
    func, inputs = _of_stored(func, _tuple_of(inputs), masked)
    n = len(inputs)
    if grad_outputs is None:
        outputs = _outputs(func(*inputs))
        grad_outputs = tuple(tenon.randn_like(o).detach().requires_grad_(True) for o in outputs)
    else:
        grad_outputs = _tuple_of(grad_outputs)
    at = [i for i, x in enumerate(inputs) if _differentiable(x)]

    def first(*args):
        xs = tuple(x.requires_grad_(True) if i in at and x.is_leaf and not x.requires_grad else x
                   for i, x in enumerate(args[:n]))
        with tenon.enable_grad():
            outputs = _outputs(func(*xs))
            made = grad(outputs, [xs[i] for i in at], args[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in made if g is not None)

    return gradcheck(first, inputs + tuple(grad_outputs), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev, fast_mode=fast_mode)
