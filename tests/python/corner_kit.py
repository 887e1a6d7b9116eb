# SPDX-License-Identifier: MIT
"""What the numeric corners share (corner_scenarios.py): where they are listed, what they write to. A corner is a function of the
library and a log; what it logs with PyTorch is kept in golden/corners.json."""

import math
import re
import warnings

CORNERS = {}
inf, nan = math.inf, math.nan


def corner(fn):
    assert fn.__name__ not in CORNERS, fn.__name__
    CORNERS[fn.__name__] = fn
    return fn


def number(value):
    """Five digits; the sign of a zero counts."""
    return f"{value:.5g}"


def text(value):
    """A tensor as its dtype and numbers, a container by its elements; the library's name and addresses taken out."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, complex):
        return f"({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float):
        return number(value)
    if hasattr(value, "tolist"):
        shape = "x".join(map(str, value.shape))
        return f"{str(value.dtype).split('.')[-1]}[{shape}]{text(value.detach().tolist())}"
    return re.sub(r"0x[0-9a-f]+", "0x", str(value)).replace("tenon", "torch")


class Log(list):
    def add(self, *values):
        self.append(" ".join(text(v) for v in values))

    def tries(self, call, *args, **kwargs):
        """What a call gives, or the class and first line of what it raises."""
        try:
            made = call(*args, **kwargs)
        except Exception as e:
            self.append(f"{type(e).__name__}: " + text(str(e).split("\n")[0]))
        else:
            self.add(made)


def run(lib, name):
    log = Log()
    lib.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CORNERS[name](lib, log)
    for w in caught:
        message = str(w.message).split("\n")[0].split(" (Triggered internally")[0]
        log.append(f"warned {w.category.__name__}: {message}")
    return list(log)
