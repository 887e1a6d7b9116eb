#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extremes with their places, sorting, selecting, running sums: dtypes, ties, NaN, refusals."""

import random

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
CLOSE = {"f16": "rtol=2e-3 atol=1e-3", "bf16": "rtol=1e-2 atol=1e-2", "f32": "rtol=2e-6 atol=1e-6",
         "f64": "rtol=1e-13 atol=1e-13", "c64": "rtol=4e-6 atol=4e-6", "c128": "rtol=1e-13 atol=1e-13"}


def named(w):
    """Tensors with ties, NaN, infinities and zeros of both signs."""
    for short in ("f32", "f64", "f16"):
        rows = [[1, nan, 3, nan, 2], [inf, -inf, 0, inf, -inf], [-0.0, 0.0, 0.0, -0.0, 0.0], [2, 1, 2, 1, 2],
                [nan, nan, nan, nan, nan], [5, 4, 3, 2, 1]]
        w.tensor("odd_" + short, torch.tensor(rows, dtype=DTYPES[short]))
    random.seed(3)
    w.tensor("distinct", torch.tensor(random.sample(range(-2000, 2000), 600)).float() / 8)
    w.tensor("distinct_i64", torch.tensor(random.sample(range(-2000, 2000), 600)) * (1 << 40))


def extremes(w):
    w.comment("max, min, argmax, argmin")
    for op in ("max", "min"):
        for a in DTYPES:
            w.case(op, a + "[2,3]")
            w.case(op, a + "[40].strided")
            for args in ("[2,3], 1", "[2,3], 0, True", "[2,3].t, 1", "[2,70], -1", "[], 0"):
                w.case(op + ".dim", a + args)
            for args in ("[2,3]", "[2,3], 1", "[3,2].t, 0, True", "[2,70], -1", "[3,2].t", "[2,3], None, True", "[], 0", "[]"):
                w.case("arg" + op, a + args)
        for short in ("f32", "f64", "f16"):
            w.case(op + ".dim", "$odd_%s, 1" % short)
            w.case(op + ".dim", "$odd_%s, 0" % short)
            w.case("arg" + op, "$odd_%s, 1" % short)
            w.case("arg" + op, "$odd_%s" % short)
            w.case(op, "$odd_%s" % short)
        for args in ("f32[0,3], 0", "f32[0,3], 1", "f32[2,3], 2", "f32[2,0], 1, True"):
            w.case(op + ".dim", args)
            w.case("arg" + op, args)
        w.case(op, "f32[0]")
        w.case("arg" + op, "f32[0]")
        w.case(op + ".other", "f32[2,3], f32[3]")
        w.case(op + ".other", "$odd_f32, f32[5]")


def running(w):
    w.comment("cumsum, cumprod")
    for op in ("cumsum", "cumprod"):
        for a in DTYPES:
            for args in ("[2,3], 1", "[3,2], 0", "[2,3].t, 1", "[2,2,3].strided, 1", "[], 0", "[0,3], 0"):
                w.case(op, a + args, CLOSE.get(a, ""))
            for dtype in ("float64", "int32", "uint8", "float16"):
                if a[0] != "c":
                    w.case(op, "%s[4], 0, dtype=%s" % (a, dtype), "rtol=2e-3 atol=1e-3")
        w.case(op, "f32[2,3], 2")
        w.case(op, "f32[2,3], 0, dtype=bool")
        w.case(op, "$odd_f32, 1")
    w.case("cumsum", "bf16[300]=1, 0")


def sorting(w):
    w.comment("sort")
    for a in DTYPES:
        for args in ("[2,3]", "[3,2], 0", "[2,3].t, 1, True", "[2,2,3].strided, 1", "[]", "[], 0, True", "[0,3], 0", "[2,2,2,3].cl, 1"):
            w.case("sort", a + args)
        w.case("sort.stable", a + "[12], stable=True")
    for short in ("f32", "f64", "f16"):
        for descending in ("False", "True"):
            w.case("sort.stable", "$odd_%s, stable=True, dim=1, descending=%s" % (short, descending))
            w.case("sort.stable", "$odd_%s, stable=True, dim=0, descending=%s" % (short, descending))
    for name in ("$distinct", "$distinct_i64"):
        w.case("sort", name)
        w.case("sort", name + ", 0, True")
        w.case("argsort", name)
    w.case("sort", "f32[2,3], 2")
    w.case("argsort", "f32[2,3].t, 0")
    w.case("argsort.stable", "i64[2,3], stable=True, dim=0, descending=True")

    w.comment("topk")
    for name in ("$distinct", "$distinct_i64"):
        for largest in ("True", "False"):
            for k in (1, 5, 40):
                w.case("topk", "%s, %d, 0, %s" % (name, k, largest))
    for short in ("f32", "f64"):
        w.tensor("nan_" + short, torch.tensor([[3, nan, 1, 2, -1], [inf, 0, -inf, 5, 4]], dtype=DTYPES[short]))
        w.case("topk", "$nan_%s, 3" % short)
        w.case("topk", "$nan_%s, 3, 1, False" % short)
    for args in ("f32[2,3], 4", "f32[2,3], -1", "f32[2,3], 1, 2", "f32[], 1", "f32[], 2", "f32[2,3], 0", "bool[2], 1", "c64[2], 1",
                 "f32[0,3], 2", "f32[2,3], 3", "f32[2,3].t, 2, 0", "f32[], 0"):
        w.case("topk", args)

    w.comment("median, kthvalue, mode")
    for a in DTYPES:
        w.case("median", a + "[7]")
        w.case("median", a + "[2,3].t")
        w.case("median.dim", a + "[2,3], 1")
        w.case("median.dim", a + "[3,2].t, 0, True")
        w.case("kthvalue", a + "[2,3], 2")
        w.case("kthvalue", a + "[3,2].t, 1, 0, True")
        w.case("mode", a + "[2,3]")
        w.case("mode", a + "[3,2].t, 0, True")
    w.tensor("votes", torch.tensor([[1, 2, 2, 3, 3], [5, 5, 1, 1, 4], [7, 7, 7, 1, 1]]))
    w.case("mode", "$votes")
    for op in ("median.dim", "mode"):
        for args in ("f32[0,3], 0", "f32[0,3], 1", "f32[2,3], 2", "f32[], 0"):
            w.case(op, args)
    for short in ("f32", "f64", "f16"):
        w.case("median.dim", "$nan_f32, 1")
        w.case("median", "$odd_" + short)
    w.case("kthvalue", "$nan_f32, 5")
    w.case("median", "f32[0]")
    w.case("median", "$distinct")
    w.case("median.dim", "$distinct, 0")
    for args in ("f32[2,3], 4", "f32[2,3], 0", "f32[2,3], 1, 2", "f32[], 1", "f32[0,3], 1, 0", "f32[], 2", "$distinct, 77"):
        w.case("kthvalue", args)


def unique(w):
    w.comment("_unique2")
    for a in DTYPES:
        for rest in ("", ", True, True, True", ", False, True, False", ", True, False, True"):
            w.case("_unique2", a + "[4,6]" + rest, "cpu")
    w.tensor("gaps", torch.tensor([[3, nan, 1], [3, nan, -0.0]]))
    for args in ("$gaps, True, True, True", "f32[0,3], True, True, True", "f32[], True, True, True",
                 "$votes, True, True, True", "bool[5], True, True, True", "f32[3,4].t, True, True, True"):
        w.case("_unique2", args, "cpu")


with Writer("order") as w:
    named(w)
    extremes(w)
    running(w)
    sorting(w)
    unique(w)
