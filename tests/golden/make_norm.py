#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Normalisation layers: shapes, dtypes, weights, gradients with masks, refusals."""

import torch
from torch._decomp import decomposition_table

from literal import Writer

CLOSE = {"f16": "rtol=2e-3 atol=2e-3", "bf16": "rtol=2e-2 atol=2e-2", "f32": "rtol=2e-6 atol=2e-6",
         "f64": "rtol=1e-13 atol=1e-13"}


def layer(w):
    w.comment("native_layer_norm")
    op = "native_layer_norm"
    for a in CLOSE:
        for x, shape in (("[2,3]", "[3]"), ("[2,3,4]", "[3,4]"), ("[2,3,4]", "[4]"), ("[3]", "[3]"), ("[2,40]", "[40]"),
                         ("[0,3]", "[3]"), ("[2,1]", "[1]"), ("[2,3,4].t", "[4]"), ("[2,3].strided", "[3]")):
            for weight in ("None", a + shape):
                for bias in ("None", a + shape):
                    w.case(op, "%s%s, %s, %s, %s, 1e-5" % (a, x, shape, weight, bias), CLOSE[a])
        w.case(op, "%s[2,3], [3], f32[3], f32[3], 1e-5" % a, CLOSE[a])
        w.case(op, "%s[2,3], [3], None, f32[3], 1e-5" % a, CLOSE[a])
    w.case(op, "f32[2,3], [3], None, None, 0.5", CLOSE["f32"])
    w.case(op, "f32[2,1100], [1100], None, None, 0.0", CLOSE["f32"])
    w.tensor("far", torch.tensor([[1e4, 1e4 + 1, 1e4 + 2, 1e4 + 3], [5, 5, 5, 5]]))
    w.case(op, "$far, [4], None, None, 1e-5", "rtol=1e-4 atol=1e-5")
    w.tensor("odd", torch.tensor([[float("inf"), 1, 2], [float("nan"), 1, 2]]))
    w.case("layer_norm", "$odd, [3]")
    for args in ("f32[2,3], [], None, None", "f32[2,3], [4], None, None", "f32[2,3], [2,3], f32[3], None",
                 "f32[2,3], [3], f32[3], f32[2]", "f32[2,3], [3], f64[3], None", "f64[2,3], [3], f32[3], None",
                 "f16[2,3], [3], f16[3], f32[3]", "i64[2,3], [3], None, None", "f32[], [3], None, None",
                 "c64[2,3], [3], None, None", "f32[2,3], [2,2,3], None, None"):
        w.case(op, args + ", 1e-5")
    w.case("layer_norm", "f32[2,3], [3], f32[3], f32[3]", CLOSE["f32"])
    w.case("layer_norm", "f32[2,3], [3], None, None, 0.1", CLOSE["f32"])

    w.comment("native_layer_norm_backward")
    op = "native_layer_norm_backward"
    for a in CLOSE:
        for x, shape, stat in (("[2,3]", "[3]", "[2,1]"), ("[2,3,4]", "[3,4]", "[2,1,1]"), ("[3,40]", "[40]", "[3,1]")):
            for mask in ("[True,True,True]", "[True,False,False]", "[False,True,False]", "[False,False,True]"):
                w.case(op, "%s%s, %s%s, %s, %s%s, %s%s=1.5, %s%s, %s%s, %s"
                       % (a, x, a, x, shape, a, stat, a, stat, a, shape, a, shape, mask), CLOSE[a])
            w.case(op, "%s%s, %s%s, %s, %s%s, %s%s=1.5, None, None, [True,False,False]"
                   % (a, x, a, x, shape, a, stat, a, stat), CLOSE[a])
    w.case(op, "bf16[2,3], bf16[2,3], [3], f32[2,1], f32[2,1], f32[3], f32[3], [True,True,True]", CLOSE["bf16"])
    w.case(op, "f32[2,3].t, f32[2,3].strided, [3], f32[2,1], f32[2,1], f32[3], f32[3], [True,True,True]", CLOSE["f32"])
    w.case(op, "f32[0,3], f32[0,3], [3], f32[0,1], f32[0,1], f32[3], f32[3], [True,True,True]")
    torch.manual_seed(0)
    w.tensor("dy", torch.randint(-20, 20, (700, 5)) / 8)
    w.tensor("x", torch.randint(-20, 20, (700, 5)) / 8)
    w.case(op, "$dy, $x, [5], f32[700,1], f32[700,1], f32[5], f32[5], [False,True,True]", "rtol=1e-5 atol=1e-3")


def rms(w):
    w.comment("rms_norm")
    for a in CLOSE:
        for x, shape in (("[2,3]", "[3]"), ("[2,3,4]", "[3,4]"), ("[0,3]", "[3]"), ("[2,3].t", "[3]"), ("[2,3]=0", "[3]")):
            for weight in ("None", a + shape):
                for eps in ("None", "1e-5", "0.5"):
                    w.case("rms_norm", "%s%s, %s, %s, %s" % (a, x, shape, weight, eps), CLOSE[a])
    w.case("rms_norm", "f32[2,3], [3], f32[2]")
    w.comment("rms_norm: channels last stay so, other layouts do not")
    for args in ("f32[2,3,4,5].cl, [5], f32[5]", "f32[2,3,4,5].cl, [4,5], None", "f32[2,3,2,2,2].cl, [2], None", "f32[2,3,4,5].t, [5], None"):
        w.case("rms_norm", args, CLOSE["f32"])


def rms_backward(w):
    op = "_fused_rms_norm_backward"
    w.comment(op)
    # PyTorch has it on accelerators; on the CPU it is what its own decomposition says.
    library = torch.library.Library("aten", "IMPL")
    library.impl(op, decomposition_table[torch.ops.aten._fused_rms_norm_backward.default], "CPU")
    for a in CLOSE:
        for x, shape, stat in (("[2,3]", "[3]", "[2,1]"), ("[2,3,4]", "[3,4]", "[2,1,1]"), ("[0,3]", "[3]", "[0,1]")):
            stat = ("f64" if a == "f64" else "f32") + stat
            for weight, mask in ((a + shape, "[True,True]"), (a + shape, "[False,True]"), ("None", "[True,False]")):
                w.case(op, "%s%s, %s%s, %s, %s=0.5, %s, %s" % (a, x, a, x, shape, stat, weight, mask), CLOSE[a])


with Writer("norm") as w:
    layer(w)
    rms(w)
    rms_backward(w)
