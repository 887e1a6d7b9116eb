#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hang as a model meets it: F.linear and nn.Linear on meta tensors, with a timeout.

  python3 -m tenon.as_torch repro/reproduce_linear_meta_hang.py

Where the fault is present it says so after 5 seconds and returns 2. Elsewhere it prints PASS and returns 0.
"""

import os
import sys
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F

TIMEOUT = 60
finished = threading.Event()
step = ["start"]


def watch():
    if not finished.wait(TIMEOUT):
        print("TIMEOUT after %d s in step: %s" % (TIMEOUT, step[0]), flush=True)
        os._exit(2)


def check(name, result, shape):
    print("%s: %s on %s" % (name, list(result.shape), result.device), flush=True)
    if tuple(result.shape) != shape or result.device.type != "meta":
        raise SystemExit("FAIL: wanted %s on meta" % (list(shape),))


def main():
    threading.Thread(target=watch, daemon=True).start()
    with torch.device("meta"):
        value = torch.randn(2, 4, 16)
        weight = torch.randn(16, 16)
        bias = torch.randn(16)
        layer = nn.Linear(16, 32)

    step[0] = "F.linear with a bias"
    check(step[0], F.linear(value, weight, bias), (2, 4, 16))
    step[0] = "F.linear without a bias"
    check(step[0], F.linear(value, weight), (2, 4, 16))
    step[0] = "nn.Linear, whose weight requires a gradient"
    check(step[0], layer(value), (2, 4, 32))
    step[0] = "nn.Linear under no_grad"
    with torch.no_grad():
        check(step[0], layer(value), (2, 4, 32))
    finished.set()
    print("PASS")


if __name__ == "__main__":
    sys.exit(main())
