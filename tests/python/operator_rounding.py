# SPDX-License-Identifier: MIT
"""Whether a difference between the two libraries is one of rounding: for operators of linear algebra, whose results may move as far as one
likes when the last bit of a matrix does. For compare_operators.py, which see.

Nothing is known of the operator. Its arguments are moved by a few last bits, and both libraries asked again: a difference that is no
larger than what this does to the results of one of them says nothing about either. A matrix without full rank is such a case, and
what is made of it (an inverse, or the error that there is none; the vectors of a zero; pivots between numbers that are nothing but
rounding) is then left out. Where results are well determined nothing is."""

import re

import numpy
from operator_calls import array, as_tenon, call_both, gradients, leaves, tenon, torch

MATRICES = re.compile(r"_?linalg_.*|(log|slog)?det|inverse|pinverse|nuclear_norm|matrix_power|qr|svd|geqrf|or[gm]qr|lu_(solve|unpack)|cholesky\w*|triangular_solve")
NO_RANK = re.compile(r"singular|is zero|solver failed|converge|not positive-definite|lacks? rank")
TRIALS = 6
BITS = 8  # by how many of the last ones arguments are moved: libraries round a few times on their way
FACTOR = 16  # trials are few


def moved(made, grad, chance):
    """Fresh arguments, of which every number is off by some last bits of the largest."""
    given, named = made(grad)
    for t in leaves(list(given) + list(named.values())):
        if t.device.type == "meta" or not (t.is_floating_point() or t.is_complex()) or not t.numel():
            continue
        with torch.no_grad():
            sizes = t.detach().abs()
            size = float(sizes[sizes.isfinite()].double().max()) if bool(sizes.isfinite().any()) else 0.0
            whole = torch.empty(0, dtype=t.dtype).set_(t.detach().untyped_storage())
            noise = torch.tensor(chance.uniform(-1, 1, whole.numel()), dtype=torch.float64)
            if t.is_complex():
                noise = torch.complex(noise, torch.tensor(chance.uniform(-1, 1, whole.numel())))
            whole.add_((noise * (BITS * torch.finfo(t.dtype).eps * size)).to(t.dtype))
    return given, named


def outcomes(op, given, named, grad):
    """Of Tenon and of PyTorch: the arrays that come out, or the error."""
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    found = []
    calls = ((tenon, mine_given, mine_named), (torch, given, named))
    for (library, own, words), (result, error) in zip(calls, call_both(op, given, named, mine_given, mine_named)):
        if error is None and grad:
            try:
                result = [t for t in gradients(library, result, own, words) or () if t is not None]
            except Exception as failed:  # noqa: BLE001
                error = failed
        if error is not None:
            found.append(error)
        else:
            found.append([array(t) for t in leaves(result if isinstance(result, (list, tuple)) else [result])])
    return found


def kind(outcome):
    """An error without its numbers; None of what is none."""
    return re.sub(r"\(Batch element \d+\): |\d+", "", str(outcome).split("\n")[0]) if isinstance(outcome, Exception) else None


def exact(x):
    """What of an array has to be equal: whole numbers, and where the others are none."""
    return x if x.dtype.kind in "iub" else numpy.isfinite(x)


def distance(x, y):
    both = numpy.isfinite(x) & numpy.isfinite(y)
    return float(numpy.abs(x[both].astype(complex) - y[both].astype(complex)).max()) if both.any() else 0.0


def is_rounding(op, made, found):
    """Whether moving the arguments by some last bits does as much as `found` says."""
    if not MATRICES.fullmatch(op.partition(".")[0]) or re.match(r"dtype|shape|strides|gradient: (dtype|shape|strides)", found):
        return False
    chance, grad = numpy.random.default_rng(1), "gradient" in found
    mine, theirs = outcomes(op, *made(grad), grad)
    trials = [outcomes(op, *moved(made, grad, chance), grad) for _ in range(TRIALS)]
    failed = [kind(outcome) for outcome in (mine, theirs)]
    if failed[0] or failed[1]:
        return bool(NO_RANK.search(failed[0] or failed[1])) and any(
            kind(x) == failed[1] or kind(y) == failed[0] or kind(x) == kind(y) for x, y in trials)
    trials = [[x if len(x) == len(y) and all(a.shape == b.shape for a, b in zip(x, y)) else None for x, y in zip(trial, (mine, theirs))]
              for trial in trials if not any(kind(outcome) for outcome in trial)]
    if len(mine) != len(theirs) or not trials:
        return len(mine) == len(theirs)  # with other last bits there is no result
    for i, (x, y) in enumerate(zip(mine, theirs)):
        around = [(trial[which][i], base) for trial in trials for which, base in ((0, x), (1, y)) if trial[which] is not None]
        if not numpy.array_equal(exact(x), exact(y)) and all(numpy.array_equal(exact(z), exact(base)) for z, base in around):
            return False
        if x.dtype.kind not in "iub" and distance(x, y) > FACTOR * max([distance(z, base) for z, base in around], default=0.0):
            if not near(x, y):
                return False
    return True


def near(x, y):
    """Equal, as far as their dtype says: some results hang on the matrix, others do not."""
    size = numpy.abs(y[numpy.isfinite(y)]).max() if numpy.isfinite(y).any() else 0
    return distance(x, y) <= 16 * float(numpy.finfo(y.dtype).eps) * size
