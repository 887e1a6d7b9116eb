#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The scenarios that the report compares, each under a timeout of its own.

  python3 -m tenon.as_torch repro/test_meta_vs_fake_tensor.py

1. plain meta tensors, 3D x 2D: hangs where the fault is present
2. FakeTensorMode, 3D x 2D
3. plain meta tensors and no_grad, 3D x 2D
4. plain meta tensors, 2D x 2D, which does not fold

It prints a table, and returns 0 when all four give the right shape.
"""

import contextlib
import sys
import threading

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

TIMEOUT = 60


def product(a_shape, b_shape, device, guard=contextlib.nullcontext):
    def run():
        with guard():
            a = torch.randn(*a_shape, device=device)
            b = torch.randn(*b_shape, device=device)
            return torch.matmul(a, b)
    return run


SCENARIOS = (
    ("plain meta, 3D x 2D", product((2, 4, 16), (16, 16), "meta"), (2, 4, 16)),
    ("FakeTensorMode, 3D x 2D", product((2, 4, 16), (16, 16), "cpu", FakeTensorMode), (2, 4, 16)),
    ("plain meta, no_grad, 3D x 2D", product((2, 4, 16), (16, 16), "meta", torch.no_grad), (2, 4, 16)),
    ("plain meta, 2D x 2D", product((4, 16), (16, 16), "meta"), (4, 16)),
)


def attempt(run):
    """What run() gives, or the exception, or None when it has not returned in time."""
    box = []

    def call():
        try:
            box.append(run())
        except Exception as error:
            box.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return box[0] if box else None


def main():
    failed = 0
    for number, (name, run, shape) in enumerate(SCENARIOS, 1):
        print("%d. %-30s" % (number, name), end=" ", flush=True)
        result = attempt(run)
        if result is None:
            verdict = "HANGS (no result after %d s)" % TIMEOUT
        elif isinstance(result, Exception):
            verdict = "FAILS: %s: %s" % (type(result).__name__, result)
        elif tuple(result.shape) != shape:
            verdict = "WRONG: %s, wanted %s" % (list(result.shape), list(shape))
        else:
            print("ok  %s" % list(result.shape))
            continue
        print(verdict)
        failed += 1
    print("PASS" if not failed else "FAIL: %d of %d" % (failed, len(SCENARIOS)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
