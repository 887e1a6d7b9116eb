#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions beyond the common ones, rounding, remainders, powers, bits and truth: values at special
points, promotion, given outputs, refusals."""

import torch

from literal import SHORT, Writer, vector

inf, nan = float("inf"), float("nan")
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.0, -7.0, 1e-3, -1e-5, 100.0, 1e-30, 0.7, -0.3, 2.5, 1.5, 20.0,
        -90.0, 5e5, inf, -inf, nan]
OTHER = [1.0, 0.0, -0.0, 2.0, -0.5, 0.75, -3.0, 2.0, 3.0, 1e3, 2.0, -inf, inf, 1.0, nan, -2.0, 0.0, -1.0, 0.5,
         -0.5, 0.0, 3.0, 0.0]
WHOLE = [0, 1, -1, 7, -7, 5, 100, -100, 127, -128, 3, 2, -3, -1]
WHOLE_OTHER = [3, -1, 7, 2, 2, -3, -7, 7, -1, -1, 1, 127, 3, -3]
COMPLEX = [0.5, -1.0, 2.0, -3.5, 0.25, 1.0, 0.0, 4.0]
COMPLEX_OTHER = [1.5, 1.0, -2.0, 0.5, -0.75, 2.0, 3.0, 1.0]
FLOATS = ("f16", "bf16", "f32", "f64")


def inputs(w):
    for dtype, short in SHORT.items():
        floating = dtype.is_floating_point
        w.tensor("a_" + short, vector(dtype, COMPLEX if dtype.is_complex else REAL if floating else WHOLE))
        w.tensor("b_" + short, vector(dtype, COMPLEX_OTHER if dtype.is_complex else OTHER if floating
                                      else WHOLE_OTHER))
        w.tensor("n_" + short, vector(dtype, COMPLEX if dtype.is_complex else REAL[::-1] if floating
                                      else WHOLE[::-1]))


def near(short, wide="ulp=2"):
    if short in ("c64", "c128"):
        return "rtol=2e-6 atol=2e-6" if short == "c64" else "rtol=1e-13 atol=1e-13"
    return wide if short in ("f32", "f64") else "ulp=1"


def unary(w):
    w.comment("functions of one number")
    for op in ("log1p", "expm1", "log2", "log10", "exp2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
               "cosh", "asinh", "acosh", "atanh", "erf", "erfc"):
        for short in SHORT.values():
            # The reference's erf of halves is off by a percent near 0.
            rough = op == "erf" and short in ("f16", "bf16")
            w.case(op, "$a_" + short, "rtol=3e-2 atol=1e-6" if rough else near(short, "ulp=3"))
    for op in ("floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "isnan", "isinf", "bitwise_not", "isfinite",
               "square"):
        for short in SHORT.values():
            w.case(op, "$a_" + short, near(short) if short[0] == "c" else "")
    for decimals in (0, 1, 3, -1, -2):
        for short in FLOATS:
            w.case("round.decimals", "$a_%s, decimals=%d" % (short, decimals), "ulp=1")
    for short in SHORT.values():
        w.case("nan_to_num", "$a_" + short)
    for arguments in ("1.5", "1.5, 2.5", "None, 2.5, -3.5"):
        w.case("nan_to_num", "$a_f32, " + arguments)
        w.case("nan_to_num", "$a_f16, " + arguments)
    w.tensor("inf_c64", torch.tensor([complex(inf, nan), complex(-inf, 1), complex(nan, -inf)]))
    for op in ("nan_to_num", "isnan", "isinf", "isfinite"):
        w.case(op, "$inf_c64")
    w.tensor("far", torch.tensor([1e6, -3e7, 1e20, 6e8, 12345.678, 3.1415927, 1.5707964, -1e38, 524288.0, 524289.0]))
    for op in ("sin", "cos", "tan"):
        w.case(op, "$far", "ulp=3")
    w.tensor("halves", torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 4.5, 8388609.0, -0.25]))
    w.case("round", "$halves")


def binary(w):
    w.comment("functions of two numbers")
    for op in ("atan2", "hypot", "logaddexp", "remainder.Tensor", "fmod.Tensor", "floor_divide", "fmax", "fmin",
               "logical_and", "logical_or", "logical_xor", "bitwise_and.Tensor", "bitwise_or.Tensor",
               "bitwise_xor.Tensor", "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "pow.Tensor_Tensor"):
        loose = op in ("atan2", "hypot", "logaddexp", "pow.Tensor_Tensor")
        for short in SHORT.values():
            if op == "logaddexp" and short[0] == "c":
                continue
            w.case(op, "$a_%s, $b_%s" % (short, short), near(short, "ulp=3") if loose else
                   "ulp=0" if op in ("fmax", "fmin") else "")
    for op in ("remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor"):
        for short in SHORT.values():
            for number in ("3", "-2", "1.5", "True"):
                w.case(op + ".Scalar", "$a_%s, %s" % (short, number))
    for op in ("bitwise_left_shift", "bitwise_right_shift"):
        for short in SHORT.values():
            for number in ("1", "7", "8", "64", "-1"):
                w.case(op + ".Tensor_Scalar", "$a_%s, %s" % (short, number))
        w.case(op + ".Scalar_Tensor", "-100, $b_i32")
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "remainder"):
        w.case(op + ".Scalar_Tensor", "77, $b_i32")
        w.case(op + ".Scalar_Tensor", "77, $b_i8")
    for short in ("i32", "i8", "f32", "f16"):
        for number in ("3", "-2", "0.7"):
            w.case("floor_divide.Scalar", "$a_%s, %s" % (short, number))
            w.case("rsub.Scalar", "$a_%s, %s" % (short, number))
            w.case("rsub.Scalar", "$a_%s, %s, 2" % (short, number))
        w.case("rsub.Tensor", "$a_%s, $b_%s" % (short, short))
        w.case("rsub.Tensor", "$a_%s, $b_%s, alpha=3" % (short, short), "ulp=1" if "f" in short else "")
    w.tensor("lowest", torch.tensor([-2**63, 5, -2**63], dtype=torch.int64))
    w.tensor("minus", torch.tensor([-1, -1, 2], dtype=torch.int64))
    for op in ("remainder.Tensor", "fmod.Tensor", "floor_divide"):
        w.case(op, "$lowest, $minus")
        for short in ("u8", "i8", "i16", "i32", "i64"):
            w.case(op, "$a_%s, %s[14]=0" % (short, short), "cpu")
        w.case(op, "$a_f32, f32[23]=0")
    w.case("remainder.Scalar", "f32[3]=-5, inf")
    w.case("floor_divide.Scalar", "f32[3]=-5, inf")
    w.case("floor_divide.Scalar", "f32[3]=1, 0.1")
    w.case("isclose", "$a_f32, $n_f32")
    w.case("isclose", "$a_f32, $a_f32")
    w.case("isclose", "$a_f32, $a_f32, equal_nan=True")
    w.case("isclose", "$a_i32, $b_i32, 0.5, 1")
    w.case("isclose", "$a_f64, $b_f64, 0.5, 1")
    w.case("isclose", "$a_f64, $a_f64, 0, 0")
    for a, b in (("$a_f32", "$a_f32"), ("f32[2,3]", "f32[2,3].t"), ("$a_i32", "$a_i32"), ("f32[2]", "f32[3]"),
                 ("f32[0]", "f32[0]"), ("f32[2]=1", "f64[2]=1"), ("c64[2]", "c64[2]"), ("bool[3]", "bool[3]")):
        w.case("equal", "%s, %s" % (a, b), "meta=aten::equal")


def powers(w):
    w.comment("powers")
    for exponent in ("0", "1", "2", "3", "4", "-1", "-2", "-3", "0.5", "-0.5", "1.5", "2.5", "-1.5", "True", "False",
                     "inf", "-inf", "nan", "0.0", "100"):
        for short in SHORT.values():
            if short[0] == "c" and exponent in ("inf", "-inf", "nan"):
                continue
            if short == "f16" and exponent in ("0.5", "-0.5"):  # not by the root there: docs/differences.md
                continue
            if short == "c64" and exponent in ("4", "-3", "2.5", "-1.5", "1.5", "100"):
                continue  # the reference has fewer digits
            exact = exponent in ("0", "1", "2", "3", "-1", "-2", "0.5") and short in ("f32", "f64")
            w.case("pow.Tensor_Scalar", "$a_%s, %s" % (short, exponent), "" if exact else near(short))
    for base in ("0", "1", "2", "-2", "1.0", "0.5", "-1.5", "True", "inf", "nan"):
        for short in SHORT.values():
            if short[0] == "c" and base in ("inf", "nan", "0"):
                continue
            w.case("pow.Scalar", "%s, $a_%s" % (base, short), near(short))
    grid = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, inf, -inf, nan]
    for short, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        w.tensor("rows_" + short, torch.tensor(grid, dtype=dtype).reshape(-1, 1))
        w.tensor("cols_" + short, torch.tensor(grid, dtype=dtype))
        for op in ("pow.Tensor_Tensor", "atan2", "hypot", "logaddexp", "remainder.Tensor", "fmod.Tensor"):
            w.case(op, "$rows_%s, $cols_%s" % (short, short), "ulp=2")
    whole = torch.tensor([0, 1, -1, 2, -2, 3, -3])
    w.tensor("rows_i64", whole.reshape(-1, 1))
    w.tensor("cols_i64", whole)
    w.case("pow.Tensor_Tensor", "$rows_i64, $cols_i64")


def mixed(w):
    w.comment("three tensors")
    for op in ("addcmul", "addcdiv", "lerp.Tensor"):
        for short in SHORT.values():
            loose = near(short, "ulp=2")
            w.case(op, "$n_%s, $a_%s, $b_%s" % (short, short, short), loose)
            if op != "lerp.Tensor":
                for value in ("2", "0.5"):
                    w.case(op, "%s[3], %s[3], %s[3]=3, value=%s" % (short, short, short, value), loose)
    for short in ("f16", "bf16", "f32", "f64", "c64"):
        for weight in ("0", "0.25", "0.5", "0.75", "1", "-2", "inf"):
            if short != "c64" or weight != "inf":
                w.case("lerp.Scalar", "$n_%s, $a_%s, %s" % (short, short, weight), near(short, "ulp=2"))
    w.case("lerp.Scalar", "f32[1]=1, f32[1]=inf, 0.5")
    for a, b, c in (("f32[2,3]", "f32[3]", "f32[2,1]"), ("i64[3]", "f32[3]", "f64[]=2"), ("f16[3]", "f32[3]", "i8[3]=2"),
                    ("f32[3,2].t", "f32[2,3]", "f32[]=2"), ("f32[2,3,4,5].cl", "f32[3,1,1]", "f32[5]=2")):
        w.case("addcmul", "%s, %s, %s" % (a, b, c), "ulp=1")
        w.case("addcdiv", "%s, %s, %s" % (a, b, c), "ulp=1")
        w.case("lerp.Tensor", "%s, %s, %s" % (a, b, c), "ulp=1")
    for op in ("addcmul_", "addcdiv_"):
        w.case(op, "f32[2,3], f32[3], f32[2,1]=2, value=0.5", "same ulp=1")
        w.case(op, "f32[3], f32[2,3], f32[3]=2", "same ulp=1")
        w.case(op, "i64[3], f32[3], f32[3]=2", "same")


def outputs(w):
    w.comment("given outputs")
    for out in ("f32[2,3]", "f32[3,2].t", "f32[0]", "f64[2,3]", "f16[2,3]", "i64[2,3]", "f32[2,3].strided"):
        w.case("sin.out", "f32[2,3], out=" + out, "ulp=2" if out[:3] == "f32" else "rtol=1e-6")
        w.case("pow.Tensor_Scalar_out", "f32[2,3], 2, out=" + out)
        w.case("pow.Tensor_Tensor_out", "f32[2,3], f32[3]=2, out=" + out)
        w.case("floor_divide.out", "f32[2,3], f32[3], out=" + out)
        w.case("addcmul.out", "f32[2,3], f32[3], f32[3], out=" + out)
        w.case("lerp.Scalar_out", "f32[2,3], f32[3], 0.5, out=" + out)
        w.case("logical_and.out", "f32[2,3], f32[3], out=" + out)
        w.case("square.out", "f32[2,3], out=" + out)
    for self in ("f32[2,3]", "f64[2,3].t", "i64[2,3]", "u8[2,3]", "bool[2,3]", "f16[2,3].strided"):
        for op in ("sin_", "floor_", "sign_", "log1p_", "square_", "bitwise_not_", "frac_", "nan_to_num_", "erf_"):
            w.case(op, self, "same ulp=2")
        for number in ("2", "0.5", "-1"):
            w.case("pow_.Scalar", "%s, %s" % (self, number), "same ulp=1")
            w.case("floor_divide_.Scalar", "%s, %s" % (self, number), "same")
            w.case("remainder_.Scalar", "%s, %s" % (self, number), "same")
            if "." not in number:
                w.case("bitwise_and_.Scalar", "%s, %s" % (self, number), "same")
        w.case("pow_.Tensor", self + ", i64[3]=2", "same ulp=1")
        w.case("floor_divide_.Tensor", self + ", i64[3]=2", "same")
        w.case("logical_or_", self + ", f32[3]", "same")
        w.case("atan2_", self + ", f32[3]", "same ulp=2")


def refusals(w):
    w.comment("refusals")
    for arguments in ("f32[2], f64[2], 0.5", "f32[2], f32[2], 1j", "i64[2], i64[2], 1"):
        w.case("lerp.Scalar", arguments)
    w.case("lerp.Tensor", "f32[2], f32[2], f64[2]")
    w.case("addcmul", "f32[2], f32[2], f32[2], value=1j")
    w.case("addcdiv", "i64[2], i64[2], i64[2]")
    w.case("fmax", "c64[2], f32[2]")
    w.case("isclose", "f32[2], f64[2]")
    w.case("isclose", "f32[2], f32[2], -1")
    w.case("isclose", "f32[2], f32[2], 1, -0.5")
    w.case("rsub.Scalar", "bool[2], 1")
    w.case("rsub.Scalar", "i64[2], 3, 1.5")
    w.case("rsub.Tensor", "bool[2], bool[2]")
    w.case("atan2", "f32[2,3], f32[4]")


with Writer("special") as writer:
    for part in (inputs, unary, binary, powers, mixed, outputs, refusals):
        part(writer)
