#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Factories from diagonals, scatters into views, and operators that are said in terms of others."""

import torch

from literal import DTYPES, Writer


def diagonals(w):
    w.comment("eye, linspace, triangles")
    for dtype in ("float32", "int64", "bool", "complex64", "bfloat16"):
        w.case("eye", "3, dtype=" + dtype)
        w.case("eye.m", "2, 3, dtype=" + dtype)
    for args in ("0", "-1"):
        w.case("eye", args)
    for args in ("3, 1", "0, 2", "2, -3"):
        w.case("eye.m", args)
    w.case("eye.m_out", "2, 3, out=f32[0]")
    w.case("eye.out", "2, out=i64[2,2].t")
    for args in ("0, 1, 5", "0, 1, 1", "0, 1, 0", "0, 1, -1", "5, -5, 4, dtype=int32", "0, 10, 4, dtype=int64", "-1, 1, 3", "0, 1j, 3", "1, 2, 7, dtype=float64",
                 "0, 1, 3, dtype=bool", "0, 1j, 3, dtype=float32", "0, 1, 9, dtype=float16", "3, 3, 4", "1.5, 9.5, 5, dtype=uint8", "0, 300, 3, dtype=uint8"):
        w.case("linspace", args, "rtol=1e-6 atol=1e-7" if "float16" not in args else "ulp=1")
    w.case("linspace.out", "0, 1, 5, out=f64[5].strided", "rtol=1e-15")
    w.case("linspace.out", "0, 10, 5, out=i64[0]")
    for op in ("tril_indices", "triu_indices"):
        for args in ("3, 4", "3, 4, 1", "3, 4, -1", "4, 2, -2", "3, 4, 9", "3, 4, -9", "0, 4", "4, 0", "5, 3, dtype=int32", "-1, 4", "3, -4", "3, 4, dtype=float32"):
            w.case(op, args)
    w.case("new_empty_strided", "f32[2], [2,3], [1,2]", "values=no")
    w.case("new_empty_strided", "f32[2], [2,3], [1,2], dtype=int8", "values=no")
    w.case("new_empty_strided", "f32[2], [2,3], [1]")
    for a in DTYPES:
        w.case("diag_embed", a + "[2,3]")
        w.case("trace", a + "[3,4]", "ulp=1")
    for args in ("f32[3], 1", "f32[3], -2", "f32[2,3], 0, 0, 1", "f32[2,3].t, 1, 0, 2", "f32[2,3], 0, 0, 0", "f32[]", "f32[2,3], 0, 5, 6", "f32[0]"):
        w.case("diag_embed", args)
    for args in ("f32[3,4]", "f32[3,4], 1", "f32[3,4].t, -1", "f32[3]", "f32[3], 1", "f32[3].strided, -1", "f32[]", "f32[2,2,2]", "f32[0], 1"):
        w.case("diag", args)
    for args in ("f32[2,2,2]", "f32[3]", "f32[0,3]", "f32[3,4].t"):
        w.case("trace", args)


def scatters(w):
    w.comment("views with other values")
    w.tensor("y", torch.arange(120, dtype=torch.float32))
    w.view("p", "y", [5, 3, 2, 4], [1, 20, 60, 5])
    w.view("s", "y", [3, 4], [8, 2], 3)
    for args in ("f32[4], [3,4], 0, 1", "f32[3], [3,4], -1, -1", "f32[4], [3,4], 0, 5", "f32[5], [3,4], 0, 1", "f16[3,2].t, [3,4,2], 1, 2", "f32[], [3], 0, 1"):
        w.case("select_backward", args)
    for args in ("f32[2,4], [3,4], 0, 1, 3, 1", "f32[3,2], [3,4], 1, 0, 4, 2", "i64[1], [5], 0, -1, 100, 1", "f32[0,4], [3,4], 0, 3, 2, 1", "f32[1,4], [3,4], 0, 1, 3, 1"):
        w.case("slice_backward", args)
    for args in ("f32[3,4], f32[4], 0, 1", "f32[3,4].t, f32[4], 1, -1", "$s, f32[3], 1, 0", "f32[3,4], i64[4], 0, 1", "f32[3,4], f32[1], 0, 1", "f32[3,4], f32[4], 0, 7", "f32[3,4].expanded, f32[4], 0, 1",
                 "$p, f32[5,3,4], 2, 1"):
        w.case("select_scatter", args)
    for args in ("f32[3,4], f32[2,4], 0, 0, 2", "f32[3,4].t, f32[3,2], 1, 0, 4, 2", "$s, f32[1,4], 0, 0, 1", "f32[3,4], f32[4], 0, 0, 2", "f32[3,4], f32[0,4], 0, 3, 2", "f32[3,4], f64[3,4]"):
        w.case("slice_scatter", args)
    for args in ("f32[3,4], f32[3]", "f32[3,4], f32[2]", "$p, f32[2,4,3]", "$s, f32[2], -1", "f32[2,3,4], f32[3,2], 1, 0, 2"):
        w.case("diagonal_scatter", args)
    for x in ("f32[3,4]", "f32[3,4].t", "$p", "$s"):
        for args in ("", ", 2", ", 3", ", 0", ", -1", ", 1, [1,0]"):
            w.case("rot90", x + args)
    for args in ("1, [0]", "1, [0,0]", "1, [0,3]", "1, [0,2]", "1, [0,-2]", "1, [0,1,2]", "1, [-3,1]"):
        w.case("rot90", "f32[2,3], " + args)
    w.case("rot90", "f32[3]")


PARTS = (diagonals, scatters)

if __name__ == "__main__":
    with Writer("compose") as writer:
        for part in PARTS:
            part(writer)
