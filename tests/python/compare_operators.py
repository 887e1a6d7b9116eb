#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every operator that both libraries have, over the samples of its declaration, beside PyTorch.

    PYTHONPATH=build/python python3 tests/python/compare_operators.py [--write docs/user/torch-operators.md] [NAME…]

Runs where PyTorch and NumPy are installed. Compares values, dtypes, sizes, strides, errors and gradients, prints a table by family
of operators and each sample that differs. The tests do not need it: it is how the page in docs/user was made."""

import argparse
import json
import mmap
import os
import re
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "golden"))

import numpy  # noqa: E402
import torch  # noqa: E402
from literal import parse, split  # noqa: E402
import tenon  # noqa: E402

warnings.simplefilter("ignore")
RANDOM = re.compile(r"dropout|rrelu|rand|empty|normal|bernoulli|multinomial|uniform|exponential|cauchy|geometric|poisson|"
                    r"binomial|_standard_gamma|dirichlet|resize|new_empty|exponential")
NEAR = {torch.float64: (1e-9, 1e-11), torch.complex128: (1e-9, 1e-11), torch.float16: (2e-2, 2e-3),
        torch.bfloat16: (6e-2, 1e-2)}


def declarations():
    """(file, operator, samples, error samples)."""
    for name in sorted(os.listdir(os.path.join(ROOT, "ops"))):
        with open(os.path.join(ROOT, "ops", name), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        for head, body in re.findall(r"^op ([\w.]+)\(.*?\{\n(.*?)^\}", text, re.M | re.S):
            yield (name[:-3], head, re.findall(r"^  sample\s+(.*)$", body, re.M),
                   re.findall(r"^  error\s+\w+ \"(?:[^\"\\]|\\.)*\" :\s*(.*)$", body, re.M))


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
                made.view(tenon.uint8).copy_(tenon.from_numpy(numpy.array(whole.view(torch.uint8).numpy())))
            if value.stride() != made.stride() or value.size() != made.size() or value.storage_offset():
                made = made.as_strided(tuple(value.size()), value.stride(), value.storage_offset())
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return [as_tenon(item) for item in value]
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


def arguments(text, grad):
    given, named = [], {}
    for piece in split(text):
        key, equals, rest = piece.partition("=")
        is_named = equals and re.match(r"[a-z_]\w*$", key.strip())
        value = parse(rest if is_named else piece)
        value = with_grad(value) if grad else value
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


# ---- calls ----

HOMES = ("", "special", "linalg", "fft")


def functions_of(library, op):
    """As Python offers it, and the operator itself."""
    name, _, overload = op.partition(".")
    found = [getattr(getattr(library, home, None) if home else library, name, None) for home in HOMES]
    found.append(getattr(library.Tensor, name, None))
    if library is torch:
        packet = getattr(torch.ops.aten, name, None)
        found.append(packet and getattr(packet, overload or "default", None))
    else:
        found.append(getattr(tenon._C._nn, name, None))
    return [function for function in found if callable(function)]


# Who is being called, for whoever finds the process gone.
CALLING = mmap.mmap(-1, 5)


def call(library, op, given, named):
    CALLING[:] = library.__name__.encode()
    failed = None
    for function in functions_of(library, op):
        try:
            return function(*given, **named), None
        except TypeError as error:  # Python spells the arguments of some otherwise
            failed = failed or error
        except Exception as error:  # noqa: BLE001
            return None, error
    return None, failed


# ---- comparing ----

def array(t):
    t = t.detach()
    name = str(t.dtype).split(".")[1]
    if name == "bfloat16":
        t = t.float()
    return t.numpy(force=True)


def same_tensor(a, b, strides=True, values=True):
    """What differs, or None. a is Tenon's."""
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
    rtol, atol = NEAR.get(b.dtype, (3e-5, 5e-6))
    x, y = array(a), array(b)
    if x.dtype == bool or x.dtype.kind in "iu":
        same = bool((x == y).all())
    else:
        same = bool(numpy.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True))
    if same:
        return None
    worst = numpy.nanmax(numpy.abs(x.astype(complex) - y.astype(complex))) if x.size else 0
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
    if isinstance(b, float):
        return None if a == b or abs(a - b) <= 1e-5 * abs(b) or (a != a and b != b) else "%r, not %r" % (a, b)
    if isinstance(b, (torch.dtype, torch.device, torch.memory_format)):
        return None if str(a).split(".")[-1] == str(b).split(".")[-1] else "%s, not %s" % (a, b)
    return None if a == b else "%r, not %r" % (a, b)


def same_error(mine, theirs):
    if mine is None:
        return "no error, but %s" % type(theirs).__name__
    if theirs is None:
        return "%s: %s" % (type(mine).__name__, str(mine).split("\n")[0][:100])
    if type(mine).__name__ != type(theirs).__name__ and not isinstance(theirs, type(mine)):
        return "%s, not %s" % (type(mine).__name__, type(theirs).__name__)
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
    total = scalar_of(results)
    inputs = [t for t in leaves(list(given) + list(named.values())) if t.requires_grad]
    if total is None or not inputs:
        return None
    return library.autograd.grad(total, inputs, allow_unused=True)


def compare_gradients(op, text):
    """None: the same, or nothing to compare."""
    given, named = arguments(text, grad=True)
    theirs, error = call(torch, op, given, named)
    if error is not None:
        return None
    mine_given, mine_named = as_tenon(given), {key: as_tenon(value) for key, value in named.items()}
    try:
        wanted = gradients(torch, theirs, given, named)
    except Exception:  # noqa: BLE001
        return None
    if wanted is None:
        return None
    mine, error = call(tenon, op, mine_given, mine_named)
    if error is not None:
        return "with gradients: %s" % str(error).split("\n")[0][:100]
    try:
        got = gradients(tenon, mine, mine_given, mine_named)
    except Exception as error:  # noqa: BLE001
        return "gradient: %s" % str(error).split("\n")[0][:100]
    if got is None:
        return "no gradient"
    for x, y in zip(got, wanted):
        if y is None or x is None:
            if (y is None) != (x is None) and (y is None or bool((y != 0).any())):
                return "one gradient is None"
            continue
        found = same_tensor(x, y, strides=False)
        if found:
            return "gradient: " + found
    return None


def compare(op, text):
    """What differs, or None."""
    values = not RANDOM.search(op)
    given, named = arguments(text, grad=False)
    mine_given, mine_named = as_tenon(given), {key: as_tenon(value) for key, value in named.items()}
    theirs, their_error = call(torch, op, given, named)
    mine, my_error = call(tenon, op, mine_given, mine_named)
    if my_error is not None or their_error is not None:
        return same_error(my_error, their_error)
    found = same(mine, theirs, values=values)
    if found is None:  # what was written in place
        for x, y in zip(leaves(mine_given), leaves(given)):
            found = found or same_tensor(x, y, values=values)
    return found or (compare_gradients(op, text) if values else None)


# ---- the whole ----

def compare_errors(op, text):
    """(what differs or None, whether the first lines are the same)."""
    given, named = arguments(text, grad=False)
    mine = call(tenon, op, as_tenon(given), {key: as_tenon(value) for key, value in named.items()})[1]
    theirs = call(torch, op, given, named)[1]
    return same_error(mine, theirs), str(mine).split("\n")[0].strip() == str(theirs).split("\n")[0].strip()


def each(op, samples):
    """What compare and compare_errors say of each (text, is an error), from a child: some calls end PyTorch's process."""
    at = 0
    while at < len(samples):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                for text, fails in samples[at:]:
                    answer = compare_errors(op, text) if fails else (compare(op, text), False)
                    out.write(json.dumps(answer) + "\n")
                    out.flush()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            for line in lines:
                yield samples[at], json.loads(line)
                at += 1
        if os.waitpid(child, 0)[1] != 0:
            yield samples[at], ("the process ended (%s)" % CALLING[:].decode(), False)
            at += 1


def run(names):
    rows, differing, missing, ended, texts = {}, [], [], [], [0, 0]
    for family, op, samples, errors in declarations():
        if names and op.split(".")[0] not in names:
            continue
        if not functions_of(torch, op):
            missing.append(op)
            continue
        row = rows.setdefault(family, [0, 0, 0])
        row[0] += 1
        for (text, fails), (found, same_text) in each(op, [(s, False) for s in samples] + [(s, True) for s in errors]):
            if found == "the process ended (torch)":
                ended.append("%s(%s)" % (op, text))
                continue
            row[1] += 1
            row[2] += found is None
            texts[0] += fails
            texts[1] += same_text
            if found:
                differing.append((op, text, found))
    return rows, differing, missing, ended, texts


def report(rows, differing, missing, ended, texts):
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    lines = ["# Operators beside PyTorch", "",
             "Made by `tests/python/compare_operators.py` with PyTorch %s. Every operator that both have, called from Python over the"
             % torch.__version__.split("+")[0],
             "samples of its declaration (`ops/*.op`): values, dtypes, sizes, strides, what is written in place, errors, and gradients.", "",
             "**%d of %d samples of %d operators are equal.** Of %d errors, %d have the same first line." %
             (total[2], total[1], total[0], texts[0], texts[1]), "",
             "| family | operators | samples | equal |", "|---|---|---|---|"]
    lines += ["| %s | %d | %d | %d |" % ((family,) + tuple(row)) for family, row in sorted(rows.items())]
    lines += ["", "## What differs", "", "Reasons for most of it stand in [differences](../differences.md).", "",
              "| operator | sample | Tenon gives |", "|---|---|---|"]
    lines += ["| `%s` | `%s` | %s |" % (op, text.replace("|", "\\|"), found.replace("|", "\\|").replace("<", "&lt;"))
              for op, text, found in differing]
    lines += ["", "Calls that end PyTorch's process: %s." % (", ".join("`%s`" % text for text in ended) or "none")]
    lines += ["", "Without a counterpart in PyTorch's Python: %s." % (", ".join("`%s`" % op for op in missing) or "none"), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="also write the page")
    parser.add_argument("names", nargs="*", help="these operators alone")
    options = parser.parse_args()
    page = report(*run(options.names))
    print(page)
    if options.write:
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(page)


if __name__ == "__main__":
    main()
