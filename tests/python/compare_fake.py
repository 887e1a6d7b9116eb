#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every operator that both libraries have, on tensors without data, beside PyTorch.

    PYTHONPATH=build/python python3 tests/python/compare_fake.py [--meta] [--variants] [NAME…]

Runs where PyTorch and NumPy are installed. The samples of the declarations (with --variants also the calls that
operator_variants.py makes of them) are called with fake tensors, or with meta tensors, in both libraries: sizes, dtypes,
strides, devices, which argument a result shares memory with, what became of the arguments, and errors. A call is fine where
it gives what PyTorch gives for such tensors, or, as the reference's own rules differ in places, what PyTorch gives on the CPU.
The tests do not need it."""

import argparse
import collections
import json
import logging
import re
import warnings

from compare_operators import answers, declarations
from operator_calls import CALLING, arguments, as_tenon, call, functions_of, leaves, tenon, torch
from operator_variants import variants
from tenon._subclasses.fake_tensor import FakeTensorMode as MineMode
from torch._subclasses.fake_tensor import FakeTensorMode as TheirMode

warnings.simplefilter("ignore")
LIMIT = 30  # seconds without an answer
DATA = ("DynamicOutputShapeException", "DataDependentOutputException")


def mapped(value, change, kind):
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change, kind) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change, kind) for key, item in value.items()}
    return value


def to_meta(library):
    def change(t):
        base = library.empty(0, dtype=t.dtype, device="meta")
        size = t.untyped_storage().nbytes() // t.element_size()
        base = library.empty(size, dtype=t.dtype, device="meta")
        return base if t.dim() == 1 and t.numel() == size else library.empty(0, dtype=t.dtype, device="meta").set_(
            base.untyped_storage(), t.storage_offset(), tuple(t.size()), t.stride())
    return change


def strides(t):
    return [s for s, n in zip(t.stride(), t.shape) if n != 1] if t.numel() else []


def look(value, before):
    """Of a result: what can be seen without its data. before: the tensors that were given."""
    if isinstance(value, (torch.Tensor, tenon.Tensor)):
        if value.is_sparse:
            return ["sparse", str(value.dtype).split(".")[1], list(value.shape)]
        same = [i for i, t in enumerate(before) if t is value]
        shares = [i for i, t in enumerate(before) if t.untyped_storage()._cdata == value.untyped_storage()._cdata]
        return [str(value.dtype).split(".")[1], list(value.shape), strides(value), value.storage_offset() if shares and not same else 0,
                str(value.device), same[:1], shares]
    if isinstance(value, (list, tuple)):
        return [look(item, before) for item in value]
    return "%s %s" % (type(value).__name__, str(value).split(".")[-1] if type(value).__module__.split(".")[0] in ("torch", "tenon") else value)


def seen(library, op, given, named, operator, functions):
    before = list(leaves(list(given) + list(named.values())))
    result, error = call(library, op, given, named, operator, functions)
    after = [look(t, before) for t in before]
    if error is not None:
        return {"error": type(error).__name__, "text": str(error).split("\n")[0][:200], "after": after}
    return {"result": look(result, before), "after": after}


def on_device(outcome, device):
    """What was seen on the CPU, as if there."""
    return json.loads(json.dumps(outcome).replace('"cpu"', '"%s"' % device))


def fake(library, mode, op, given, named, operator, functions):
    with mode:
        given = mapped(given, mode.from_tensor, library.Tensor)
        named = mapped(named, mode.from_tensor, library.Tensor)
        return seen(library, op, given, named, operator, functions)


def meta(library, op, given, named, operator, functions):
    change = to_meta(library)
    named = {key: ("meta" if key == "device" else value) for key, value in mapped(named, change, library.Tensor).items()}
    return seen(library, op, mapped(given, change, library.Tensor), named, operator, functions)


def compare(op, text, on_meta):
    """What Tenon gives, what PyTorch gives, and both on the CPU."""
    functions = bool(functions_of(torch, op, operator=False))
    given, named = arguments(text, False)
    cpu = seen(torch, op, given, named, not functions, True)
    operator = not functions or cpu.get("error") == "TypeError"
    if operator and functions:
        given, named = arguments(text, False)
        cpu = seen(torch, op, given, named, True, True)
    given, named = arguments(text, False)
    ours = seen(tenon, op, as_tenon(given), as_tenon(named), operator, functions)
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    if on_meta:
        theirs = meta(torch, op, given, named, operator, True)
        mine = meta(tenon, op, mine_given, mine_named, operator, functions)
        cpu, ours = on_device(cpu, "meta"), on_device(ours, "meta")
    else:
        theirs = fake(torch, TheirMode(), op, given, named, operator, True)
        mine = fake(tenon, MineMode(), op, mine_given, mine_named, operator, functions)
    return mine, theirs, cpu, ours


def kind(outcome):
    return outcome.get("error", "result")


def alike(mine, other):
    return kind(mine) == kind(other) and mine.get("result") == other.get("result") and mine["after"] == other["after"]


def verdict(op, text, mine, theirs, cpu, ours):
    """None: as PyTorch without data, or with; "cpu": as Tenon on the CPU, where it differs on purpose; else what differs."""
    if alike(mine, theirs) or alike(mine, cpu):
        return None
    if alike(mine, ours):
        return "cpu"
    return "\n".join("      %-5s%s after %s" % (name, json.dumps(x.get("result", [x.get("error"), x.get("text")])), json.dumps(x["after"]))
                     for name, x in (("mine", mine), ("fake", theirs), ("ours", ours), ("cpu", cpu)))


def each(calls, on_meta):
    for call, found, lost in answers(calls, lambda op, text: compare(op, text, on_meta), LIMIT):
        yield call, "%s in %s" % (lost, CALLING[:].decode()) if lost else found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--meta", action="store_true", help="meta tensors, not fake ones")
    parser.add_argument("--variants", action="store_true", help="also the calls made from the samples")
    parser.add_argument("--all", action="store_true", help="print also what is as Tenon's on the CPU")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th operator, from the I-th")
    parser.add_argument("names", nargs="*", help="these operators alone")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    if not options.meta:
        with TheirMode():  # once, and not in every child
            torch.ones(2) + torch.ones(2)
            torch.ones(2, 3) @ torch.ones(3, 2)
    index, parts = (int(n) for n in options.part.split("/"))
    tally, calls = collections.Counter(), []
    for number, (_, op, samples, errors) in enumerate(declarations()):
        if options.names and op.split(".")[0] not in options.names and op not in options.names:
            continue
        if number % parts != index or not functions_of(torch, op):
            continue
        calls += [(op, text) for text in samples + errors if not re.search(r"meta |device=", text)]
        calls += variants(op, samples) if options.variants else []
    for (name, text), outcome in each(calls, options.meta):
        tally["calls"] += 1
        found = outcome if isinstance(outcome, str) else verdict(name, text, *outcome)
        tally["as PyTorch" if found is None else "as on the CPU" if found == "cpu" else "otherwise"] += 1
        if found and (found != "cpu" or options.all):
            if found == "cpu":
                found = "      mine %s\n      cpu  %s" % tuple(json.dumps(x)[:300] for x in (outcome[0], outcome[2]))
            print("%s(%s)\n%s" % (name, text, found), flush=True)
    print(dict(tally))


if __name__ == "__main__":
    main()
