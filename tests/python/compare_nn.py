# SPDX-License-Identifier: MIT
"""Compares `tenon.nn` with `torch.nn` in one process and prints what differs: cases, scenarios, names and signatures.

    PYTHONPATH=build/python python3 tests/python/compare_nn.py [WORD]

needs a Python with torch and NumPy. WORD chooses the cases that contain it. The exit status says whether all values agree.
"""

import importlib
import inspect
import sys

import nn_cases
import nn_scenarios
import numpy as np
import torch
import torch.nn.attention.flex_attention  # noqa: F401
import torch.nn.utils.prune  # noqa: F401

import tenon

MODULES = (
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.prune",
    "nn.utils.stateless",
    "nn.parameter",
    "nn.attention",
    "nn.attention.flex_attention",
    "nn.modules.module",
    "nn.modules.utils",
    "nn.parallel",
    "utils.hooks",
)


def same(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True)
    return type(a) is type(b) and a == b


def compare_cases(word):
    wrong = 0
    for case in nn_cases.CASES:
        if word not in case[0]:
            continue
        a = nn_cases.run(torch, torch.nn, *case)
        b = nn_cases.run(tenon, tenon.nn, *case)
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b or not same(a[key], b[key]):
                wrong += 1
                print(f"{case[0]}  [{case[1]}]  {key}\n    torch {str(a.get(key))[:200]}\n    tenon {str(b.get(key))[:200]}")
                break
    return wrong


def compare_scenarios(word):
    wrong = 0
    for name in nn_scenarios.NAMES:
        if word in name:
            a, b = nn_scenarios.run(torch, torch.nn, name), nn_scenarios.run(tenon, tenon.nn, name)
            for x, y in zip(a + [""] * len(b), b + [""] * len(a)):
                if x != y:
                    wrong += 1
                    print(f"scenario {name}\n    torch {x[:300]}\n    tenon {y[:300]}")
                    break
    return wrong


def signature(o):
    """Names, kinds and defaults of a callable's parameters; None where it does not say."""
    try:
        found = inspect.signature(o).parameters.values()
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    return [(p.name, p.kind, "" if p.default is empty else "f" if callable(p.default) else repr(p.default)) for p in found]


def compare_names():
    for name in MODULES:
        theirs, ours = importlib.import_module("torch." + name), importlib.import_module("tenon." + name)
        public = [
            n
            for n, o in sorted(vars(theirs).items())
            if n[0] != "_" and str(getattr(o, "__module__", "")).startswith("torch.nn") and not inspect.ismodule(o)
        ]
        missing = [n for n in public if not hasattr(ours, n)]
        differ = []
        for n in public:
            a, b = signature(getattr(theirs, n)), signature(getattr(ours, n, None))
            if a and b and a != b and not any(p[1] == inspect.Parameter.VAR_KEYWORD for p in a):
                differ.append(n)
        print(f"{name}: {len(public)} names, missing: {', '.join(missing) or 'none'}; signatures that differ: {', '.join(differ) or 'none'}")


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    wrong = compare_cases(word) + compare_scenarios(word)
    if not word:
        compare_names()
    print(f"{len(nn_cases.CASES)} cases, {len(nn_scenarios.NAMES)} scenarios, {wrong} differ")
    sys.exit(1 if wrong else 0)


main()
