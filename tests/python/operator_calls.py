# SPDX-License-Identifier: MIT
"""One call of an operator in both libraries, and what differs. For compare_operators.py, which see."""

import mmap
import os
import re
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "golden"))

import numpy  # noqa: E402
import torch  # noqa: E402
import literal  # noqa: E402, F401
from literal import parse, split  # noqa: E402
import tenon  # noqa: E402

warnings.simplefilter("ignore")
RANDOM = re.compile(r"dropout|rrelu|rand|empty|normal|bernoulli|multinomial|uniform|exponential|cauchy|geometric|poisson$|"
                    r"binomial|_standard_gamma|dirichlet|resize|new_empty|exponential")
# Layers of a recurrent network, with dropout between them: (input, hx, params, has_biases, num_layers, dropout, train, …).
BETWEEN_LAYERS = re.compile(r"^(lstm|gru|rnn_\w+)\.input$")
# Which of several equal elements is chosen, or comes first, is left open.
CHOOSES = {"sort": "dim", "argsort": "dim", "topk": "dim", "kthvalue": "dim", "median": "dim", "nanmedian": "dim", "mode": "dim"}
NEAR = {torch.float64: (1e-9, 1e-11), torch.complex128: (1e-9, 1e-11), torch.float16: (2e-2, 2e-3),
        torch.bfloat16: (6e-2, 1e-2)}
ROUGH = (torch.float16, torch.bfloat16)


# ---- arguments ----

def as_tenon(value):
    """The same argument for Tenon: a tensor's whole storage is copied, so that strides and offset are the same."""
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            made = tenon.empty_strided(tuple(value.size()), value.stride(), dtype=dtype_of(value), device="meta")
        else:
            whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
            made = tenon.empty(whole.numel(), dtype=dtype_of(value))
            if whole.numel():
                copy = whole.view(torch.uint8).clone()  # what NumPy has seen cannot be resized
                made.view(tenon.uint8).copy_(tenon.from_numpy(numpy.array(copy.numpy())))
            if value.stride() != made.stride() or value.size() != made.size() or value.storage_offset():
                # No view of it: some operators treat views otherwise.
                made = tenon.empty(0, dtype=made.dtype).set_(made.untyped_storage(), value.storage_offset(),
                                                             tuple(value.size()), value.stride())
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return type(value)(as_tenon(item) for item in value)
    if isinstance(value, dict):
        return {key: as_tenon(item) for key, item in value.items()}
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(tenon, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return tenon.device(str(value))
    return value


def dtype_of(tensor):
    return getattr(tenon, str(tensor.dtype).split(".")[1])


def with_grad(value):
    if isinstance(value, torch.Tensor) and value.device.type != "meta" and (value.is_floating_point() or value.is_complex()):
        return value.requires_grad_()
    if isinstance(value, list):
        return [with_grad(item) for item in value]
    return value


def own(value):
    """A tensor that is no view: some operators treat views otherwise."""
    if isinstance(value, list):
        return [own(item) for item in value]
    if not isinstance(value, torch.Tensor) or value.device.type == "meta" or not value._is_view():
        return value
    made = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage(), value.storage_offset(), value.size(), value.stride())
    return made.requires_grad_() if value.requires_grad else made


def arguments(text, grad):
    given, named = [], {}
    for piece in split(text):
        key, equals, rest = piece.partition("=")
        is_named = equals and re.match(r"[A-Za-z_]\w*$", key.strip())
        value = own(parse(rest if is_named else piece))
        value = with_grad(value) if grad and ".number" not in piece else value
        if is_named:
            named[key.strip()] = value
        else:
            given.append(value)
    return given, named


def leaves(values):
    for value in values:
        if isinstance(value, (torch.Tensor, tenon.Tensor)):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from leaves(value)
        elif isinstance(value, dict):
            yield from leaves(value.values())


def is_random(op, given, named):
    if BETWEEN_LAYERS.match(op):
        dropout = given[5] if len(given) > 5 else named.get("dropout", 0)
        train = given[6] if len(given) > 6 else named.get("train", False)
        return isinstance(dropout, (int, float, torch.Tensor)) and bool(dropout > 0) and bool(train)
    return bool(RANDOM.search(op)) or bool(named.get("dropout_p"))


# ---- calls ----

HOMES = ("", "special", "linalg", "fft")


def functions_of(library, op, operator=True, functions=True):
    """As Python offers it, and the operator itself: what it takes is not what the function takes."""
    name, _, overload = op.partition(".")
    packet = getattr(library.ops.aten, name, None) if operator else None
    operators = [packet and getattr(packet, overload or "default", None), packet]
    if not functions and any(operators):
        return [entry for entry in operators if entry is not None]
    found = [getattr(getattr(library, home, None) if home else library, name, None) for home in HOMES]
    home, _, rest = name.partition("_")
    if home and home in HOMES and rest:
        found.insert(0, getattr(getattr(library, home), rest, None))
    method = getattr(library.Tensor, name, None)
    if method is not None and not callable(method):
        method = lambda tensor: getattr(tensor, name)  # noqa: E731: a property
    found.append(method)
    found.append(getattr(library._C._nn, name, None))
    return [function for function in found + operators if callable(function)]


# Who is being called, for whoever finds the process gone.
CALLING = mmap.mmap(-1, 5)


def written(op, named):
    """The arguments as Python has them: several results that are given are one tuple, `out`."""
    outs = [key for key in named if key == "out" or re.match(r"save_|out\d|grad_input|values|indices|min|max|mean|rstd", key)]
    if "out" in op and len(outs) > 1:
        rest = {key: value for key, value in named.items() if key not in outs}
        rest["out"] = tuple(named[key] for key in outs)
        return rest
    return None


# No overload takes these arguments.
MISFIT = re.compile(r"Expected a value of type|expected at most \d+ argument|Unknown keyword argument|is missing value for argument|"
                    r"Overloaded torch operator invoked from Python failed")


def call(library, op, given, named, operator=True, functions=True):
    """(result, None) or (None, exception): of the first way to call it that takes the arguments."""
    CALLING[:] = library.__name__.encode()
    failed = None
    for function in functions_of(library, op, operator, functions):
        for words in (named, written(op, named)):
            if words is None:
                continue
            try:
                return function(*given, **words), None
            except TypeError as error:  # Python spells the arguments of some otherwise
                failed = failed or error
            except RuntimeError as error:
                if not MISFIT.search(str(error)):
                    return None, error
                failed = failed or error
            except Exception as error:  # noqa: BLE001
                return None, error
    return None, failed


# ---- comparing ----

def call_both(op, given, named, mine_given, mine_named):
    """What call gives of Tenon, and of PyTorch. The operator itself is called only where PyTorch's functions refuse the arguments."""
    functions = bool(functions_of(torch, op, operator=False))
    theirs = call(torch, op, given, named, operator=not functions)
    operator = not functions or isinstance(theirs[1], TypeError)
    if operator and functions:
        theirs = call(torch, op, given, named)
    return call(tenon, op, mine_given, mine_named, operator, functions), theirs


def array(t):
    t = t.detach()
    if t.is_sparse:
        t = t.to_dense()
    if isinstance(t, torch.Tensor):
        t = t.resolve_conj().resolve_neg()
    if str(t.dtype).split(".")[1] == "bfloat16":
        t = t.float()
    return t.numpy(force=True)


def coarse(given, named, every):
    """The dtypes of arguments that a result may be as coarse as: halves, and every one where the result is cast."""
    dtypes = [t.dtype for t in leaves(list(given) + list(named.values()))]
    if every and dtypes and not any(t.is_floating_point() or t.is_complex() for t in leaves(given)):
        dtypes.append(torch.float32)  # what whole numbers are computed in
    return [dtype for dtype in dtypes if dtype in ROUGH or (every and (dtype.is_floating_point or dtype.is_complex))]


def nearness(dtypes):
    """(relative, absolute): by the coarsest dtype that took part."""
    return max((NEAR.get(dtype, (3e-5, 5e-6)) for dtype in dtypes), default=(3e-5, 5e-6))


def same_tensor(a, b, strides=True, values=True, among=()):
    """What differs, or None. a is Tenon's; among: dtypes of what it was computed from."""
    if str(a.dtype).split(".")[1] != str(b.dtype).split(".")[1]:
        return "dtype %s, not %s" % (a.dtype, b.dtype)
    if tuple(a.shape) != tuple(b.shape):
        return "shape %s, not %s" % (tuple(a.shape), tuple(b.shape))
    if strides and b.numel() > 0:
        mine = [s for s, n in zip(a.stride(), a.shape) if n != 1]
        theirs = [s for s, n in zip(b.stride(), b.shape) if n != 1]
        if mine != theirs:
            return "strides %s, not %s" % (tuple(a.stride()), tuple(b.stride()))
    if not values or b.device.type == "meta":
        return None
    x, y = array(a), array(b)
    if x.dtype == bool or x.dtype.kind in "iu":
        same = bool((x == y).all())
    else:
        rtol, atol = nearness([b.dtype, *among])
        # A sum is as exact as the largest of its terms lets it be.
        size = numpy.abs(y[numpy.isfinite(y)]).max() if numpy.isfinite(y).any() else 0
        same = bool(numpy.allclose(x, y, rtol=rtol, atol=atol * max(1, float(size)), equal_nan=True))
    if same:
        return None
    with numpy.errstate(invalid="ignore"):
        apart = numpy.abs(x.astype(complex) - y.astype(complex))
    worst = numpy.nanmax(apart) if x.size and not numpy.isnan(apart).all() else float("nan")
    return "values differ by up to %.3g" % worst


def same(a, b, **options):
    if isinstance(b, torch.Tensor):
        return same_tensor(a, b, **options) if isinstance(a, tenon.Tensor) else "%s, not a tensor" % type(a).__name__
    if isinstance(b, (list, tuple)):
        if not isinstance(a, (list, tuple)) or len(a) != len(b):
            return "%s, not %d results" % (type(a).__name__, len(b))
        for x, y in zip(a, b):
            found = same(x, y, **options)
            if found:
                return found
        return None
    if isinstance(b, float) and isinstance(a, float):
        return None if a == b or abs(a - b) <= 1e-5 * abs(b) or (a != a and b != b) else "%r, not %r" % (a, b)
    if isinstance(b, (torch.dtype, torch.device, torch.memory_format)):
        return None if str(a).split(".")[-1] == str(b).split(".")[-1] else "%s, not %s" % (a, b)
    return None if a == b and type(a) is type(b) else "%r, not %r" % (a, b)


def chooses(op, mine, theirs, given, named):
    """Whether the two differ only in which of several equal elements they chose."""
    name = op.partition(".")[0]
    results = list(leaves([mine])), list(leaves([theirs]))
    if not given and "input" in named:
        given, named = [named["input"]], {key: value for key, value in named.items() if key != "input"}
    if name not in CHOOSES or not given or given[0].dim() == 0:
        return False
    place = named.get("dim", next((value for value in given[1 if name not in ("topk", "kthvalue") else 2:]
                                   if isinstance(value, int) and not isinstance(value, bool)), -1))
    whole = array(given[0])
    if not whole.size:
        return False
    if len(results[1]) == 2 and same_tensor(results[0][0], results[1][0]):
        return False
    picked = array(results[0][-1]), array(results[1][-1])
    if picked[0].shape == picked[1].shape and picked[0].ndim == whole.ndim - 1:
        picked = tuple(numpy.expand_dims(index, place) for index in picked)
    if picked[0].shape != picked[1].shape or picked[0].ndim != whole.ndim:
        return False
    distinct = all(len(set(line)) == len(line) for line in numpy.moveaxis(picked[0], place, -1).reshape(-1, picked[0].shape[place]))
    return distinct and numpy.array_equal(*(numpy.take_along_axis(whole, index, place) for index in picked), equal_nan=True)


# Vectors are known up to a factor of size 1, and those of equal values, or of none, up to a rotation.
SPECTRA = re.compile(r"(_?linalg_eigh|_?linalg_eig(vals)?|_?linalg_svd|svd)(\.\w+)?$")


def same_values(a, b, **options):
    """What differs between eigenvalues, whose order is that of an algorithm."""
    x, y = array(a), array(b)
    if x.ndim and x.size:
        rows = numpy.array(x).reshape(-1, x.shape[-1])
        for row, wanted in zip(rows, y.reshape(-1, y.shape[-1])):
            for i, value in enumerate(wanted):
                nearest = i + int(numpy.argmin(numpy.abs(row[i:] - value)))
                row[[i, nearest]] = row[[nearest, i]]
        a = tenon.from_numpy(rows.reshape(x.shape))
    return same_tensor(a, b, strides=False, **options)


def same_spectrum(op, mine, theirs, given, named, **options):
    """What differs, or None: layouts, values, and whether the vectors do what vectors are to do."""
    found = same(mine, theirs, values=False)
    if found:
        return found
    got, wanted = list(leaves([mine])), list(leaves([theirs]))
    at = 1 if "svd" in op else 0
    by_eig = "eig" in op and "eigh" not in op
    found = (same_values if by_eig else same_tensor)(got[at], wanted[at], **options)
    if "eigvals" in op or found or not all(t.numel() for t in got) or named.get("compute_uv") is False:
        return found
    a, parts = array(given[0]).astype(complex), [array(t).astype(complex) for t in got]
    near = 1e-4 if given[0].dtype in (torch.float32, torch.complex64) else 1e-9
    if "svd" in op:
        u, s, v = parts
        v = v if op.startswith("svd") else numpy.conj(numpy.swapaxes(v, -1, -2))
        k = s.shape[-1]
        whole = (u[..., :k] * s[..., None, :]) @ numpy.conj(numpy.swapaxes(v[..., :k], -1, -2))
        orthogonal = [u, v]
    else:
        values, u = parts
        if by_eig:  # of some matrices the vectors are no base
            same_product = numpy.allclose(a @ u, u * values[..., None, :], atol=near * max(1, numpy.abs(a).max()))
            return None if same_product else "values: the matrix does something else to its vectors"
        whole = (u * values[..., None, :]) @ numpy.conj(numpy.swapaxes(u, -1, -2))
        upper = str(given[1] if len(given) > 1 else named.get("UPLO", "L")).upper() == "U"
        half = numpy.triu(a, 1) if upper else numpy.tril(a, -1)
        diagonal = numpy.real(numpy.einsum("...ii->...i", a))
        a = half + numpy.conj(numpy.swapaxes(half, -1, -2)) + diagonal[..., None] * numpy.eye(a.shape[-1])
        orthogonal = [u]
    for q in orthogonal:
        if not numpy.allclose(numpy.conj(numpy.swapaxes(q, -1, -2)) @ q, numpy.eye(q.shape[-1]), atol=near):
            return "values: vectors are not orthogonal"
    return None if numpy.allclose(whole, a, atol=near * max(1, numpy.abs(a).max())) else "values: the product is another matrix"


def same_error(mine, theirs):
    if mine is None:
        return "no error, but %s: %s" % (type(theirs).__name__, str(theirs).split("\n")[0][:100])
    if theirs is None:
        return "%s: %s" % (type(mine).__name__, str(mine).split("\n")[0][:100])
    if type(mine).__name__ != type(theirs).__name__ and not isinstance(theirs, type(mine)):
        return "%s, not %s: %s" % (type(mine).__name__, type(theirs).__name__, str(theirs).split("\n")[0][:100])
    return None


def scalar_of(results):
    total = None
    for i, t in enumerate(leaves(results if isinstance(results, (list, tuple)) else [results])):
        if not t.requires_grad:
            continue
        part = (t * t.conj()).real.sum() if t.is_complex() else (t.double() * t.double() * (0.25 + i)).sum()
        total = part if total is None else total + part
    return total


def gradients(library, results, given, named):
    CALLING[:] = library.__name__.encode()
    total = scalar_of(results)
    inputs = [t for t in leaves(list(given) + list(named.values())) if t.requires_grad]
    if total is None or not inputs:
        return None
    return library.autograd.grad(total, inputs, allow_unused=True)


def is_zero(gradient):
    return gradient is None or not bool((gradient != 0).any())


def compare_gradients(op, made):
    """None: the same, or nothing to compare. made(): fresh (given, named) that require grad."""
    given, named = made()
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    (mine, error), (theirs, their_error) = call_both(op, given, named, mine_given, mine_named)
    if their_error is not None:
        return None
    try:
        wanted = gradients(torch, theirs, given, named)
    except Exception:  # noqa: BLE001
        return None
    if wanted is None:
        return None
    if error is not None:
        return "with gradients: %s" % str(error).split("\n")[0][:100]
    try:
        got = gradients(tenon, mine, mine_given, mine_named)
    except Exception as error:  # noqa: BLE001
        return "gradient: %s" % str(error).split("\n")[0][:100]
    if got is None:
        return None if all(is_zero(y) for y in wanted) else "no gradient"
    # A result that was asked for in another dtype was computed in that one.
    among = coarse(given, named, True) + [t.dtype for t in leaves([theirs]) if t.is_floating_point() or t.is_complex()]
    for x, y in zip(got, wanted):
        if y is None or x is None:
            if not (is_zero(x) and is_zero(y)):
                return "one gradient is None"
            continue
        found = same_tensor(x, y, among=among)
        if found:
            return "gradient: " + found
    return None


# ---- forward mode ----

def direction(tensor):
    """Some tangent of it, the same in both libraries."""
    return tensor.detach() * 0.5 + 0.25


def dual(library, value):
    """The same argument, with a tangent where it may have one."""
    if isinstance(value, (list, tuple)):
        return type(value)(dual(library, item) for item in value)
    if isinstance(value, library.Tensor) and value.requires_grad:
        return library.autograd.forward_ad.make_dual(value.detach(), direction(value))
    return value


def tangents(library, op, given, named, operator=True, functions=True):
    """(tangents of the results, None) or (None, exception)."""
    with library.autograd.forward_ad.dual_level():
        try:
            given, named = dual(library, list(given)), {key: dual(library, value) for key, value in named.items()}
        except RuntimeError as error:  # a tensor that cannot have a tangent
            return None, error
        results, error = call(library, op, given, named, operator, functions)
        if error is not None:
            return None, error
        unpack = library.autograd.forward_ad.unpack_dual
        return [unpack(t).tangent for t in leaves(results if isinstance(results, (list, tuple)) else [results])
                if t.is_floating_point() or t.is_complex()], None


def compare_tangents(op, made):
    """None: the same, or nothing to compare. made(): fresh (given, named) that require grad."""
    given, named = made()
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    functions = bool(functions_of(torch, op, operator=False))
    wanted, their_error = tangents(torch, op, given, named, not functions)
    if their_error is not None or not any(t is not None for t in wanted):
        return None
    got, error = tangents(tenon, op, mine_given, mine_named, not functions, functions)
    if error is not None:
        return "tangent: %s" % str(error).split("\n")[0][:100]
    among = coarse(given, named, True) + [t.dtype for t in wanted if t is not None]
    for x, y in zip(got, wanted):
        if y is None or x is None:
            if not (is_zero(x) and is_zero(y)):
                return "one tangent is None"
            continue
        found = same_tensor(x, y, strides=False, among=among)
        if found:
            return "tangent: " + found
    return None


# Of a matrix that is not positive definite: the part that is factored, and where it ended.
FAILING = re.compile(r"linalg_cholesky_ex$")


def same_factor(mine, theirs, **options):
    found = same(mine, theirs, values=False)
    if found or not mine[0].numel():
        return found
    ends = array(mine[1]), array(theirs[1])
    if ((ends[0] > 0) != (ends[1] > 0)).any():
        return "values: one of them fails"
    parts = [numpy.array(array(result[0])) for result in (mine, theirs)]
    for index, end in numpy.ndenumerate(numpy.minimum(*ends)):
        if end > 0:
            for part in parts:
                part[index][end - 1:, :] = part[index][:, end - 1:] = 0
    found = same_tensor(tenon.from_numpy(parts[0]), torch.from_numpy(parts[1]), strides=False, **options)
    return found or ("" if ends[0].any() else None)


def compare_results(op, theirs_in, mine_in, mine, theirs):
    """What differs between two results and what was written in place, or None; "" where they chose another of several equal elements,
    or found no whole factor, so that gradients differ too. theirs_in, mine_in: (given, named)."""
    given, named = theirs_in
    values = not is_random(op, given, named)
    among = coarse(given, named, "out" in named)
    if SPECTRA.match(op):
        found = same_spectrum(op, mine, theirs, given, named, among=among)
    elif FAILING.match(op):
        found = same_factor(mine, theirs, among=among)
    else:
        found = same(mine, theirs, values=values, among=among)
    if found and found.startswith("values") and chooses(op, mine, theirs, given, named):
        return ""
    if found is None:
        before, after = list(given) + list(named.values()), list(mine_in[0]) + list(mine_in[1].values())
        for x, y in zip(leaves(after), leaves(before)):
            found = found or same_tensor(x, y, values=values and not SPECTRA.match(op), among=among)
    return found


def compare(op, made, gradient=True, forward=False):
    """What differs, or None, with the texts of both errors. made(grad): fresh (given, named), the same each time."""
    given, named = made(False)
    values = not is_random(op, given, named)
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    (mine, my_error), (theirs, their_error) = call_both(op, given, named, mine_given, mine_named)
    if my_error is not None or their_error is not None:
        texts = [str(error).split("\n")[0].strip() for error in (my_error, their_error)]
        return same_error(my_error, their_error), texts if my_error is not None and their_error is not None else None
    found = compare_results(op, (given, named), (mine_given, mine_named), mine, theirs)
    if found is None and gradient and values:
        found = compare_gradients(op, lambda: made(True)) or (forward and compare_tangents(op, lambda: made(True)))
    return found or None, None
