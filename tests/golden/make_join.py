#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joining, padding, repeating, moving around: sizes, layouts, dtypes, refusals."""

import torch

from literal import DTYPES, Writer


def join(w):
    w.comment("cat, stack")
    for a in DTYPES:
        w.case("cat", "[%s[2,3], %s[1,3]]" % (a, a))
        w.case("stack", "[%s[2,3].t, %s[2,3]], -1" % (a, a))
        for b in DTYPES:
            w.case("cat", "[%s[2], %s[2]]" % (a, b))
    for args in ("[f32[2,3].t, f32[2,4]], 1", "[f32[2,3,4].strided, f32[2,1,4], f32[2,0,4]], -2", "[f32[2,3], f32[0], f32[1,3]]",
                 "[f32[0], f32[0]]", "[f32[0], f32[0]], 5", "[f32[0], i64[0]]", "[f32[2,3], f64[0]], 1", "[f32[2,3,4,5].cl, f32[2,3,4,5].cl], 1",
                 "[f32[2,3,4,5].cl, f32[2,3,4,5]], 1", "[f32[2,3,4,5].cl], 2", "[f32[2,3,2,2,2].cl, f32[2,1,2,2,2].cl], 1",
                 "[f32[0,3], f32[2,3]]", "[f32[2,3].expanded, f32[2,3]]", "[f32[3]]", "[f32[4,0], f32[4,0]], 1", "[f32[300,7], f32[300,5]], 1",
                 "[f32[2,0], f32[2,3].t], -1", "[]", "[f32[]]", "[f32[2], f32[]]", "[f32[2,3], f32[3]]", "[f32[2,3], f32[2,4]]",
                 "[f32[2,3]], 2", "[f32[2,3], f32[1,3]], -3", "[f32[0], f32[2,3]], 2"):
        w.case("cat", args)
    w.case("cat.out", "[f32[2,3], f64[1,3]], 0, out=f32[0]")
    w.case("cat.out", "[f32[2,3], f32[2,2]], 1, out=f32[2,5].t")
    w.case("cat.out", "[i32[2], u8[2]], out=f16[4].strided")
    w.case("cat.out", "[f32[2,3]], out=i64[0]")
    w.case("cat.out", "[c64[2]], out=f32[0]")
    for args in ("[f32[2,3], f32[2,3].t], 1", "[f32[], f32[]]", "[f32[0,2]], 1", "[f32[2], i64[2], f64[2]]", "[f32[2,3,4,5].cl, f32[2,3,4,5].cl], 2",
                 "[f32[3]], -2", "[]", "[f32[2], f32[3]]", "[f32[2]], 2", "[f32[2], f32[2,1]]"):
        w.case("stack", args)
    w.case("stack.out", "[f32[2], f32[2]], 1, out=f64[0]")
    w.case("stack.out", "[f32[2], f32[2]], 1, out=f32[2,2].t")


def pads(w):
    w.comment("constant_pad_nd")
    for a in DTYPES:
        w.case("constant_pad_nd", a + "[2,3], [1,2]")
        w.case("constant_pad_nd", a + "[2,3].t, [1,0,-1,2], 3")
    for args in ("f32[2,3], [0,0,1,1], -inf", "f32[2,3], [-1,-1]", "f32[2,3].t, [-1,0]", "f32[2,3], [0,0]", "f32[2,3].t, [0,0]", "f32[2,3], []",
                 "f32[], []", "f32[2,3,4,5].cl, [1,1]", "f32[2,3,4,5].cl, [0,-1]", "f32[2,3,4,5].cl, [1,0,0,1,2,0]", "f32[2,0], [1,1]", "f32[0,2], [0,0,1,1], 2",
                 "f32[4], [-3,2], 9", "f32[4], [2,-3], 9", "f32[2,3].strided, [1,1,1,1], nan", "i64[2], [1,1], 1.7", "f32[3], [-3,0]", "f32[3], [-3,5], 1",
                 "f32[4], [-5,6], 1", "f32[2], [1]", "f32[2], [1,1,1,1]", "f32[2,3], [-4,0,1,0]", "f32[2,3], [-2,-2]", "u8[2], [1,1], 300", "f32[2], [1,1], 1j"):
        w.case("constant_pad_nd", args)


def moves(w):
    w.comment("repeat, roll, flip")
    for a in DTYPES:
        w.case("repeat", a + "[2,3].t, [2,2]")
        w.case("roll", a + "[3,4], [1,-1], [0,1]")
        w.case("flip", a + "[3,4], [0,1]")
        w.case("tril", a + "[3,4]")
        w.case("triu", a + "[3,4].t, 1")
    for args in ("f32[2,3], [1,1]", "f32[2,3], [2,1,3]", "f32[2,3], [0,2]", "f32[2,1].strided, [1,4]", "f32[], []", "f32[], [3]", "f32[], [2,0]", "f32[0,2], [3,3]",
                 "f32[2,3,4,5].cl, [1,1,1,1]", "f32[2,3].expanded, [2,2]", "f32[2,3], [2]", "f32[2,3], [-1,2]", "f32[2,3], [2,-1,0]"):
        w.case("repeat", args)
    w.tensor("y", torch.arange(120, dtype=torch.float32))
    w.view("p", "y", [5, 3, 2, 4], [1, 20, 60, 5])
    w.view("s", "y", [2, 3, 2, 5], [60, 20, 10, 1])
    for x in ("$p", "$s", "f32[2,3,4,5].cl"):
        for args in ("[1], [0]", "[1,1], [2,3]", "[1,2,-7], [1,0,-1]", "[7]", "[0], [1]", "[1,1], [1,1]"):
            w.case("roll", "%s, %s" % (x, args))
        for args in ("[0]", "[1,3]", "[-1]", "[]", "[0,1,2,3]"):
            w.case("flip", "%s, %s" % (x, args))
        w.case("tril", x)
        w.case("triu", x + ", -1")
    for args in ("f32[3], []", "f32[3], [], [0]", "f32[3], [1,2]", "f32[3], [1,2], [0]", "f32[3], [1], [1]", "f32[], [1]", "f32[], [1], [0]", "f32[0,2], [1], [0]",
                 "f32[0,2], [1]", "f32[2,0].t, [1], [0]", "f32[5], [12], [0]", "f32[5], [-12], [0]"):
        w.case("roll", args)
    for args in ("f32[], []", "f32[], [0]", "f32[], [-1]", "f32[3], [0,-1]", "f32[3], [1]", "f32[0,3], [0]", "f32[1,3].strided, [0,1]", "f32[2,3].expanded, [0]"):
        w.case("flip", args)
    for op in ("tril", "triu"):
        for args in ("f32[3,4], 2", "f32[3,4], -2", "f32[3,4], 100", "f32[3,4], -100", "f32[3]", "f32[]", "f32[0,3]", "f32[3,0]", "f32[2,3,4].strided", "f32[2,1,5]", "f32[3,3].expanded"):
            w.case(op, args)
        w.case(op + "_", "f32[3,4].t", "same")
        w.case(op + "_", "f32[3,4].strided, 1", "same")


def own_values(w):
    w.comment("reflection, replication")
    for a in DTYPES:
        for op in ("reflection_pad1d", "replication_pad1d"):
            w.case(op, a + "[3,4], [2,1]")
        for op in ("reflection_pad2d", "replication_pad2d"):
            w.case(op, a + "[1,3,4], [2,1,0,1]")
        for op in ("reflection_pad1d_backward", "replication_pad1d_backward"):
            w.case(op, a + "[3,7], %s[3,4], [2,1]" % a, "rtol=2e-2 atol=1e-2" if "16" in a else "ulp=2")
        for op in ("reflection_pad2d_backward", "replication_pad2d_backward"):
            w.case(op, a + "[1,4,7], %s[1,3,4], [2,1,0,1]" % a, "rtol=2e-2 atol=1e-2" if "16" in a else "ulp=2")
    for args in ("f32[3,4], [3,3]", "f32[3,4], [4,2]", "f32[4], [1,1]", "f32[2,3,4], [1,-2]", "f32[2,3,4], [-3,-2]", "f32[2,3,4].t, [1,1]", "f32[0,3,4], [1,1]", "f32[2,0,4], [1,1]", "f32[2,0], [1,1]",
                 "f32[3,4], [-2,-2]", "f32[3,4], [1]", "f32[3,4], [-1,3]"):
        w.case("reflection_pad1d", args)
        w.case("replication_pad1d", args)
    for args in ("f32[2,3,4,5], [1,1,2,2]", "f32[3,4,5], [1,1,2,2]", "f32[2,3,4,5], [5,1,2,2]", "f32[2,3,4,5], [1,1,4,2]", "f32[3,4], [1,1,1,1]", "f32[2,3,4,5].cl, [1,1,1,1]", "f32[0,3,4,5], [1,1,1,1]",
                 "f32[2,0,4,5], [1,1,1,1]", "f32[3,4,5].t, [1,-1,0,2]", "f32[2,3,4,5], [1,1,1]", "f32[2,3,4,5].strided, [4,4,3,3]"):
        w.case("reflection_pad2d", args)
        w.case("replication_pad2d", args)
    for op in ("reflection_pad2d", "replication_pad2d"):
        w.refuse(op, "f32[2,3,4,5], [-3,-3,0,0]", "RuntimeError: input (H: 4, W: 5) is too small. Calculated output H: 4 W: -1")
        for args in ("f32[2,3,8,7], f32[2,3,4,5], [1,1,2,2]", "f32[2,3,8,7].cl, f32[2,3,4,5].cl, [1,1,2,2]", "f32[2,3,8,8], f32[2,3,4,5], [1,1,2,2]", "f32[2,3,9,7], f32[2,3,4,5], [1,1,2,2]",
                     "f32[3,8,3].t, f32[3,4,5], [-1,-1,2,2]"):
            w.case(op + "_backward", args, "ulp=4")
    for op in ("reflection_pad1d", "replication_pad1d"):
        for args in ("f32[3,7], f32[3,4], [1,2]", "f32[3,6], f32[3,4], [1,2]", "f32[2,3,7].t, f32[2,3,4], [2,1]"):
            w.case(op + "_backward", args, "ulp=4")
    w.comment("pad")
    for args in ("f32[3,4], [1,1]", "f32[3,4], [1,1,-1,2], 'constant', 2.0", "i64[3], [1,1], 'constant', 2.7", "f32[3,4], [1,1], 'reflect'", "f32[1,3,4,5], [1,1,1,1], 'replicate'", "f32[1,3,4,5], [1,1,2,1], 'circular'",
                 "f32[3,4], [1,1], 'foo'", "f32[3,4], [1,1], 'reflect', 1.0", "f32[1,3,4,5], [1,1,1], 'reflect'", "f32[3,4], [1]", "f32[1,3,4,5], [1,1], 'reflect'", "f32[1,3,4,5], [6,6,1,1], 'circular'",
                 "f32[3,4,5], [1,1], 'circular'", "f32[3,4], [1,1,1,1,1,1]", "f32[1,3,4,5], [-1,-1,-1,2], 'circular'", "f32[4], [1,1], 'circular'", "f32[3,4], [4,4], 'circular'", "f32[2,3,4].t, [1,2], 'replicate'",
                 "f32[3,4], [0,0], 'circular'", "f32[1,2,3,4], [4,4,3,3], 'circular'", "f32[1,3,4,5], [3,-2,-2,2], 'circular'"):
        w.case("pad", args)


with Writer("join") as writer:
    for part in (join, pads, moves, own_values):
        part(writer)
