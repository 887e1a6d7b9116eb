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
    return o.detach().clone().reshape(-1)


def _numerical(fn, inputs, x, eps):
    """One matrix for each output, by central differences."""
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
            slopes.append([(a - b) / (2 * eps) for a, b in zip(plus, minus)])
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


def _mismatch(kind, i, j, numerical, analytical):
    return GradcheckError("Jacobian mismatch for output %d with respect to input %d,\n%snumerical:%s\nanalytical:%s\n"
                          % (i, j, kind, numerical, analytical))


def _check_backward(fn, inputs, outputs, eps, atol, rtol, nondet_tol):
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        with tenon.no_grad():
            columns = _numerical(fn, inputs, x, eps)
        plain = [o for o in _tuple_of(fn(*inputs))]
        at = [i for i, o in enumerate(plain) if _differentiable(o)]
        for n, i in enumerate(at):
            output = outputs[n]
            wanted_all, found_all = [], []
            for k, value, seed in _seeds(output):
                found = _analytical(outputs, output, inputs, x, seed)
                again = _analytical(outputs, output, inputs, x, seed)
                if found.numel() and (found - again).abs().max().item() > nondet_tol:
                    raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and "
                                         "grad_output multiple times gives different values, although analytical "
                                         "gradient matches numerical gradient. The tolerance for nondeterminism was "
                                         "%s." % nondet_tol)
                wanted_all.append(_expected(columns[i], k, value, x))
                found_all.append(found.reshape(-1))
            if not wanted_all:
                continue
            wanted, found = tenon.stack(wanted_all, 1), tenon.stack(found_all, 1)
            if not tenon.allclose(found, wanted, rtol=rtol, atol=atol):
                raise _mismatch("", n, j, wanted, found)


def _check_forward(fn, inputs, eps, atol, rtol):
    from . import forward_ad
    for j, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        with tenon.no_grad():
            columns = _numerical(fn, inputs, x, eps)
        for row in range(x.numel()):
            for step, value in enumerate((1, 1j) if x.is_complex() else (1,)):
                direction = tenon.zeros(x.numel(), dtype=x.dtype)
                direction[row] = value
                with forward_ad.dual_level():
                    duals = [forward_ad.make_dual(y.detach(), direction.reshape(x.shape)) if i == j
                             else y.detach() if isinstance(y, tenon.Tensor) else y for i, y in enumerate(inputs)]
                    outputs = _tuple_of(fn(*duals))
                    tangents = [forward_ad.unpack_dual(o)[1] if isinstance(o, tenon.Tensor) else None for o in outputs]
                for i, t in enumerate(tangents):
                    wanted = columns[i][row][step]
                    if not (wanted.is_floating_point() or wanted.is_complex()):
                        continue
                    found = tenon.zeros_like(wanted) if t is None else t.reshape(-1)
                    if not tenon.allclose(found, wanted, rtol=rtol, atol=atol):
                        raise _mismatch("forward mode, ", i, j, wanted, found)


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


def _check_zeros(outputs, inputs):
    wanted = [x for x in inputs if _differentiable(x)]
    made = grad(list(outputs), wanted, [tenon.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True)
    for g, x in zip(made, wanted):
        if g is None:
            continue
        if not bool((g == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype or g.shape != x.shape:
            raise GradcheckError("grad is of another type or size than its input")


def _no_outputs(fn, inputs, eps):
    """Nothing requires grad: then nothing may move."""
    with tenon.no_grad():
        for x in inputs:
            if not _differentiable(x):
                continue
            for column in _numerical(fn, inputs, x, eps):
                for slopes in column:
                    for s in slopes:
                        if (s.is_floating_point() or s.is_complex()) and not bool((s == 0).all()):
                            raise GradcheckError("Numerical gradient for function expected to be zero")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None):
    """Compare the gradients of ``func`` with central differences. ``fast_mode`` checks as thoroughly as without it."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tuple_of(inputs)
    try:
        _check_inputs(inputs)
        outputs = _outputs(func(*inputs))
        if check_forward_ad:
            _check_forward(func, inputs, eps, atol, rtol)
        if not outputs:
            _no_outputs(func, inputs, eps)
        elif check_backward_ad:
            _check_backward(func, inputs, outputs, eps, atol, rtol, nondet_tol)
            if check_undefined_grad:
                _check_undefined(outputs, inputs)
            _check_zeros(outputs, inputs)
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
    inputs = _tuple_of(inputs)
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
                     check_undefined_grad=check_undefined_grad, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev)
