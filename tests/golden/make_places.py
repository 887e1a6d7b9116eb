#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writing at places that an index says (index_copy, index_fill, index_reduce, put): which places there are, what is refused, and
in which words. Then corners of functions of one number: signs of zeros, small powers of complex numbers, 2 to powers out of range."""

import torch

from literal import Writer

inf, nan = float("inf"), float("nan")


def copies(w):
    w.comment("index_copy: places are not counted from the end, slices are not broadcast")
    for args in ("f32[3,4], 0, i64[1]=2, f32[1,4]", "f32[3,4], 1, i64[2]=3, f32[3,2]", "f32[3], 0, i64[]=1, f32[]=7", "f32[], 0, i64[1]=0, f32[1]", "f32[3,0], 0, i64[1]=2, f32[1,0]"):
        w.case("index_copy", args)
    for args in ("f32[3,4], 0, i64[1]=-1, f32[1,4]", "f32[3,4], 0, i64[1]=3, f32[1,4]", "f32[3,4], 1, i64[1]=9, f32[3,1]", "f32[], 0, i64[1]=1, f32[1]"):
        w.case("index_copy", args, "cpu")
    for args in ("f32[3,4], 0, f32[1], f32[1,4]", "f32[3,4], 0, i32[1]=0, f32[1,4]", "f32[3,4], 0, i64[1,1]=0, f32[1,4]", "f32[3,4], 0, i64[1]=0, f32[1,3]", "f32[3,4], 0, i64[1]=0, f32[4]",
                 "f32[3,4], 0, i64[1]=0, f32[]", "f32[3,4], 0, i64[2]=0, f32[]", "f32[3,4,5], 1, i64[1]=0, f32[3,2,6]", "f32[3,4,5], 1, i64[2]=0, f32[3,1,5]", "f32[], 0, i64[1]=0, f32[2]",
                 "f32[], 0, i64[1]=0, f32[1,1]", "f32[3,4], 0, i64[1]=0, f64[1,4]", "f32[3,4], 2, i64[1]=0, f32[1,4]"):
        w.case("index_copy", args)


def fills(w):
    w.comment("index_fill: places are counted from the end, too")
    for args in ("f32[3,4], 0, i64[1]=-1, 2.5", "f32[3,4], 1, i64[2]=-4, 2.5", "i64[3], 0, i64[]=1, 7", "f32[], 0, i64[1]=-1, 7", "f32[3,0], 0, i64[1]=2, 7",
                 "f32[3,4].expanded, 1, i64[1]=2, 7", "f32[3,4].t, 1, i64[1]=2, 7", "f32[3,4].strided, 0, i64[1]=2, 7"):
        w.case("index_fill.int_Scalar", args)
    for args in ("f32[3,4], 0, i64[1]=3, 1", "f32[3,4], 1, i64[1]=-5, 1", "f32[], 0, i64[1]=-2, 1"):
        w.case("index_fill.int_Scalar", args, "cpu")
    for args in ("f32[3,4], 0, f32[1], 1", "f32[3,4], 0, i32[1]=0, 1", "f32[3,4], 0, i64[1,1]=0, 1", "f32[3,4], 7, i64[1]=0, 1"):
        w.case("index_fill.int_Scalar", args)
    w.case("index_fill.int_Tensor", "f32[3,4], 1, i64[1]=9, f32[]=1", "cpu")
    for args in ("f32[3,4], 0, i64[1,1]=0, f32[]", "f32[3,4], 0, i64[1]=0, f32[1]", "f32[3,4], 0, i64[2]=-1, f32[]=7"):
        w.case("index_fill.int_Tensor", args)


def combinations(w):
    w.comment("index_reduce and index_add: slices of the same sizes, at places that exist")
    for args in ("f32[3,4], 0, i64[1]=3, f32[1,4], 'prod'", "f32[3,4], 1, i64[1]=-1, f32[3,1], 'mean'", "f32[3], 0, i64[1]=3, f32[1], 'amax'"):
        w.case("index_reduce", args, "cpu")
    for args in ("f32[3,4], 0, f32[1], f32[1,4], 'prod'", "f32[3,4], 0, i64[1,1]=0, f32[1,4], 'prod'", "f32[3,4], 0, i64[1]=0, f32[1,3], 'prod'", "f32[3,4], 0, i64[2]=0, f32[1,4], 'prod'",
                 "f32[3,4], 0, i64[1]=0, f32[4], 'prod'", "f32[3,4], 0, i64[1]=0, f64[1,4], 'prod'", "f32[3,4], 0, i64[1]=0, f32[], 'prod'", "f32[3,4], 0, i64[2]=0, f32[], 'prod'",
                 "f32[3,4], 0, i64[1]=0, f32[1,4,1], 'prod'", "f32[3,4], 1, i64[1]=0, f32[3], 'prod'", "f32[], 0, i64[1]=0, f32[1], 'prod'", "f32[3,4], 0, i64[1]=0, f32[4], 'least'",
                 "f32[3,4], 5, i64[1]=0, f32[1,4], 'prod'", "f32[3], 0, i64[]=0, f32[1], 'prod'", "f32[], 0, i64[]=0, f32[], 'prod'"):
        w.case("index_reduce", args)
    for args in ("f32[3,4], 0, i64[2]=0, f32[1,4]", "f32[3,4], 0, i64[1,1]=0, f32[1,4]", "f32[3,4], 0, f32[1], f32[1,4]", "f32[3,4], 1, i64[1]=0, f32[4]", "f32[3,4], 1, i64[1]=0, f32[3,1,1]",
                 "f32[3,4], 0, i64[1]=0, f32[]", "f32[3,4], 0, i64[2]=0, f32[]", "f32[3,4], 1, i64[1]=0, f32[]", "f32[3], 0, i64[1]=0, f32[]", "f32[], 0, i64[1]=0, f32[1]", "f32[3,4], 0, i64[1]=0, f32[4]"):
        w.case("index_add", args)


def elements(w):
    w.comment("put: places in memory order, counted from the end, too")
    for args in ("f32[3,4], i64[1]=-12, f32[1]=7", "f32[], i64[1]=0, f32[1]=7", "f32[0], i64[0], f32[0]"):
        w.case("put", args)
    for args in ("f32[3,4], i64[1]=12, f32[1]", "f32[3,4], i64[1]=-13, f32[1]", "f32[3,4], i64[1]=12, f32[1], True", "f32[], i64[1]=1, f32[1]"):
        w.case("put", args, "cpu")
    for args in ("f32[0], i64[1]=0, f32[1]", "f32[3,4], i64[2]=0, f32[]", "f32[3,4], f32[1], f32[1]", "f32[3,4], i64[1]=0, f64[1]"):
        w.case("put", args)


def zeros(w):
    w.comment("odd functions keep the sign of zero")
    for a, dtype in (("f32", torch.float32), ("f64", torch.float64), ("f16", torch.float16), ("bf16", torch.bfloat16)):
        w.tensor("zeros_" + a, torch.tensor([0.0, -0.0] * 9, dtype=dtype))
        for op in ("tanh", "sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "erf", "expm1", "log1p", "sqrt", "relu", "trunc", "round", "floor", "ceil", "neg", "reciprocal", "sigmoid", "erfinv"):
            w.case(op, "$zeros_" + a)


def complex_powers(w):
    w.comment("complex numbers to small powers: products of them, no logarithms")
    z = [complex(0, 1), complex(1, 1), complex(-1.5, 0), complex(0, -1.5), complex(2, -1), complex(-0.5, 0.25)]
    for a, dtype in (("c64", torch.complex64), ("c128", torch.complex128)):
        w.tensor("z_" + a, torch.tensor(z, dtype=dtype))
        for exponent in ("0", "1", "2", "3", "2.0", "3.0"):
            w.case("pow.Tensor_Scalar", "$z_%s, %s" % (a, exponent))
        w.case("square", "$z_" + a)
        w.case("pow.Tensor_Scalar", "$z_%s, -2" % a, "rtol=1e-6 atol=1e-12")
        w.case("pow.Tensor_Scalar", "$z_%s, -1" % a, "rtol=1e-6 atol=1e-12")
        w.case("pow.Scalar", "1, $z_" + a)
    w.comment("log1p of complex numbers, where 1 + z is small")
    w.tensor("beside", torch.tensor([complex(-1, 1e-30), complex(-1, -1e-200), complex(-0.75, 0), complex(1e-20, 1e-20), complex(3, -4)], dtype=torch.complex128))
    w.case("log1p", "$beside", "rtol=1e-13 atol=1e-33")


def powers_of_two(w):
    w.comment("ldexp: the power may be out of range where the result is not")
    w.tensor("x", torch.tensor([1e-20, 1e20, 1.0, 3.0, inf, nan, 0.0, -0.0, 1.5]))
    w.tensor("e", torch.tensor([140, -150, -149, -150, -9999, 99999, 99999, 9999, 128]))
    w.case("ldexp.Tensor", "$x, $e")
    w.tensor("x64", torch.tensor([1e-300, 1e300, 1.0, 3.0, inf, nan, 0.0, -0.0, 1.5], dtype=torch.float64))
    w.tensor("e64", torch.tensor([1500, -2000, -1074, -1075, -9999, 99999, 99999, 9999, 1024]))
    w.case("ldexp.Tensor", "$x64, $e64")
    for args in ("f16[], i64[2]=3", "f16[3], i32[3]=-20", "f32[2], bool[2]", "bf16[2], u8[2]=9", "f32[3,2].t, i64[3]=2", "i64[2], i64[2]=2"):
        w.case("ldexp.Tensor", args)
    w.comment("lerp: a weight does not make floating-point numbers of integers")
    for a in ("i64", "u8", "bool"):
        w.case("lerp.Scalar", "%s[2], %s[2], 0.5" % (a, a))


PARTS = (copies, fills, combinations, elements, zeros, complex_powers, powers_of_two)

if __name__ == "__main__":
    with Writer("places") as writer:
        for part in PARTS:
            part(writer)
