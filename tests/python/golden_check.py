# SPDX-License-Identifier: MIT
"""Evaluates expressions of golden files with Tenon under the name torch, and compares."""

import cmath
import json
import math
import os
import re
import warnings

import tenon

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def rows(name):
    with open(os.path.join(FOLDER, name + ".json")) as f:
        return json.load(f)


def setup_text():
    """The variables that expressions use, from the script that made them."""
    with open(os.path.join(FOLDER, "make_tensor.py")) as f:
        return re.search(r'SETUP = """(.*?)"""', f.read(), re.S).group(1)


def same_number(a, b):
    if a == b:
        return True
    nan = cmath.isnan if isinstance(a, complex) or isinstance(b, complex) else math.isnan
    return nan(a) and nan(b)


def difference(row, got):
    """None when a result is the expected one, else what differs."""
    if "tensor" in row:
        dtype, shape, values = row["tensor"]
        if not isinstance(got, tenon.Tensor):
            return f"got {got!r}, no tensor"
        if str(got.dtype).rsplit(".", 1)[-1] != dtype or list(got.shape) != shape:
            return f"got {got.dtype} {list(got.shape)}, wanted {dtype} {shape}"
        names = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf)}
        for a, text in zip(got.detach().flatten().tolist(), values):
            if not same_number(a, eval(text, dict(names))):
                return f"got {a!r}, wanted {text}"
        if got.numel() > 1 and list(got.stride()) != row["stride"]:
            return f"strides {list(got.stride())}, wanted {row['stride']}"
        return None
    if "list" in row:
        if len(got) != len(row["list"]):
            return f"got {len(got)} items, wanted {len(row['list'])}"
        for r, g in zip(row["list"], got):
            bad = difference(r, g)
            if bad:
                return bad
        return None
    text = repr(got).replace("torch.Size", "Size").replace("tenon.Size", "Size")
    return None if text == row["repr"] else f"got {text}, wanted {row['repr']}"


def check(row, space):
    """None, or what is wrong with one row."""
    space = dict(space)
    exec(SETUP, space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if "do" in row:
                exec(row["do"], space)
                got = space["r"]
            else:
                got = eval(row["ask"], space)
        except Exception as error:
            if "error" not in row:
                return f"raised {type(error).__name__}: {error}"
            if type(error).__name__ != row["error"]:
                return f"raised {type(error).__name__}: {error}; wanted {row['error']}: {row['text']}"
            if str(error) != row["text"]:
                return f"says {error!s}; wanted {row['text']}"
            return None
    if "error" in row:
        return f"gave {got!r}; wanted {row['error']}: {row['text']}"
    if row.get("warns") and not caught:
        return "did not warn"
    return difference(row, got)


SETUP = setup_text()


def run(case, name, known=()):
    """Checks all rows of a file; `known` has {text: reason} for what differs on purpose."""
    try:
        import numpy
    except ImportError:
        numpy = None
    space = {"torch": tenon, "np": numpy}
    bad, seen, left_out = [], 0, 0
    for row in rows(name):
        text = row.get("ask") or row["do"]
        if text in known:
            continue
        if numpy is None and "np." in text:
            left_out += 1
            continue
        seen += 1
        wrong = check(row, space)
        if wrong:
            bad.append(f"{text!r}: {wrong}")
    if left_out:
        print(f"{left_out} expressions left out: there is no numpy")
    print(f"{name}: {seen} expressions")
    case.assertGreater(seen, 0)
    case.assertEqual(bad, [], "\n" + "\n".join(bad[:60]) + f"\n{len(bad)} of {seen} differ")
