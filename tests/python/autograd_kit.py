# SPDX-License-Identifier: MIT
"""What the scenarios of autograd share (autograd_scenarios.py): where they are listed, what they write to."""

import importlib
import re
import warnings

SCENARIOS = {}
SAID_ONCE = ("Using backward() with create_graph=True", "Casting complex values to real", "Attempted to insert a get_attr Node")


def scenario(fn):
    assert fn.__name__ not in SCENARIOS, fn.__name__
    SCENARIOS[fn.__name__] = fn
    return fn


def text(value):
    """Tensors as numbers with five digits, addresses and the library's name taken out."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, complex):
        return f"({text(value.real)}, {text(value.imag)})"
    if isinstance(value, float):
        return f"{value + 0.0:.5g}" if abs(value) > 1e-12 else "0"
    if hasattr(value, "tolist"):
        return text(value.detach().tolist())
    return re.sub(r"0x[0-9a-f]+", "0x", str(value)).replace("tenon", "torch")


class Log(list):
    def add(self, *values):
        self.append(" ".join(text(v) for v in values))

    def tries(self, call, *args):
        """What a call gives, or the first line of what it raises."""
        try:
            self.add("ok", call(*args))
        except Exception as e:
            self.add(type(e).__name__, str(e).split("\n")[0])


def run(lib, name):
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            SCENARIOS[name](lib, log)
        except Exception as e:
            log.add("ended with", type(e).__name__, str(e).split("\n")[0])
    for w in caught:
        message = str(w.message).split("\n")[0].split(" (Triggered internally")[0]
        # PyTorch's own code; and what is said once in a process, whoever comes first
        if "torch.jit.script" not in message and not message.startswith(SAID_ONCE):
            log.add("warned", w.category.__name__, message)
    return list(log)


def module(torch, name):
    return importlib.import_module(torch.__name__ + "." + name)


def leaf(torch, *values):
    return torch.tensor([float(v) for v in values], dtype=torch.float64, requires_grad=True)
