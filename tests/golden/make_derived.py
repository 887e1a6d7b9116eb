#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Differences, integrals, pieces, products and losses that are said in other operators."""

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-5"


def main(w):
    w.comment("differences and integrals")
    for args in ("f32[2,5]", "f32[2,5], 2", "f32[2,5], 1, 0", "i64[5], 3", "bool[5]", "u8[4]", "f32[3], 0", "f32[3], 5", "f32[3], 1, -1, f32[1]", "f32[3], 1, -1, f32[1], f32[2]", "f32[2,3], 1, 0, None, f32[1,3]", "f32[]", "f32[3], -1",
                 "f32[2,3], 1, 0, f32[3]", "f32[0]", "c64[4]", "f32[2,5].t, 1, 1"):
        w.case("diff", args)
    w.case("diff.out", "f32[5], 1, out=f32[0]")
    for args in ("f32[2,5], f32[5]", "f32[2,5], f32[2,5].strided", "f32[2,5], f32[2], dim=0", "f32[2,5], f32[4]", "f32[2,0], f32[0]", "f32[2,1], f32[1]"):
        w.case("trapezoid.x", args, CLOSE)
        w.case("trapz.x", args, CLOSE)
    for args in ("f32[2,5]", "f32[2,5], dx=0.5", "f32[2,5], dim=0", "f32[2,0]", "f32[2,1]"):
        w.case("trapezoid.dx", args, CLOSE)
        w.case("trapz.dx", args, CLOSE)
    w.comment("pieces")
    for op, shapes in (("hsplit", ("f32[4]", "f32[2,4]", "f32[2,4,2].t")), ("vsplit", ("f32[4,2]", "f32[4,3,2]")), ("dsplit", ("f32[1,2,4]",))):
        for shape in shapes:
            w.case(op + ".int", shape + ", 2", "view")
            w.case(op + ".array", shape + ", [1,3]", "view")
            w.case(op + ".int", shape + ", 3", "view")
        w.case(op + ".array", "f32[], [1]")
        w.case(op + ".int", "f32[], 1")
    w.case("moveaxis.int", "f32[2,3,4], 0, 2", "view")
    w.case("moveaxis.intlist", "f32[2,3,4], [0,1], [2,0]", "view")
    w.comment("products")
    for args in ("[f32[2], f32[3]]", "[f32[2]]", "[f32[2], f32[0]]", "[f32[2], f32[3], f32[2]]", "[f32[2,2]]"):
        w.case("cartesian_prod", args)
    for args in ("f32[2,3], f32[2,2]", "f32[2], f32[3]", "f32[2,2], f32[3]", "f32[], f32[2]", "i64[2], f32[2]", "f32[0], f32[2]", "f32[2,2], f32[2,1,2]"):
        w.case("kron", args)
    w.case("kron.out", "f32[2], f32[2], out=f32[0]")
    for args in ("f32[3], f32[3]", "f32[2,3], f32[4,3]", "f32[2,2,3], f32[3]", "f32[], f32[2]", "f32[2,3], f32[4]", "f32[2,0], f32[3,0]"):
        w.case("inner", args, CLOSE)
    w.case("inner.out", "f32[2,3], f32[4,3], out=f32[0]", CLOSE)
    for args in ("f32[2,3,4], f32[4,3,5], [1,2], [1,0]", "f32[2,3], f32[3,2], [1], [0]", "f32[2,3], f32[2,3], [0,1], [0,1]", "f32[2], f32[3], [], []", "f32[2,3], f32[3,2], [-1], [-2]", "f32[2,0], f32[0,3], [1], [0]",
                 "f32[2,3], f32[3,2], [0], []", "f32[2,3], f32[3,2], [0], [0]"):
        w.case("tensordot", args, CLOSE)
    w.case("tensordot.out", "f32[2,3], f32[3,2], [1], [0], out=f32[0]", CLOSE)
    w.comment("losses")
    for args in ("f32[2,3], f32[2,3].strided", "f32[2,3], f32[3], 1.0", "f32[3], f32[3]", "f32[2,3], f32[2,3], 2.0, 0.1, True", "f32[2,3], f32[2,4]"):
        w.case("pairwise_distance", args, CLOSE)
    for r in (0, 1, 2):
        w.case("margin_ranking_loss", "f32[5], f32[5].strided, f32[5]=1, 0.5, %d" % r, CLOSE)
        w.case("margin_ranking_loss", "f32[2,3], f32[2,3].strided, f32[2,3]=-1, 0.0, %d" % r, CLOSE)
        w.case("hinge_embedding_loss", "f32[5], f32[5]=-1, 1.0, %d" % r, CLOSE)
        w.case("hinge_embedding_loss", "f32[5], f32[5]=1, 0.5, %d" % r, CLOSE)
        w.case("triplet_margin_loss", "f32[3,4], f32[3,4].strided, f32[3,4]=0.5, 1.0, 2.0, 1e-6, False, %d" % r, CLOSE)
        w.case("triplet_margin_loss", "f32[3,4], f32[3,4].strided, f32[3,4]=0.5, 2.0, 1.0, 1e-6, True, %d" % r, CLOSE)
        for rest in ("True, False", "True, True", "False, True", "False, False"):
            w.case("poisson_nll_loss", "f32[5]=1.5, f32[5]=3, %s, 1e-8, %d" % (rest, r), CLOSE)
    w.case("margin_ranking_loss", "f32[5], f32[5], f32[1,5]")
    w.case("triplet_margin_loss", "f32[3,4], f32[4], f32[3,4]")


if __name__ == "__main__":
    with Writer("derived") as writer:
        main(writer)
