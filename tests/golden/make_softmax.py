#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Softmax and its relatives: dimensions, dtypes, rows of infinities and NaN, refusals."""

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
CLOSE = {"f16": "rtol=2e-3 atol=1e-3", "bf16": "ulp=1", "f32": "rtol=2e-6 atol=1e-6", "f64": "rtol=1e-14 atol=1e-14"}


def forward(w):
    for op in ("_softmax", "_log_softmax"):
        w.comment(op)
        for a in DTYPES:
            for args in ("[2,3], 1", "[2,3], 0", "[2,3].t, 1", "[3,2,4], 1", "[2,3].strided, -1", "[], 0", "[], -1",
                         "[0,3], 0", "[0,3], 1", "[2,0], 1", "[1], 0", "[40], 0", "[2,2,2,3].cl, 1", "[3,4].expanded, 1"):
                w.case(op, a + args + ", False", CLOSE.get(a, ""))
        w.case(op, "f32[2,1100], 1, False", CLOSE["f32"])
        w.case(op, "f64[1030,2], 0, False", CLOSE["f64"])
        w.case(op, "f32[2,3], 2, False")
        w.case(op, "f32[2,3], -3, False")
        w.case(op, "f16[2,3], 1, True")
        w.case(op, "f32[2,3], 1, True")
        for short, dtype in (("f32", torch.float32), ("f64", torch.float64), ("f16", torch.float16)):
            rows = [[-inf, -inf, -inf], [inf, 0, 1], [nan, 0, 1], [-inf, 0, 1], [0, -200, -200], [1e4, 1e4, -1e4],
                    [inf, inf, -inf], [0, -0.0, 0], [3e4, -3e4, 100], [-103.5, 0, -88], [inf, nan, -inf]]
            w.tensor("rows_%s_%s" % (op[1:], short), torch.tensor(rows, dtype=dtype))
            name = "$rows_%s_%s" % (op[1:], short)
            w.case(op, name + ", 1, False", CLOSE[short])
            w.case(op, name + ", 0, False", CLOSE[short])


def backward(w):
    for op in ("_softmax_backward_data", "_log_softmax_backward_data"):
        w.comment(op)
        for a, long in (("f32", "float32"), ("f64", "float64"), ("f16", "float16"), ("bf16", "bfloat16")):
            for sizes, dim in (("[2,3]", 1), ("[2,3]", 0), ("[3,2,4]", 1), ("[]", 0), ("[0,3]", 1), ("[2,40]", -1)):
                close = CLOSE[a] if a[0] == "f" and a != "f16" else "rtol=2e-2 atol=2e-2"
                w.case(op, "%s%s, %s%s=0.25, %d, %s" % (a, sizes, a, sizes, dim, long), close)
                if sizes != "[]":
                    w.case(op, "%s%s.strided, %s%s, %d, %s" % (a, sizes, a, sizes, dim, long), close)
        w.case(op, "f32[2,3], f64[2,3], 1, float32")
        w.case(op, "f32[2,3], f32[2,3], 2, float32")
        w.case(op, "i64[2,3], i64[2,3], 1, int64")
    w.case("_softmax_backward_data", "f32[2,3], f32[1,3], 1, float32")
    w.case("_softmax_backward_data", "f32[2,3], f32[2,3], 1, float16")


def composites(w):
    w.comment("with a dtype")
    for op in ("softmax.int", "log_softmax.int", "_safe_softmax"):
        for a in ("f32", "f64", "f16", "i32", "bool"):
            for dtype in ("None", "float32", "float64", "float16"):
                if op == "_safe_softmax" and dtype == "None" and a not in CLOSE:
                    continue
                wanted = {"float16": "f16", "float64": "f64"}.get(dtype, "f32" if dtype != "None" else a)
                close = "rtol=1e-3 atol=1e-3" if "f16" in (a, wanted) else CLOSE.get("f32")
                w.case(op, "%s[2,3], 1, %s" % (a, dtype), close)
    w.tensor("masked", torch.tensor([[-inf, -inf, -inf], [nan, 0, 1], [-inf, 0, 1], [inf, 0, 1]]))
    w.case("_safe_softmax", "$masked, 1", CLOSE["f32"])
    w.case("_safe_softmax", "$masked, 0", CLOSE["f32"])
    w.case("_safe_softmax", "f32[0,3], 1")
    w.case("_safe_softmax", "f32[], 0")


with Writer("softmax") as w:
    forward(w)
    backward(w)
    composites(w)
