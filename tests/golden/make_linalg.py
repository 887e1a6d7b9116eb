#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Matrix products: values in every dtype and layout, sizes 0 and 1, beta and alpha, matmul and linear by their cases,
given outputs, refusals. Literals are eighths, so that sums of products are exact in any order."""

import random

import torch

from literal import DTYPES, Writer

EXACT = "ulp=0"
NUMBERS = [d for d in DTYPES if d != "bool"]
LAYOUTS = ("", ".t", ".strided", ".expanded", ".offset")


def products(w):
    w.comment("every dtype")
    for d in NUMBERS:
        few = d in ("u8", "i16", "f64", "c128")
        for a, b in (("[2,3]", "[3,4]"), ("[1,3]", "[3,5]"), ("[5,3]", "[3,1]"), ("[1,4]", "[4,1]"), ("[3,1]", "[1,2]"),
                     ("[7,9]", "[9,11]"), ("[2,0]", "[0,3]"), ("[0,3]", "[3,2]"), ("[2,3]", "[3,0]"), ("[0,3]", "[3,0]")):
            w.case("mm", "%s%s, %s%s" % (d, a, d, b), EXACT)
        for a in LAYOUTS:
            for b in LAYOUTS[:3] if few else LAYOUTS:
                w.case("mm", "%s[4,3]%s, %s[3,5]%s" % (d, a, d, b), EXACT)
                w.case("bmm", "%s[2,4,3]%s, %s[2,3,5]%s" % (d, a, d, b), EXACT)
            w.case("mv", "%s[4,3]%s, %s[3]" % (d, a, d), EXACT)
            w.case("mv", "%s[4,3]%s, %s[3].strided" % (d, a, d), EXACT)
        for a, b in (("[0,3,4]", "[0,4,5]"), ("[2,3,0]", "[2,0,4]"), ("[2,0,3]", "[2,3,4]"), ("[3,1,2]", "[3,2,1]"),
                     ("[2,1,4]", "[2,4,3]"), ("[2,4,3]", "[2,3,1]")):
            w.case("bmm", "%s%s, %s%s" % (d, a, d, b), EXACT)
        w.case("mv", "%s[3,0], %s[0]" % (d, d), EXACT)
        w.case("mv", "%s[0,3], %s[3]" % (d, d), EXACT)
        w.case("dot", "%s[7], %s[7].strided" % (d, d), EXACT)
        w.case("dot", "%s[40], %s[40].offset" % (d, d), EXACT)
        w.case("dot", "%s[0], %s[0]" % (d, d), EXACT)


def larger(w):
    w.comment("sizes around the kernels' edges")
    for d in ("f32", "f64", "c64", "i32", "bf16"):
        for m, n, k, how in ((16, 16, 16, ("", "")), (17, 15, 19, ("", ".t")), (9, 33, 5, ("", "")), (13, 8, 40, (".t", "")),
                             (3, 40, 20, ("", ".t")), (10, 19, 7, (".t", ".strided")), (11, 18, 9, (".strided", ".t"))):
            w.case("mm", "%s[%d,%d]%s, %s[%d,%d]%s" % (d, m, k, how[0], d, k, n, how[1]), EXACT)
    for d in ("f32", "f64"):
        w.case("mm", "%s[9,300], %s[300,70]" % (d, d), EXACT)
        w.case("mm", "%s[9,300].t, %s[300,70].t" % (d, d), EXACT)
        w.case("mm", "%s[5,1100].strided, %s[1100,17].strided" % (d, d), EXACT)
        w.case("mv", "%s[40,130].t, %s[130]" % (d, d), EXACT)
        w.case("mv", "%s[21,130], %s[130].strided" % (d, d), EXACT)
        w.case("mm", "%s[1,130], %s[130,75]" % (d, d), EXACT)
        w.case("mm", "%s[1,130], %s[130,75].t" % (d, d), EXACT)


def adding(w):
    w.comment("beta and alpha")
    for d in ("f32", "f64", "i64", "u8", "c64", "f16", "bf16"):
        near = "ulp=1" if "f16" in d else EXACT
        for self in ("[2,4]", "[4]", "[1,4]", "[2,1]", "[]", "[1]", "[2,4].t", "[2,4].strided", "[2,4].expanded"):
            w.case("addmm", "%s%s, %s[2,3], %s[3,4]" % (d, self, d, d), near)
            w.case("addmm", "%s%s, %s[2,3], %s[3,4].t, beta=2, alpha=3" % (d, self, d, d), near)
        for self in ("[2,3,5]", "[5]", "[3,1]", "[2,1,5]", "[]"):
            w.case("baddbmm", "%s%s, %s[2,3,4], %s[2,4,5], beta=2" % (d, self, d, d), near)
        for self in ("[4]", "[1]", "[]", "[4].strided"):
            w.case("addmv", "%s%s, %s[4,3], %s[3], beta=2, alpha=2" % (d, self, d, d), near)
            w.case("addmv", "%s%s, %s[4,3].t, %s[3], alpha=-1" % (d, self, d, d), near)
        w.case("addmm", "%s[2,4], %s[2,0], %s[0,4], beta=2" % (d, d, d), near)
        w.case("addmm", "%s[2,4], %s[2,0], %s[0,4], beta=0" % (d, d, d), near)
        w.case("addmm", "%s[4], %s[1,3], %s[3,4]" % (d, d, d), near)
        w.case("addmm", "%s[2,1], %s[2,3], %s[3,1]" % (d, d, d), near)
        w.case("baddbmm", "%s[2,3,5], %s[2,3,0], %s[2,0,5]" % (d, d, d), near)
        w.case("addmv", "%s[4], %s[4,0], %s[0], beta=3" % (d, d, d), near)
    w.case("addmm", "f32[2,4], f32[2,3], f32[3,4], beta=0.5, alpha=1.5", "ulp=1")
    w.case("addmm", "i64[2,4], i64[2,3], i64[3,4], beta=1.5, alpha=2.5")
    w.case("addmm", "c64[2,4], c64[2,3], c64[3,4], beta=1j, alpha=2", EXACT)
    w.case("addmm", "f32[2,4], f32[2,3], f32[3,4], beta=True, alpha=False", EXACT)
    w.case("addmv", "f64[4], f32[4,3], f32[3]", EXACT)
    w.tensor("bad", torch.full((2, 4), float("nan")))
    w.tensor("bad3", torch.full((2, 3, 5), float("inf")))
    for beta in ("0", "0.0", "1"):
        w.case("addmm", "$bad, f32[2,3], f32[3,4], beta=" + beta, EXACT)
        w.case("baddbmm", "$bad3, f32[2,3,4], f32[2,4,5], beta=" + beta, EXACT)
    w.case("addmm", "f32[2,4], $bad, f32[4,4], alpha=0", EXACT)
    for self in ("f32[2,4]", "f32[2,4].t", "f32[2,4].strided"):
        w.case("addmm_", self + ", f32[2,3], f32[3,4]", "same ulp=0")
    w.case("baddbmm_", "f32[2,3,5], f32[2,3,4], f32[2,4,5], beta=0", "same ulp=0")
    w.case("addmv_", "f32[4].strided, f32[4,3], f32[3], beta=2", "same ulp=0")


def accumulation(w):
    w.comment("halves are summed in float; integers wrap")
    for d in ("f16", "bf16"):
        w.case("mm", "%s[1,4096]=1, %s[4096,1]=1" % (d, d), EXACT)
        w.case("mm", "%s[2,1500]=1, %s[1500,3]=1" % (d, d), EXACT)
        w.case("dot", "%s[4096]=1, %s[4096]=1" % (d, d), EXACT)
        w.case("mv", "%s[2,4096]=1, %s[4096]=1" % (d, d), EXACT)
    w.tensor("many", torch.tensor([[256.0, 1, 1, 1, 1, 1]], dtype=torch.bfloat16))
    w.case("mm", "$many, bf16[6,2]=1", EXACT)
    w.case("mm", "i8[2,3]=100, i8[3,2]=100")
    w.case("mm", "u8[2,3]=255, u8[3,2]=255")
    w.case("mm", "i16[2,3]=30000, i16[3,2]=30000")
    w.case("mm", "i64[2,3]=4611686018427387904, i64[3,2]=3")
    w.case("dot", "i32[5]=2147483647, i32[5]=2147483647")


def matmuls(w):
    w.comment("matmul and linear, by dimensions")
    rng = random.Random(5)
    shapes = {1: ["[4]"], 2: ["[3,4]", "[1,4]", "[0,4]"], 3: ["[2,3,4]", "[1,3,4]", "[2,0,4]"],
              4: ["[2,1,3,4]", "[1,5,3,4]", "[2,3,3,4]"]}
    right = {1: ["[4]"], 2: ["[4,5]", "[4,1]", "[4,0]"], 3: ["[2,4,5]", "[1,4,5]"], 4: ["[2,1,4,5]", "[2,3,4,2]"]}
    for a in shapes:
        for b in right:
            for x in shapes[a]:
                for y in right[b]:
                    w.case("matmul", "f32%s, f32%s" % (x, y), EXACT)
                    how = rng.choice(LAYOUTS[1:]), rng.choice(LAYOUTS[1:])
                    how = ["" if h == ".t" and n == 1 else h for h, n in zip(how, (a, b))]
                    w.case("matmul", "f32%s%s, f32%s%s" % (x, how[0], y, how[1]), EXACT)
    w.case("matmul", "f32[3,5,0], f32[0,4]", EXACT)
    w.case("matmul", "f32[0], f32[0]", EXACT)
    w.case("matmul", "f32[2,0], f32[0]", EXACT)
    w.case("matmul", "f32[0,4,3], f32[3,5]", EXACT)
    w.case("matmul", "f32[5,4], f32[0,4,3]", EXACT)
    w.case("matmul", "i32[2,3,4], i32[4]", EXACT)
    w.case("matmul", "c64[2,3,4], c64[2,4,2]", EXACT)
    for x in ("[4]", "[3,4]", "[2,3,4]", "[2,2,3,4]", "[1,2,1,3,4]", "[0,3,4]", "[3,4].t", "[2,3,4].t", "[2,3,4].strided",
              "[2,3,4].expanded", "[2,3,4].offset", "[2,0,4].t"):
        for bias in ("", ", f32[5]", ", f32[1,5]", ", f32[]", ", f32[1]", ", f32[5].strided"):
            w.case("linear", "f32%s, f32[5,4]%s" % (x, bias), EXACT)
            if bias != ", f32[]" and "." not in x:
                w.case("linear", "f32%s, f32[5,4].t%s" % (x, bias), EXACT)
        w.case("linear", "f32%s, f32[4]" % x, EXACT)
    w.case("linear", "f32[2,3], f32[4,3], f32[2,4]", EXACT)
    w.case("linear", "f32[2,2,3], f32[4,3], f32[2,4]", EXACT)
    w.case("linear", "f32[2,5,3], f32[3], f32[]", EXACT)
    w.case("outer", "f32[2], f32[3]", EXACT)
    w.case("outer", "f32[2].strided, i64[3]", EXACT)
    w.case("outer", "bool[2], bool[3]")
    w.case("outer", "f32[0], f32[3]")


def outputs(w):
    w.comment("given outputs")
    for out in ("f32[2,4]", "f32[0]", "f32[5]", "f64[2,4]", "f32[2,4].t", "f32[2,4].strided", "i64[0]"):
        w.case("mm.out", "f32[2,3], f32[3,4], out=" + out, EXACT)
        w.case("addmm.out", "f32[4], f32[2,3], f32[3,4], out=" + out, EXACT)
    for out in ("f32[2,3,5]", "f32[0]", "f32[2,3,5].t", "f32[2,3,5].strided", "f64[0]"):
        w.case("bmm.out", "f32[2,3,4], f32[2,4,5], out=" + out, EXACT)
        w.case("baddbmm.out", "f32[5], f32[2,3,4], f32[2,4,5], out=" + out, EXACT)
    for out in ("f32[3]", "f32[0]", "f32[3].strided", "f64[3]"):
        w.case("mv.out", "f32[3,4], f32[4], out=" + out, EXACT)
        w.case("addmv.out", "f32[3], f32[3,4], f32[4], out=" + out, EXACT)
    for out in ("f32[]", "f32[3]", "f32[0]"):
        w.case("dot.out", "f32[3], f32[3], out=" + out, EXACT)
    for a, b, sizes in (("[4]", "[4]", "[]"), ("[3,4]", "[4]", "[3]"), ("[4]", "[4,5]", "[5]"), ("[3,4]", "[4,5]", "[3,5]"),
                        ("[2,3,4]", "[4,5]", "[2,3,5]"), ("[2,3,4]", "[4]", "[2,3]"), ("[2,3,4]", "[2,4,5]", "[2,3,5]"),
                        ("[2,3,4]", "[1,4,5]", "[2,3,5]"), ("[5,4]", "[2,4,3]", "[2,5,3]"), ("[4]", "[2,4,3]", "[2,3]"),
                        ("[2,1,3,4]", "[5,4,2]", "[2,5,3,2]")):
        w.case("matmul.out", "f32%s, f32%s, out=f32[0]" % (a, b), EXACT)
        w.case("matmul.out", "f32%s, f32%s, out=f32%s" % (a, b, sizes), EXACT)
    w.case("matmul.out", "f32[2,3,4], f32[2,4,5], out=f32[2,3,5].t", EXACT)
    w.case("matmul.out", "f32[2,3,4], f32[4,5], out=f64[0]")
    w.case("matmul.out", "f32[2,3,4], f32[2,4,5], out=i64[2,3,5]")
    w.comment("outputs that share memory with an input, or with themselves")
    w.tensor("m", torch.arange(24, dtype=torch.float32))
    w.view("a", "m", [3, 3], [3, 1])
    w.view("b", "m", [3, 3], [3, 1], 9)
    w.view("wide", "m", [3, 3], [0, 1])
    w.case("mm.out", "$b, f32[3,3], out=$a", EXACT)
    w.case("addmm.out", "$a, $b, f32[3,3], out=$a", EXACT)
    w.case("mm.out", "$b, f32[3,3], out=$wide")
    w.case("addmm.out", "$b, $b, f32[3,3], out=$wide")


def refusals(w):
    w.comment("refusals")
    for op, args in (
            ("mm", "f32[3], f32[3,4]"), ("mm", "f32[2,3], f32[3]"), ("mm", "f32[2,3], f32[4,5]"), ("mm", "f32[2,3], f64[3,5]"),
            ("mm", "f16[2,3], f64[3,5]"), ("mm", "bool[2,3], bool[3,5]"), ("mm", "bool[0,3], bool[3,5]"),
            ("mm", "bool[2,0], bool[0,5]"), ("mm", "f32[0,3], f64[3,5]"),
            ("addmm", "f64[2,5], f32[2,3], f32[3,5]"), ("addmm", "f32[2,5], f64[2,3], f32[3,5]"),
            ("addmm", "f32[2,5], f32[2,3], f64[3,5]"), ("addmm", "f32[2,5], f32[3], f32[3,5]"),
            ("addmm", "f32[2,5], f32[2,3], f32[5]"), ("addmm", "f32[2,5], f32[2,3], f32[4,5]"),
            ("addmm", "f32[3,5], f32[2,3], f32[3,5]"), ("addmm", "f32[1,2,5], f32[2,3], f32[3,5]"),
            ("addmm", "f32[3,5], f32[2,3], f32[3,5], beta=0"), ("addmm", "bool[5], bool[2,3], bool[3,5]"),
            ("addmm", "f32[5], f32[2,3], f32[3,5], alpha=1j"), ("addmm", "f32[5], f32[2,3], f32[3,5], alpha=1e300"),
            ("addmm_", "f32[1,5], f32[2,3], f32[3,5]"), ("addmm_", "f32[5], f32[2,3], f32[3,5]"),
            ("bmm", "f32[2,3], f32[2,3,4]"), ("bmm", "f32[2,3,4], f32[2,3]"), ("bmm", "f32[2,3,4], f32[3,4,5]"),
            ("bmm", "f32[2,3,4], f32[2,5,5]"), ("bmm", "f32[2,3,4], f64[2,4,5]"), ("bmm", "f64[2,3,4], f32[2,4,5]"),
            ("bmm", "bool[2,3,4], bool[2,4,5]"), ("bmm", "bool[0,3,4], bool[0,4,5]"),
            ("baddbmm", "f64[2,3,5], f32[2,3,4], f32[2,4,5]"), ("baddbmm", "f32[3,3,5], f32[2,3,4], f32[2,4,5]"),
            ("baddbmm", "f32[5], f32[3,4], f32[2,4,5]"), ("baddbmm", "f32[1,1,1,5], f32[2,3,4], f32[2,4,5]"),
            ("baddbmm", "f32[2,3,5], f32[2,3,4], f32[2,3,5]"), ("baddbmm_", "f32[1,3,5], f32[2,3,4], f32[2,4,5]"),
            ("baddbmm", "bool[2,3,5], bool[2,3,4], bool[2,4,5]"),
            ("mv", "f32[3], f32[3]"), ("mv", "f32[2,3], f32[3,1]"), ("mv", "f32[2,3], f32[2]"), ("mv", "f32[2,3], f64[3]"),
            ("mv", "f64[2,3], f32[3]"), ("mv", "bool[2,3], bool[3]"),
            ("addmv", "f32[2,1], f32[2,3], f32[3]"), ("addmv", "f32[3], f32[2,3], f32[3]"),
            ("addmv", "f32[2], f32[2,3], f32[4]"), ("addmv", "f32[2], f64[2,3], f32[3]"),
            ("addmv", "f32[2], f32[2,3], f64[3]"), ("addmv_", "f32[1], f32[2,3], f32[3]"),
            ("addmv_", "f64[2], f32[2,3], f32[3]"),
            ("dot", "f32[2,3], f32[3]"), ("dot", "f32[3], f64[3]"), ("dot", "f32[3], f32[4]"), ("dot", "bool[3], bool[3]"),
            ("dot", "bool[0], bool[0]"),
            ("matmul", "f32[], f32[3]"), ("matmul", "f32[3,4], f32[]"), ("matmul", "f32[2,3,4], f32[3,4,5]"),
            ("matmul", "f32[2,3,4], f32[2,5,5]"), ("matmul", "f32[2,2,3], f32[4,5]"), ("matmul", "f32[2,2,3], f32[4]"),
            ("matmul", "f32[5,3], f32[2,4,3]"), ("matmul", "f32[4], f32[3,4]"), ("matmul", "f32[2,3,4], i64[4,2]"),
            ("matmul", "bool[2,3,4], bool[4,2]"),
            ("linear", "f32[], f32[3]"), ("linear", "f32[2,3], f32[4,3], f32[5]"), ("linear", "f32[2,3], f32[3], f32[1]"),
            ("linear", "f32[2,3], f32[3], f32[]"), ("linear", "f32[2,3], f32[2,4,3]"),
            ("linear", "f32[2,2,5], f32[4,3], f32[4]"), ("linear", "f32[2,5,3], f32[3], f32[1]"),
            ("linear", "f32[2,3], f64[4,3], f32[4]"), ("linear", "f32[2,2,5], f32[4,3]"),
            ("outer", "f32[2,2], f32[3]"), ("outer", "f32[2], f32[3,3]")):
        w.case(op, args)
    # What the reference refuses in other words, or does not refuse.
    w.refuse("baddbmm", "f32[5], f32[2,3,4], f32[4,5]", "RuntimeError: batch2 must be a 3D tensor")
    w.refuse("addmm_", "f32[3,5], f32[2,3], f32[3,5]",
             "RuntimeError: The expanded size of the tensor (2) must match the existing size (3)")
    w.refuse("dot.out", "f32[3], f32[3], out=f64[]",
             "RuntimeError: result dtype Double does not match input dtype Float")
    w.tensor("one", torch.zeros(15))
    w.view("all", "one", [2, 3, 5], [0, 5, 1])
    w.refuse("bmm.out", "f32[2,3,4], f32[2,4,5], out=$all",
             "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single "
             "memory location.")


with Writer("linalg") as writer:
    for part in (products, larger, adding, accumulation, matmuls, outputs, refusals):
        part(writer)
