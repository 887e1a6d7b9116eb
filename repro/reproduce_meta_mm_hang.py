#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The smallest program that showed the hang: matmul of plain meta tensors, 3D x 2D, with autograd on.

  python3 -m tenon.as_torch repro/reproduce_meta_mm_hang.py

Where the fault is present, test 2 never returns: press Ctrl+C. Elsewhere the script prints PASS and returns 0.
"""

import sys
import time

import torch


def check(name, a, b, shape):
    print("%s: %s x %s" % (name, list(a.shape), list(b.shape)), flush=True)
    start = time.perf_counter()
    result = torch.matmul(a, b)
    took = time.perf_counter() - start
    print("  result %s on %s, %.3f ms" % (list(result.shape), result.device, took * 1e3), flush=True)
    if tuple(result.shape) != shape or result.device.type != "meta":
        print("FAIL: wanted %s on meta" % (list(shape),))
        return False
    return True


def main():
    with torch.device("meta"):
        flat = torch.randn(16, 16)
        a = torch.randn(2, 4, 16)
        b = torch.randn(16, 16)
    ok = check("Test 1, no folding", flat, b, (16, 16))
    ok = check("Test 2, folding (hangs where the fault is present)", a, b, (2, 4, 16)) and ok
    print("PASS" if ok else "FAIL")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
