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


def rearranged(w):
    w.comment("joining and repeating")
    for args in ("[f32[2,3], f32[2,1]]", "[f32[2], f32[3]]", "[f32[], f32[]]", "[]", "[f32[2,3], f32[3]]", "[f32[2,3,4].t, f32[2,1,4]]", "[i64[2], f32[2]]"):
        w.case("hstack", args)
    for args in ("[f32[3], f32[2,3]]", "[f32[], f32[]]", "[]", "[f32[2,3,1], f32[1,3,1]]", "[f32[3], f32[2]]"):
        w.case("vstack", args)
    for args in ("[f32[2,3], f32[2,3].t]", "[f32[3]]", "[f32[], f32[]]", "[]", "[f32[1,3,2], f32[3]]"):
        w.case("dstack", args)
    for args in ("f32[2,3], [2]", "f32[2,3], [2,1,2]", "f32[2,3], []", "f32[2], [-1]", "f32[], [2]"):
        w.case("tile", args)
    w.tensor("r", torch.tensor([1, 0, 2]))
    w.tensor("r32", torch.tensor([2, 1], dtype=torch.int32))
    w.tensor("two", torch.tensor([2]))
    for args in ("$r", "$r32", "$r, output_size=3", "$r, output_size=4", "i64[2]=-1", "i64[0]"):
        w.case("repeat_interleave.Tensor", args, "cpu")
    for args in ("f32[2]", "i64[1,1]", "i64[]"):
        w.case("repeat_interleave.Tensor", args)
    for args in ("f32[3,4], $r, 0", "f32[4,3], $r, -1", "f32[3,4], $two", "f32[3,4], i64[]=2, 1", "f32[2,2].t, $r32, 1"):
        w.case("repeat_interleave.self_Tensor", args, "cpu")
    for args in ("f32[3,4], $r, 1", "f32[3,4], $r", "f32[3,4], i64[1,3], 0"):
        w.case("repeat_interleave.self_Tensor", args)
    for args in ("f32[2,3], 2", "f32[2,3], 2, 1", "f32[2,3].t, 3, 0", "f32[2,3], -1, 1", "f32[2,3], 2, 1, output_size=7", "f32[2,3], 2, 5", "f32[], 2", "f32[2,3], 0, 0", "f32[0,3], 2, 0"):
        w.case("repeat_interleave.self_int", args)
    w.tensor("classes", torch.tensor([[0, 2], [1, 1]]))
    w.case("one_hot", "$classes", "cpu")
    w.case("one_hot", "$classes, 2", "cpu")
    w.case("one_hot", "$classes, 0", "cpu")
    w.case("one_hot", "i64[2]=-1", "cpu")
    for args in ("$classes, 5", "i32[2], 3", "f32[2]", "i64[0]", "i64[0], 3", "i64[0], 0", "i64[]=1, 3"):
        w.case("one_hot", args)
    w.tensor("i", torch.tensor([[0, 3], [1, 1], [2, 0]]))
    w.view("i1", "i", [1, 2], [2, 1])
    for args in ("f32[3,4], $i, 1", "f32[3,4], $i1, 1", "f32[1,4], $i, 1", "f32[3,4], $i", "f32[3,4], i32[3,2], 1", "f32[3,4], i64[2], 1", "f32[3,4], i64[4,2], 1", "f32[3,4].t, $i1, 0"):
        w.case("take_along_dim", args)


def views(w):
    w.comment("views")
    for args in ("f32[7,2], 3", "f32[2,7], 3, 1", "f32[2], 4", "f32[3], 0", "f32[], 1", "f32[0], 2", "f32[6].strided, 2"):
        w.case("tensor_split.sections", args, "view")
    for args in ("f32[7], [2,5]", "f32[7], [5,2,-1,20]", "f32[2,7], [1], -1", "f32[7], []", "f32[], [1]"):
        w.case("tensor_split.indices", args, "view")
    for args in ("[f32[2,1], f32[3]]", "[f32[2], f32[3]]", "[f32[], f32[2,2].t]", "[]"):
        w.case("broadcast_tensors", args)
    for args in ("f32[3], [2,3]", "f32[2,3], [3]", "f32[1,3], [2,-1]"):
        w.case("broadcast_to", args, "view")
    for args in ("[f32[2], f32[3]]", "[f32[], f32[3]]", "[]", "[f32[2], f64[2]]", "[f32[4].strided]"):
        w.case("meshgrid", args)
    for args in ("[f32[2], f32[3], f32[4]], indexing='xy'", "[f32[2], f32[3]], indexing='ij'", "[f32[2]], indexing='xy'", "[f32[2]], indexing='ab'"):
        w.case("meshgrid.indexing", args)
    for args in ("f32[2,3,4], 0, -1", "f32[2,3], 0, 2"):
        w.case("swapaxes", args, "view")
        w.case("swapdims", args, "view")
    for args in ("f32[2,3]", "f32[2,3].t", "f32[]", "f32[0,2]", "f32[4].strided"):
        w.case("ravel", args)
    for args in ("f32[3,4], 1, [2,2]", "f32[3,4], 1, [2,-1]", "f32[3,4], 1, [3,2]", "f32[3,4], 1, []", "f32[3,4], 5, [2]", "f32[3,4].t, 0, [2,2]", "f32[3,4], 1, [-1,3]", "f32[3,0], 1, [0,5]",
                 "f32[3,4], -2, [1,3,1]"):
        w.case("unflatten.int", args, "view")


def sums_of_products(w):
    w.comment("einsum, bilinear, addr")
    tol = "rtol=1e-5 atol=1e-5 strides=no"
    for eq, ops in (("ij,jk->ik", "f32[3,4], f32[4,5]"), ("ij,jk", "f32[3,4], f32[4,5].t"), ("ii", "f32[3,3]"), ("ii->i", "f32[3,3]"), ("...ij,...jk->...ik", "f32[2,3,4], f32[4,5]"),
                    ("i,j->ji", "f32[3], f32[4]"), ("ij->", "f32[3,4]"), ("ij->ji", "f32[3,4]"), ("ij,kj->ik", "f32[3,4], f32[5,4]"), ("bhij,bhjd->bhid", "f32[2,3,4,5], f32[2,3,5,2]"),
                    ("...i->...", "f32[3,4]"), ("i...->...", "f32[3,4]"), ("ij,ij->ij", "f32[3,4], f32[3,1]"), ("ij,ij->", "f32[3,4], f32[3,1]"), ("", "f32[]"), ("i j , j k -> i k", "f32[3,4], f32[4,5]"),
                    ("Ab,bA->A", "f32[3,4], f32[4,3]"), ("...,...", "f32[3,4], f32[4]"), ("ij->...", "f32[3,4]"), ("ij,jk,kl->il", "f32[3,4], f32[4,5], f32[5,2]"), ("i,i,i->", "f32[5], f32[5], f32[5]"),
                    ("ijj->ji", "f32[3,4,4]"), ("iij->j", "f32[3,3,4]"), ("a...b,b...->a...", "f32[2,3,4], f32[4,3]"), ("abc,cd,ad->b", "f32[2,3,4], f32[4,5], f32[2,5]"), ("i,j->", "f32[3], f32[4]"),
                    ("bij,bjk->bik", "f32[0,3,4], f32[0,4,5]"), ("ij,jk->ik", "f32[3,0], f32[0,5]"), ("ij,jk->ik", "f64[3,4], f64[4,5]"), ("ij,jk->ik", "i64[3,4], i64[4,5]"), ("ij,jk->ik", "c64[3,4], c64[4,5]"),
                    ("ji", "f32[3,4]"), ("bnd,hd->bhn", "f32[2,3,4], f32[5,4]"),
                    ("ij,jk->i", "f32[3,4], f32[3,5]"), ("ij,jk->iz", "f32[3,4], f32[4,5]"), ("ij->ii", "f32[3,4]"), ("i", "f32[3,4]"), ("ijk", "f32[3,4]"), ("ij,jk", "f32[3,4]"), ("ij", "f32[3,4], f32[4,5]"),
                    ("i1", "f32[3,4]"), ("ij->i.", "f32[3,4]"), ("i..j", "f32[3,4]"), ("ii", "f32[3,4]"), ("ij;jk", "f32[3,4], f32[4,5]"), ("ij->i->j", "f32[3,4]"), ("a...,...b->a...b", "f32[3,4], f32[3,4]"),
                    ("i......", "f32[3,4]"), ("...ijk", "f32[3,4]"), ("i", "")):
        w.case("einsum", "'%s', [%s]" % (eq, ops), tol)
    w.case("einsum", "'ij,jk,kl->il', [f32[3,4], f32[4,5], f32[5,2]], path=[1,2,0,1]", tol)
    w.case("einsum", "'ij,jk,kl->il', [f32[3,4], f32[4,5], f32[5,2]], path=[0,1,0,1]", tol)
    close = "rtol=1e-5 atol=1e-5"
    for args in ("f32[2,3], f32[2,4], f32[5,3,4], f32[5]", "f32[3], f32[4], f32[5,3,4]", "f32[7,2,3], f32[7,2,4], f32[5,3,4]", "f64[0,3], f64[0,4], f64[5,3,4]", "f32[2,3], f32[3,4], f32[5,3,4]",
                 "f32[2,3], f32[2,5], f32[5,3,4]", "f32[2,2], f32[2,4], f32[5,3,4]", "f32[2,3], f32[2,4], f32[5,3,4], f32[4]", "f32[2,3], f32[4], f32[5,3,4]"):
        w.case("bilinear", args, close)
    for args in ("f32[2,3], f32[2], f32[3]", "f32[3], f32[2], f32[3], beta=0.5, alpha=2", "f32[2,3]=nan, f32[2], f32[3], beta=0", "i64[2,3], i64[2], i64[3], alpha=3", "bool[2,3], bool[2], bool[3]",
                 "bool[2,3], bool[2], bool[3], beta=2", "bool[2,3], bool[2], bool[3], beta=0", "f32[2,3], f64[2], f32[3]", "i64[2,3], f32[2], f32[3]", "f32[2,3].t, f32[2], f32[3]", "f32[2,4], f32[2], f32[3]",
                 "f32[2,3], f32[2,1], f32[3]", "f32[2,3], f32[2], f32[3,1]", "i64[2,3], i64[2], i64[3], beta=0.5", "f32[0,3], f32[0], f32[3]"):
        w.case("addr", args, close)


PARTS = (diagonals, scatters, rearranged, views, sums_of_products)

if __name__ == "__main__":
    with Writer("compose") as writer:
        for part in PARTS:
            part(writer)
