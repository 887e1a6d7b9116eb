#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the public names of PyTorch's modules with Tenon's and writes docs/user/torch-coverage.md.

  tools/torch_coverage.py --names names.json     with PyTorch installed: write the names of its modules
  PYTHONPATH=build/python tools/torch_coverage.py names.json     with Tenon: write the page

Two steps, because the two packages need not share one Python.
"""

import importlib
import json
import os
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULES = ("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
           "torch.nn.utils.rnn", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data",
           "torch.utils.checkpoint", "torch.autograd", "torch.autograd.functional",
           "torch.linalg", "torch.fft", "torch.special", "torch.amp", "torch.distributions", "torch.func", "torch.cuda",
           "torch.distributed", "torch.jit", "torch.compiler", "torch.profiler",
           "torch.library", "torch.overrides", "torch.multiprocessing", "torch.testing", "torch.random", "torch.hub")


def public_names(path):
    """Names that users may use: those of __all__, or those that are not private and not foreign modules."""
    owner = resolve(path)
    if path == "torch.Tensor":
        return sorted(name for name in dir(owner) if not name.startswith("_"))
    names = getattr(owner, "__all__", None)
    if names is None or path in ("torch.nn.functional", "torch.nn", "torch.distributions"):
        names = [name for name in dir(owner) if not isinstance(getattr(owner, name, None), types.ModuleType)]
    # What the module only imports from typing and its like is no part of it.
    foreign = ("typing", "collections", "functools", "enum", "warnings", "builtins", "__future__", "contextlib")
    return sorted({name for name in names if not name.startswith("_") and getattr(
        getattr(owner, name, None), "__module__", None) not in foreign})


def resolve(path):
    words = path.split(".")
    found, at = importlib.import_module(words[0]), words[0]
    for word in words[1:]:
        at += "." + word
        try:
            found = getattr(found, word)
        except AttributeError:
            found = importlib.import_module(at)
    return found


def write_page(names, version):
    import tenon.as_torch
    tenon.as_torch.install()
    rows, lists = [], []
    for path in MODULES:
        wanted = names[path]
        try:
            owner = resolve(path)
            missing = [name for name in wanted if not hasattr(owner, name)]
        except ImportError:
            missing = wanted
        have = len(wanted) - len(missing)
        rows.append("| `%s` | %d | %d | %d %% |" % (path, len(wanted), have, round(100 * have / max(1, len(wanted)))))
        if missing:
            lists.append("## `%s`\n\n%s\n" % (path, ", ".join("`%s`" % name for name in missing)))
    page = ("# Which of PyTorch's names Tenon has\n\n"
            "Written by `tools/torch_coverage.py`, which compares the public names of PyTorch %s with Tenon's. A name "
            "that is here is there; what it does differently, if anything, is in [differences](../differences.md). "
            "A script that runs through `python3 -m tenon.as_torch` and asks for a name that is missing gets an "
            "AttributeError or ImportError with that name.\n\n"
            "| module | names | Tenon has | |\n|---|---|---|---|\n%s\n\n# What is missing\n\n%s"
            % (version, "\n".join(rows), "\n".join(lists)))
    with open(os.path.join(ROOT, "docs", "user", "torch-coverage.md"), "w", encoding="utf-8") as file:
        file.write(page)
    print("\n".join(rows))


def main():
    if sys.argv[1] == "--names":
        import torch
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump({"version": torch.__version__.split("+")[0],
                       "names": {path: public_names(path) for path in MODULES}}, file)
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            content = json.load(file)
        write_page(content["names"], content["version"])


if __name__ == "__main__":
    main()
