#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reductions: sizes, dtypes, layouts, special values, long sums, refusals."""

import random

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
OPS = ("sum.dim_IntList", "mean.dim", "amax", "amin")


def close(dtype):
    """Sums of a few numbers may be rounded in another order."""
    return {"f32": "rtol=1e-6 atol=1e-6", "c64": "rtol=1e-6 atol=1e-6", "f64": "rtol=1e-14 atol=1e-14",
            "c128": "rtol=1e-14 atol=1e-14", "f16": "ulp=1", "bf16": "ulp=1"}.get(dtype, "")


def dtypes(w):
    w.comment("dtypes")
    for a in DTYPES:
        w.case("sum", a + "[7]", close(a))
        w.case("mean", a + "[7]", close(a))
        w.case("sum", a + "[7].strided", close(a))
        for op in OPS:
            w.case(op, a + "[3,4], [1]", close(a))
            w.case(op, a + "[3,4], [0], True", close(a))
            w.case(op, a + "[3,4].t, [0]", close(a))
            w.case(op, a + "[2,3,4], [0,2]", close(a))
        for b in ("float64", "float16", "int32", "int64", "uint8", "bool", "complex64"):
            if not ("c" in a and b[0] != "c"):
                wanted = "f16" if b == "float16" else "f32" if b == "complex64" or a == "f32" else a
                w.case("sum", "%s[7], dtype=%s" % (a, b), close(wanted) or "rtol=1e-6")
                w.case("mean", "%s[7], dtype=%s" % (a, b), "ulp=1" if b == "float16" else "rtol=1e-6 atol=1e-6")
    w.case("sum", "u8[300]=255")
    w.case("sum", "f16[4096]=1")
    w.case("sum", "bf16[4096]=1")
    w.case("mean", "f16[5000]=60000", "ulp=0")
    w.case("sum", "f32[70000]=1")


def dims(w):
    w.comment("dimensions")
    for op in OPS:
        for sizes in ("[2,3,4]", "[]", "[5]", "[1,4,1]", "[2,0,3]", "[0]", "[0,3]", "[3,0]"):
            for which in ("[]", "[0]", "[-1]", "[1]", "[0,1]", "[2,0]", "[0,0]", "[-1,2]", "[5]", "[-4]"):
                for keep in ("", ", True"):
                    w.case(op, "f32%s, %s%s" % (sizes, which, keep), "rtol=1e-6 atol=1e-6")
        if op[0] != "a":
            w.case(op, "f32[2,3], None", "rtol=1e-6 atol=1e-6")
    for op in ("sum", "mean", "amax", "amin"):
        w.case(op, "f32[0]")
        w.case(op, "f32[2,0]")
        w.case(op, "i64[0]")


def values(w):
    w.comment("special values")
    w.tensor("special", torch.tensor([[1.0, nan, 2.0], [inf, -inf, 3.0], [-0.0, 0.0, -1.0], [inf, 1.0, 2.0]]))
    for op in OPS:
        for which in ("[0]", "[1]", "[]"):
            w.case(op, "$special, %s" % which, "ulp=1")
    w.tensor("lows", torch.tensor([-2**63, 2**63 - 1, 5], dtype=torch.int64))
    for op in ("sum", "amax", "amin"):
        w.case(op, "$lows")
    w.tensor("flags", torch.tensor([[True, False], [False, False]]))
    for op in ("sum.dim_IntList", "amax", "amin"):
        w.case(op, "$flags, [1]")


def layouts(w):
    w.comment("layouts")
    rng = random.Random(4)
    for i in range(120):
        n = rng.randint(1, 4)
        sizes = [rng.choice([1, 2, 3, 5]) for _ in range(n)]
        order = list(range(n))
        rng.shuffle(order)
        strides, step = [0] * n, 1
        for d in reversed(order):
            strides[d] = step
            step *= sizes[d] * (2 if rng.random() < 0.2 else 1)
        if rng.random() < 0.2:
            strides[rng.randrange(n)] = 0
        room = 2 + sum((s - 1) * t for s, t in zip(sizes, strides))
        dtype = rng.choice([torch.float32, torch.int16, torch.float64, torch.float16])
        w.tensor("r%d" % i, (torch.arange(room) % 11 - 5).to(dtype).as_strided(sizes, strides, 1))
        which = rng.sample(range(n), rng.randint(1, n))
        op = rng.choice(("sum.dim_IntList", "amax", "amin"))
        w.case(op, "$r%d, %s%s" % (i, which, rng.choice(["", ", True"])))


def long(w):
    w.comment("many elements; whole numbers, so that every order of adding is exact")
    for sizes in ("[3000]", "[3,3000]", "[3000,3]", "[40,50,7]", "[2,1500].t", "[1025]", "[600,300]"):
        n = len(sizes.split(","))
        for which in range(n):
            for op in ("sum.dim_IntList", "amax", "amin"):
                w.case(op, "i32%s, [%d]" % (sizes, which))
                if "600" not in sizes:
                    w.case(op, "f32%s, [%d]" % (sizes, which))
        w.case("sum", "f64" + sizes)
        w.case("sum", "c64" + sizes)
    w.case("sum", "f32[300,300]")


def outputs(w):
    w.comment("given outputs")
    for out in ("f32[2]", "f32[0]", "f32[3]", "f64[2]", "i64[2]", "f32[2].strided"):
        w.case("sum.IntList_out", "f32[2,3], [1], out=" + out)
        w.case("sum.IntList_out", "f32[2,3], [1], dtype=float32, out=" + out)
        w.case("mean.out", "f32[2,3], [1], out=" + out, "rtol=1e-6")
        if out[0] == "f" and out[1] == "3":  # other dtypes: the reference words it otherwise
            w.case("amax.out", "f32[2,3], [1], out=" + out)
    for out in ("f32[]", "f64[]", "i64[]"):
        w.case("sum.out", "f32[2,3], out=" + out)
        w.case("sum.out", "f32[2,3], dtype=float32, out=" + out)
    w.tensor("m", torch.arange(6, dtype=torch.float32))
    w.view("matrix", "m", [2, 3], [3, 1])
    w.view("part", "m", [2], [1], 1)
    w.case("sum.IntList_out", "f32[2,3], [1], out=$part")


with Writer("reduce") as writer:
    for part in (dtypes, dims, values, layouts, long, outputs):
        part(writer)
