# SPDX-License-Identifier: MIT
"""Golden data of pooling: data/pool.txt."""

import torch

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-6"
HALF = "rtol=1e-2 atol=1e-2"
MAX, MAX_BACK = "max_pool2d_with_indices", "max_pool2d_with_indices_backward"


def tolerance(d):
    return HALF if d in ("f16", "bf16") else CLOSE if d[0] == "f" else ""


def windows(w):
    w.comment("windows and dtypes")
    for d in ("f32", "f64", "f16", "bf16", "u8", "i8", "i16", "i32", "i64"):
        for rest in ("[2]", "[3,2], [2,1], [1,1]", "[3], [2], [1], [1], True", "[2,3], [1,2], [1,0], [2,1], True", "[5], [3], [2]"):
            w.case(MAX, d + "[2,2,6,7], " + rest)
            if d == "f32":
                w.case("max_pool2d", d + "[2,6,7].strided, " + rest)
    for d in ("f32", "f64", "f16", "bf16", "i64"):
        for rest in ("[2]", "[3,2], [2,1], [1,1]", "[3], [2], [1], True", "[3], [2], [1], True, False", "[3], [2], [1], False, False",
                     "[2,3], [1,2], [1,0], True, True, 5", "[2], [3], [0], True", "[2], [1], [1], False, True, -2"):
            w.case("avg_pool2d", d + "[2,2,6,7], " + rest, tolerance(d))
    for d in ("f32", "f64", "f16", "bf16"):
        for rest in ("[1,1]", "[2,3]", "[6,7]", "[5,4]", "[8,9]", "[0,2]"):
            w.case("_adaptive_avg_pool2d", d + "[2,2,6,7], " + rest, tolerance(d))
            w.case("adaptive_avg_pool2d", d + "[2,6,7].t, " + rest, tolerance(d) + " strides=no")


def backwards(w):
    w.comment("gradients")
    for d in ("f32", "f64", "f16", "bf16"):
        x = torch.ops.aten.max_pool2d_with_indices(
            ((torch.arange(60) * 37 % 29) / 8).reshape(2, 1, 5, 6), [3, 2], [2, 1], [1, 1])
        w.tensor("i" + d, x[1])
        w.case(MAX_BACK, "%s[2,1,3,7], %s[2,1,5,6], [3,2], [2,1], [1,1], [1], False, $i%s" % (d, d, d), tolerance(d))
        for size, rest in (("[2,2,2,3]", "[2], [], [0], False, True, None"), ("[2,2,3,4]", "[3], [2], [1], True, False, None"),
                           ("[2,2,3,4]", "[3], [2], [1], True, True, None"), ("[2,2,3,4]", "[3], [2], [1], True, True, 7")):
            w.case("avg_pool2d_backward", "%s%s, %s[2,2,5,6], %s" % (d, size, d, rest), tolerance(d))
        for size in ("[1,1]", "[2,3]", "[5,6]", "[7,4]"):
            w.case("_adaptive_avg_pool2d_backward", "%s[2,2,%s, %s[2,2,5,6]" % (d, size[1:], d), tolerance(d))
    w.refuse(MAX_BACK, "f32[1,1,2], f32[1,2,4], [2], [], [0], [1], False, i64[1,1,2]=8", "cpu RuntimeError: index 8 is out of range")
    w.refuse(MAX_BACK, "f32[1,1,2], f32[1,2,4], [2], [], [0], [1], False, i64[1,1,2]=-1", "cpu RuntimeError: index -1 is out of range")


def corners(w):
    w.comment("NaN wins, the last of several; ceil_mode; channels last; no elements")
    nan, inf = float("nan"), float("inf")
    w.tensor("nan", torch.tensor([[[1, nan, 2, 3], [nan, 4, -inf, -inf], [5, 6, -inf, -inf], [inf, 7, 8, inf]]]))
    w.tensor("low", torch.full((1, 2, 4), -inf))
    for rest in ("[2]", "[2], [1]", "[3], [1], [1]"):
        w.case(MAX, "$nan, " + rest)
        w.case("avg_pool2d", "$nan, " + rest)
    w.case(MAX, "$low, [2]")
    values = ((torch.arange(2 * 3 * 4 * 5) * 37 % 29 - 14) / 8).reshape(2, 3, 4, 5)
    w.tensor("last", values.contiguous(memory_format=torch.channels_last))
    w.tensor("g", values[:, :, :2, :2].contiguous(memory_format=torch.channels_last))
    w.case(MAX, "$last, [2]")
    w.case("avg_pool2d", "$last, [2]", CLOSE)
    w.case("_adaptive_avg_pool2d", "$last, [2,3]", CLOSE)
    w.case("avg_pool2d_backward", "$g, $last, [2], [], [0], False, True, None", CLOSE)
    w.case("_adaptive_avg_pool2d_backward", "$g, $last", CLOSE)
    w.case(MAX_BACK, "$g, $last, [2], [], [0], [1], False, i64[2,3,2,2]=3", CLOSE)
    for op in (MAX, "avg_pool2d"):
        w.case(op, "f32[0,3,5,5], [2]")
    w.case("_adaptive_avg_pool2d", "f32[0,3,5,5], [2,2]")
    for rest in ("[2]", "[3], [2], [1]", "[2], [1]"):
        w.case("max_pool1d", "f32[2,3,6], " + rest)
        w.case("max_pool1d", "f32[3,7], " + rest)
        w.case("avg_pool1d", "f32[2,3,6], " + rest, CLOSE)
        w.case("avg_pool1d", "f32[3,7], " + rest + "", CLOSE)
    w.case("max_pool1d", "f32[2,3,6], [3], [2], [1], [2], True")
    w.case("avg_pool1d", "f32[2,3,6], [3], [2], [1], True, False", CLOSE)


def refusals(w):
    w.comment("refusals")
    x = "f32[2,3,5,5], "
    for rest in ("[2,2,2]", "[]", "[2], [1,1,1]", "[2], [2], [1,1,1]", "[2], [0]", "[2], [2], [2]", "[2], [2], [-1]", "[2], [-1]"):
        w.case(MAX, x + rest)
        if rest != "[2], [-1]":
            w.case("avg_pool2d", x + rest)
    w.refuse("avg_pool2d", x + "[2], [-1]", "RuntimeError: stride should be greater than zero, but got dH: -1 dW: -1")
    for a in ("f32[5,5], [2]", "f32[2,3,4,5,5], [2]", "f32[1,1,1,1], [3]", "f32[2,0,5,5], [2]", "f32[2,3,0,5], [2]", "f32[0,5,5], [2]",
              "bool[2,3,5,5], [2]", "c64[2,3,5,5], [2]", x + "[2], [2], [0], [0]"):
        w.case(MAX, a)
    for a in ("f32[1,1,1,1], [3]", "i32[2,3,5,5], [2]", "bool[2,3,5,5], [2]", x + "[2], [2], [0], False, True, 0"):
        w.case("avg_pool2d", a)
    for a in (x + "[2]", x + "[1,1,1]", "f32[5,5], [2,2]", "f32[2,3,0,5], [2,2]", "i32[2,3,5,5], [2,2]"):
        w.case("_adaptive_avg_pool2d", a)
    w.case("adaptive_avg_pool2d", x + "[-1,2]")
    for a in ("f32[6], [2]", "f32[2,3,6], [2,2]", "f32[2,3,6], [2], [0]", "f32[2,3,6], [2], [1], [2]", "f32[2,3,6], [0]",
              "f32[2,3,6], [2], [1], [-1]", "f32[2,3,6], [2], [1], [0], [0]", "f32[2,3,0], [2]", "f32[2,2,3,6], [2]"):
        w.case("max_pool1d", a)
    for a in ("f32[6], [2]", "f32[2,3,6], [2,2]", "f32[2,3,6], [2], [0]", "f32[2,3,6], [2], [1], [2]", "f32[2,3,1], [3]"):
        w.case("avg_pool1d", a)


with Writer("pool") as writer:
    for part in (windows, backwards, corners, refusals):
        part(writer)
