#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One product of meta tensors, to be watched through the dispatcher's own trace.

  TORCH_SHOW_DISPATCH_TRACE=1 python3 -m tenon.as_torch repro/test_with_dispatch_trace.py

The trace goes to stderr. It shows matmul, then mm at AutogradMeta and at Meta, and the script returns 0. Where the fault
is present, the trace ends before Meta.
"""

import os
import sys

import torch


def main():
    traced = [name for name in ("TENON_SHOW_DISPATCH_TRACE", "TORCH_SHOW_DISPATCH_TRACE")
              if os.environ.get(name) not in (None, "", "0")]
    print("dispatch trace: %s" % (", ".join(traced) if traced else "off (set TORCH_SHOW_DISPATCH_TRACE=1)"), flush=True)
    with torch.device("meta"):
        a = torch.randn(2, 4, 16)
        b = torch.randn(16, 16)
    print("calling torch.matmul(%s, %s)" % (list(a.shape), list(b.shape)), flush=True)
    result = torch.matmul(a, b)
    print("returned %s on %s" % (list(result.shape), result.device), flush=True)
    ok = tuple(result.shape) == (2, 4, 16) and result.device.type == "meta"
    print("PASS" if ok else "FAIL")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
