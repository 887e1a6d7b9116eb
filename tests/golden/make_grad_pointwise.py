#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of elementwise operators, bounds, masks, copies and random numbers, with their special points."""

import torch

from literal import Writer

inf, nan = float("inf"), float("nan")
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -3.0, 0.25, -0.75, 1e-3, 100.0, 2.0, inf, -inf, nan]
NEAR = {"f32": "rtol=2e-6 atol=1e-6", "f64": "rtol=1e-12 atol=1e-14", "f16": "rtol=4e-3 atol=2e-3",
        "bf16": "rtol=3e-2 atol=2e-2"}
UNARY = ("neg abs relu exp log sigmoid tanh sqrt rsqrt reciprocal floor ceil trunc round frac sign sgn nan_to_num log1p expm1 "
         "log2 log10 exp2 sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc square").split()
BINARY = ("add.Tensor sub.Tensor mul.Tensor div.Tensor rsub.Tensor maximum minimum fmax fmin remainder.Tensor fmod.Tensor "
          "atan2 hypot logaddexp pow.Tensor_Tensor clamp_min.Tensor clamp_max.Tensor").split()


def unary(w):
    w.comment("one argument")
    for op in UNARY:
        w.grad(op, "$x_f64.grad", NEAR["f64"])
        w.grad(op, "f32[2,3].t.grad", NEAR["f32"])
    for op in ("exp", "abs", "sqrt", "tanh"):
        w.grad(op, "f16[5].grad", NEAR["f16"])
        w.grad(op, "bf16[2,3].grad", NEAR["bf16"])
        w.grad(op, "f32[].grad", NEAR["f32"])
        w.grad(op, "f32[0,3].grad")
    for op in ("neg_", "abs_", "relu_", "exp_", "log_", "sigmoid_", "sqrt_", "sin_", "floor_", "reciprocal_"):
        w.grad(op, "f64[6].grad", NEAR["f64"])
    w.grad("round.decimals", "f32[3].grad, decimals=1")
    for exponent in ("0", "1", "2", "3", "0.5", "-1", "-2", "2.5", "-0.5", "0.0"):
        w.grad("pow.Tensor_Scalar", "$x_f64.grad, " + exponent, NEAR["f64"])
    for base in ("0", "1", "2.5", "-2.0", "0.0"):
        w.grad("pow.Scalar", "%s, $x_f64.grad" % base, NEAR["f64"])


def binary(w):
    w.comment("two arguments")
    for op in BINARY:
        w.grad(op, "$p_f64.grad, $q_f64.grad", NEAR["f64"])
        w.grad(op, "f32[2,3].grad, f32[3].grad", NEAR["f32"])
        w.grad(op, "f32[2,1].grad, f64[].grad", NEAR["f32"])
        w.grad(op, "f32[3,2].t.grad, i64[3,2]", NEAR["f32"])
        w.grad(op, "f32[3], f32[2,3].grad", NEAR["f32"])
    for op in ("add.Tensor", "sub.Tensor", "rsub.Tensor"):
        w.grad(op, "f32[2,3].grad, f32[2,3].grad, alpha=2.5", NEAR["f32"])
    for op, rest in (("add.Scalar", "2, 3"), ("sub.Scalar", "2, 3"), ("mul.Scalar", "2.5"), ("div.Scalar", "2.5"),
                     ("rsub.Scalar", "2.5, 2"), ("remainder.Scalar", "0.75"), ("fmod.Scalar", "0.75")):
        w.grad(op, "f32[2,3].grad, " + rest, NEAR["f32"])
    for mode in ("None", "'floor'", "'trunc'"):
        w.grad("div.Tensor_mode", "f32[2,3].grad, f32[3].grad, rounding_mode=" + mode, NEAR["f32"])
        w.grad("div.Scalar_mode", "f32[2,3].grad, 0.75, rounding_mode=" + mode, NEAR["f32"])
        w.grad("div_.Tensor_mode", "f32[2,3].grad, f32[3].grad, rounding_mode=" + mode, NEAR["f32"])
    for op in ("add_.Tensor", "sub_.Tensor", "mul_.Tensor", "div_.Tensor", "pow_.Tensor", "atan2_", "remainder_.Tensor"):
        w.grad(op, "f64[2,3].grad, f64[3].grad", NEAR["f64"])
    for op in ("mul_.Scalar", "div_.Scalar", "pow_.Scalar"):
        w.grad(op, "f64[2,3].grad, 3", NEAR["f64"])
    w.grad("mul.Tensor", "$p_f64.grad, $p_f64.grad", NEAR["f64"])
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        w.grad(op + ".Tensor", "f32[3].grad, f32[3].grad")
        w.grad(op + ".Scalar", "f32[3].grad, 1")
        w.grad(op + "_.Tensor", "f32[2,3].grad, f32[3].grad")
        w.grad(op + "_.Scalar", "f32[3].grad, 1")
    w.grad("floor_divide", "i64[3], i64[3]=2")


def several(w):
    w.comment("three arguments")
    for rest in ("", ", value=2.5"):
        w.grad("addcmul", "f32[2,3].grad, f32[3].grad, f32[2,1].grad" + rest, NEAR["f32"])
        w.grad("addcdiv", "f32[2,3].grad, f32[3].grad, f32[2,1].grad" + rest, NEAR["f32"])
        w.grad("addcmul_", "f32[2,3].grad, f32[3].grad, f32[2,1].grad" + rest, NEAR["f32"])
        w.grad("addcdiv_", "f32[2,3].grad, f32[3].grad, f32[2,1].grad" + rest, NEAR["f32"])
    for weight in ("0.25", "0.75", "1"):
        w.grad("lerp.Scalar", "f32[2,3].grad, f32[3].grad, " + weight, NEAR["f32"])
    w.grad("lerp.Tensor", "f32[2,3].grad, f32[3].grad, f32[2,1].grad", NEAR["f32"])
    w.grad("lerp_.Tensor", "f32[2,3].grad, f32[3].grad, f32[2,1].grad", NEAR["f32"])
    w.grad("where.self", "bool[3], f32[2,3].grad, f32[2,1].grad")
    w.grad("where.self", "bool[2,3], f32[].grad, f64[3].grad")
    w.grad("where.ScalarSelf", "bool[3], 1.5, f32[2,3].grad")
    w.grad("where.ScalarOther", "bool[3], f32[2,3].grad, 1")
    for mask in ("bool[3]", "bool[2,1]", "bool[]"):
        w.grad("masked_fill.Scalar", "f32[2,3].grad, %s, 7" % mask)
        w.grad("masked_fill_.Scalar", "f32[2,3].grad, %s, 7" % mask)
        w.grad("masked_fill.Tensor", "f32[2,3].grad, %s, f32[].grad" % mask)
        w.grad("masked_fill_.Tensor", "f32[2,3].grad, %s, f32[].grad" % mask)


def bounds(w):
    w.comment("bounds")
    for rest in ("-1, 1", "0.5", "None, 2", "2, 1", "nan, 1", "1, nan", "-inf, 3", "None, -0.0"):
        w.grad("clamp", "$x_f64.grad, " + rest)
    w.grad("clamp_", "$x_f64.grad, -1, 1")
    for low, high in (("$low.grad", "$high.grad"), ("$low.grad", "None"), ("None", "$high.grad"), ("$high.grad", "$low.grad"),
                      ("f64[].grad", "f64[16].grad")):
        w.grad("clamp.Tensor", "$x_f64.grad, %s, %s" % (low, high))
    w.grad("clamp_.Tensor", "$x_f64.grad, $low.grad, $high.grad")
    w.grad("clamp_min", "$x_f64.grad, 0.5")
    w.grad("clamp_max", "$x_f64.grad, 0.5")
    w.grad("clamp_min_", "$x_f64.grad, 0.5")
    w.grad("clamp_min.Tensor", "$x_f64.grad, $low.grad")
    w.grad("clamp_max.Tensor", "$x_f64.grad, $high.grad")


def complex_numbers(w):
    w.comment("complex numbers; a real gradient is a view there")
    near = NEAR["f64"] + " strides=no"
    for op in ("neg", "exp", "log", "sqrt", "reciprocal", "sgn", "square", "sin", "tanh", "sigmoid"):
        w.grad(op, "c128[3].grad", near)
    for op in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor"):
        w.grad(op, "c128[3].grad, c128[3].grad", near)
        w.grad(op, "f64[2,3].grad, c128[3].grad", near)
        w.grad(op, "c128[3].grad, f64[].grad", near)
    w.grad("mul.Scalar", "c128[3].grad, 1-2j", near)
    w.grad("mul.Scalar", "f64[3].grad, 1-2j", near)
    w.grad("add.Tensor", "f64[3].grad, c128[3].grad, alpha=1-2j", near)
    w.grad("addcmul", "f64[3].grad, c128[3].grad, c128[3].grad, value=0.5", near)
    w.grad("lerp.Tensor", "c128[3].grad, c128[3].grad, c128[3].grad", near)
    w.grad("copy_", "c128[3].grad, f64[3].grad", near)
    w.grad("copy_", "f64[3].grad, c128[3].grad", near)
    w.grad("_to_copy", "f64[3].grad, dtype=complex128", near)
    w.grad("_to_copy", "c128[3].grad, dtype=float64")
    w.grad("where.self", "bool[3], c128[3].grad, c128[3].grad")
    w.grad("masked_fill.Scalar", "c128[3].grad, bool[3], 1j")


def copies(w):
    w.comment("copies, factories, random numbers")
    w.grad("clone", "f32[2,3].t.grad")
    w.grad("copy_", "f32[2,3].grad, f32[3].grad")
    w.grad("copy_", "f32[2,3], f64[2,1].grad")
    w.grad("copy_", "f64[2,3].grad, f16[2,3].grad")
    w.grad("copy_", "f64[2,3].grad, i64[2,3]")
    w.grad("fill_.Scalar", "f32[2,3].grad, 3")
    w.grad("fill_.Tensor", "f32[2,3].grad, f32[].grad")
    w.grad("zero_", "f32[2,3].grad")
    w.grad("_to_copy", "f32[2,3].grad, dtype=float64")
    w.grad("_to_copy", "f64[2,3].grad, dtype=float16")
    w.grad("to.dtype", "f32[2,3].grad, float64")
    w.grad("contiguous", "f32[2,3].t.grad")
    for op in ("zeros_like", "ones_like", "rand_like", "randn_like"):
        w.grad(op, "f32[3].grad", "values=no")
    w.grad("full_like", "f32[3].grad, 2")
    for op in ("uniform_", "normal_", "bernoulli_.float", "exponential_", "random_"):
        w.grad(op, "f32[3].grad")
    w.grad("bernoulli", "f32[3]=0.5")
    w.grad("logical_not", "f32[3].grad")
    w.grad("isnan", "f32[3].grad")
    w.grad("logical_and", "f32[3].grad, f32[3].grad")
    w.grad("native_dropout", "f32[4].grad, 0.0, True")
    w.grad("native_dropout", "f32[4].grad, 1.0, True")
    w.grad("native_dropout", "f32[4].grad, 0.5, False")
    w.grad("native_dropout_backward", "f32[4].grad, bool[4], 2.0")
    w.grad("dropout", "f32[4].grad, 0.5, False")


if __name__ == "__main__":
    with Writer("grad_pointwise") as writer:
        writer.tensor("x_f64", torch.tensor(REAL, dtype=torch.float64))
        left = [0.0, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 0.0, 0.0, 2.0, nan, 1.0, inf, 2.5, nan]
        right = [0.0, 1.0, 2.0, 1.0, -1.0, 0.5, 2.0, 2.0, -1.0, 0.0, 0.0, 1.0, nan, 1.0, 2.5, nan]
        writer.tensor("p_f64", torch.tensor(left, dtype=torch.float64))
        writer.tensor("q_f64", torch.tensor(right, dtype=torch.float64))
        writer.tensor("low", torch.tensor([0.0, 0.0, 1.0, -2.0, 1.0, -2.5, nan, 0.0] * 2, dtype=torch.float64))
        writer.tensor("high", torch.tensor([0.0, 1.0, 1.0, -1.0, 0.5, 2.0, 1.0, nan] * 2, dtype=torch.float64))
        unary(writer)
        binary(writer)
        several(writer)
        bounds(writer)
        copies(writer)
        complex_numbers(writer)
