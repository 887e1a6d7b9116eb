#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random sets of registrations in random orders must give the table of dispatcher_model.py, slot by slot.

usage: test_oracle.py ORACLE_TOOL [CASES] [SEED]
Each case registers up to eight kernels for random runtime and alias keys (the same key may come twice: the
newest counts) and sometimes a whole-key fallback, undoes some of them in random order, and compares all 138
slots with the model, kernel and provenance. A set is also registered in a second order: the table must be the
same. Every 25th case also checks the stored tables of all operators.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dispatcher_model as model  # noqa: E402

NAMES = {"fb": "tni_autograd_fallback", "fallthrough": "tni_fallthrough_fn", "metaerr": "tni_meta_fallback",
         "fake": "tni_fake_kernel", "limited": "tni_limited_kernel",
         "named": "tni_named_kernel", "error": "-", None: "-"}
# What Tenon has beyond the reference: the key that leads calls on fake tensors to their shape functions, what stands before
# kernels that do not know a dtype, and names of dimensions in one place.
model.FALLBACKS.update(Fake="fake", QuantizedCPU="limited", QuantizedMeta="limited", Named="named")
SLOT_KEYS = ["Undefined"] + model.ALL_KEYS
POOL = (model.ALL_KEYS + list(model.ALIAS) * 6 +
        ["CPU", "Meta", "CUDA", "FPGA", "SparseCPU", "QuantizedCUDA", "NestedTensorCPU", "AutogradCPU",
         "AutogradOther", "HIP", "MTIA", "AutogradMeta"] * 4)
FREE_FALLBACKS = [k for k in model.ALL_KEYS if k not in model.FALLBACKS]


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1 << 16)

    def send(self, line):
        self.process.stdin.write(line + "\n")

    def table(self):
        self.send("table")
        self.process.stdin.flush()
        rows = []
        while True:
            line = self.process.stdout.readline()
            if not line or line.startswith("error"):
                raise SystemExit(f"the tool stopped: {line.strip()}")
            if line == ".\n":
                return rows
            rows.append(line.strip().split(" ", 2))


def expected(kernels, fallbacks):
    """kernels: {key: name of the newest}; fallbacks: {key: name}."""
    saved = dict(model.FALLBACKS)
    model.FALLBACKS.update({k: ("own", v) for k, v in fallbacks.items()})
    rows = []
    for key in SLOT_KEYS:
        kernel, why = model.resolve(kernels, key)
        name = kernel[1] if isinstance(kernel, tuple) else NAMES.get(kernel, kernel)
        rows.append([key, name, why])
    model.FALLBACKS.clear()
    model.FALLBACKS.update(saved)
    return rows


def newest(live):
    kernels, fallbacks = {}, {}
    for kind, key, name in live:
        (kernels if kind == "impl" else fallbacks)[key] = name
    return kernels, fallbacks


def run_case(tool, rng, check):
    plan = [("impl", rng.choice(POOL), f"k{i}") for i in range(rng.randint(1, 8))]
    if rng.random() < 0.3:
        plan.append(("fallback", rng.choice(FREE_FALLBACKS), "own"))
    rng.shuffle(plan)
    tool.send("reset")
    live = {}
    for i, entry in enumerate(plan):
        tool.send(" ".join(entry))
        live[i] = entry
    if check:
        tool.send("check")
    problems = compare(tool, live.values(), plan)
    for i in rng.sample(sorted(live), rng.randint(0, len(plan))):
        tool.send(f"undo {i}")
        del live[i]
    if check:
        tool.send("check")
    problems += compare(tool, live.values(), plan)
    # One kernel a key: the order of registration cannot matter.
    unique = {(kind, key): (kind, key, name) for kind, key, name in live.values()}
    again = list(unique.values())
    rng.shuffle(again)
    tool.send("reset")
    for entry in again:
        tool.send(" ".join(entry))
    return problems + compare(tool, live.values(), again)


def compare(tool, live, plan):
    want, got = expected(*newest(live)), tool.table()
    return [f"  {w} expected, {g} found, after {plan}" for w, g in zip(want, got) if w != g][:3]


def main():
    tool = Tool(sys.argv[1])
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261115
    rng = random.Random(seed)
    failed = 0
    for case in range(cases):
        problems = run_case(tool, rng, check=case % 25 == 0)
        if problems:
            failed += 1
            print(f"case {case} (seed {seed}):", *problems, sep="\n")
            if failed == 5:
                break
    tool.process.stdin.close()
    if tool.process.wait() != 0:
        failed += 1
    print(f"{case + 1 - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
