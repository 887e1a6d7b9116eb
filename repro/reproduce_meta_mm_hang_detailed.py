#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hang with diagnostics: what the tensors are, every step by name, and after five seconds a report instead of
silence.

  python3 -m tenon.as_torch repro/reproduce_meta_mm_hang_detailed.py

Where the fault is present it prints what it knows after 5 seconds and returns 2. Elsewhere it prints PASS and returns 0.
"""

import faulthandler
import os
import sys
import threading
import time

import torch

TIMEOUT = 60
state = {"step": "start", "since": time.perf_counter()}
finished = threading.Event()


def watch():
    """On a thread of its own: a main thread that is stuck in a call can report nothing."""
    if finished.wait(TIMEOUT):
        return
    print("\nTIMEOUT after %d s in step: %s" % (TIMEOUT, state["step"]))
    print("  process %d, grad enabled: %s" % (os.getpid(), torch.is_grad_enabled()))
    print("  every thread's Python stack:", flush=True)
    faulthandler.dump_traceback(file=sys.stdout, all_threads=True)
    sys.stdout.flush()
    os._exit(2)


def step(name):
    state["step"] = name
    print("step: %s" % name, flush=True)  # seen before it hangs


def describe(name, tensor):
    print("  %s: shape %s, device %s, dtype %s, requires_grad %s, is_leaf %s"
          % (name, list(tensor.shape), tensor.device, tensor.dtype, tensor.requires_grad, tensor.is_leaf))
    keys = getattr(torch._C, "_dispatch_keys", None)
    if keys is not None:
        print("  %s: keys %s" % (name, keys(tensor)))


def multiply(name, a, b, shape=(2, 4, 16)):
    step(name)
    result = torch.matmul(a, b)
    if tuple(result.shape) != shape:
        raise SystemExit("FAIL: result %s, wanted %s" % (list(result.shape), list(shape)))
    print("  result %s" % list(result.shape))
    return result


def on_threads(a, b, count=8):
    step("the same call on %d threads at once" % count)
    results = []
    threads = [threading.Thread(target=lambda: results.append(torch.matmul(a, b))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if [tuple(result.shape) for result in results] != [(2, 4, 16)] * count:
        raise SystemExit("FAIL: a thread has no result")


def main():
    threading.Thread(target=watch, daemon=True).start()
    print("torch %s, process %d, timeout %d s" % (torch.__version__, os.getpid(), TIMEOUT))
    with torch.device("meta"):
        a = torch.randn(2, 4, 16)
        b = torch.randn(16, 16)
    describe("a", a)
    describe("b", b)
    multiply("3D x 2D, gradients on", a, b)
    with torch.no_grad():
        multiply("3D x 2D, gradients off", a, b)
    b.requires_grad_()
    result = multiply("3D x 2D, the weight requires a gradient", a, b)
    step("backward through the folded product")
    result.backward(torch.ones_like(result))
    if b.grad is None or tuple(b.grad.shape) != (16, 16):
        raise SystemExit("FAIL: the weight has no gradient")
    b.requires_grad_(False)
    on_threads(a, b)

    step("time of one call")
    best = float("inf")
    for _ in range(200):
        start = time.perf_counter()
        torch.matmul(a, b)
        best = min(best, time.perf_counter() - start)
    finished.set()
    print("  best of 200: %.2f us" % (best * 1e6))
    if best >= 1e-3:
        raise SystemExit("FAIL: a call takes more than 1 ms")
    print("PASS")


if __name__ == "__main__":
    main()
