#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Activations, bounds, masks and losses by element, with their backward operators: values at special points,
promotion, given outputs, refusals."""

import torch

from literal import SHORT, Writer

inf, nan = float("inf"), float("nan")
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -3.0, 7.0, -7.0, 1e-3, -1e-4, 100.0, -100.0, 0.25, 6.0, 20.5, -0.7, 1e30,
        inf, -inf, nan]
GRAD = [1.0, 2.0, -0.5, 3.0, 0.25, 1.0, -1.0, 2.0, 1.5, -2.0, 1.0, 4.0, 1.0, -1.0, 0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
WHOLE = [0, 1, -1, 7, -7, 5, 100, -100, 127, -128, 3, 2]
FLOATS = ("f16", "bf16", "f32", "f64")
NEAR = {"f32": "rtol=1e-6 atol=2e-7", "f64": "rtol=1e-13 atol=1e-15", "f16": "rtol=2e-3 atol=1e-3",
        "bf16": "rtol=1e-2 atol=8e-3"}

GELU = "rtol=1e-6 atol=1e-6"  # of float32: 1 + erf cancels, here and in the reference


def inputs(w):
    for dtype, short in SHORT.items():
        if dtype.is_complex:
            w.tensor("x_" + short, torch.tensor([0.5 + 1j, -1.0, 2j], dtype=dtype))
            w.tensor("g_" + short, torch.tensor([1.0, 1j, 2 - 1j], dtype=dtype))
            continue
        if dtype == torch.bool:
            x = torch.tensor([v > 0 for v in WHOLE])
        elif dtype == torch.uint8:
            x = torch.tensor([v % 256 for v in WHOLE], dtype=dtype)
        else:
            x = torch.tensor(REAL if dtype.is_floating_point else WHOLE, dtype=dtype)
        w.tensor("x_" + short, x)
        w.tensor("g_" + short, torch.tensor(GRAD[:x.numel()]).to(dtype))


def activations(w):
    w.comment("activations")
    calls = [("gelu", ""), ("gelu", ", approximate='tanh'"), ("silu", ""), ("mish", ""), ("hardswish", ""),
             ("hardsigmoid", ""), ("leaky_relu", ""), ("leaky_relu", ", 0.2"), ("leaky_relu", ", -1"), ("elu", ""),
             ("elu", ", 2, 3, 0.5"), ("softplus", ""), ("softplus", ", 2, 1"), ("hardtanh", ""), ("hardtanh", ", 0, 6"),
             ("hardtanh", ", 1.5, 2.7"), ("hardtanh", ", 2, 1"), ("relu6", ""), ("selu", ""), ("celu", ""),
             ("celu", ", 2"), ("threshold", ", 0, 20"), ("threshold", ", 0.5, 2.5"), ("threshold", ", 1, -1"),
             ("log_sigmoid_forward", ""), ("log_sigmoid", "")]
    for op, rest in calls:
        for short in SHORT.values():
            if short[0] == "c" and op == "silu":
                continue
            if op == "gelu" and short in ("f16", "bf16", "f32"):  # the reference has NaN at +inf where AVX-512 is
                continue
            w.case(op, "$x_%s%s" % (short, rest), NEAR.get(short, ""))
    w.tensor("finite", torch.tensor([v for v in REAL if abs(v) != inf]))
    for rest in ("", ", approximate='tanh'"):
        w.case("gelu", "$finite" + rest, GELU)
        for short in ("f16", "bf16"):
            w.case("gelu", "%s[40]%s" % (short, rest), NEAR[short])
    calls = [("gelu_backward", ""), ("gelu_backward", ", approximate='tanh'"), ("silu_backward", ""),
             ("mish_backward", ""), ("hardswish_backward", ""), ("hardsigmoid_backward", ""),
             ("leaky_relu_backward", ", 0.1, False"), ("leaky_relu_backward", ", 0.1, True"),
             ("softplus_backward", ", 1, 20"), ("softplus_backward", ", 2, 1"), ("hardtanh_backward", ", -3, 3"),
             ("threshold_backward", ", 0"), ("threshold_backward", ", 1"), ("sigmoid_backward", ""),
             ("tanh_backward", "")]
    for op, rest in calls:
        for short in SHORT.values():
            if short[0] == "c" and op == "silu_backward":
                continue
            special = op in ("gelu_backward", "mish_backward", "silu_backward") and short != "f64"
            special |= (op, rest, short) == ("gelu_backward", "", "f64")  # the reference has NaN at infinities
            options = NEAR.get(short, "rtol=1e-6" if short[0] == "c" else "")
            if op == "hardsigmoid_backward" and short == "f64":
                options = "rtol=1e-7"  # the reference's sixth is a float32
            if special and short in FLOATS:
                name = "finite_" + short
                if name not in w.views:
                    w.tensor(name, torch.tensor([v for v in REAL if abs(v) < 1e3]).to(getattr(torch, {
                        "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}[short])))
                w.case(op, "%s[18], $%s%s" % (short, name, rest), options)
            else:
                w.case(op, "$g_%s, $x_%s%s" % (short, short, rest), options)
    for short in FLOATS + ("i64",):
        for rest in ("1, 1, 1, False", "2, 3, 0.5, False", "1, 1, 1, True", "2, 3, 0.5, True"):
            w.case("elu_backward", "$g_%s, %s, $x_%s" % (short, rest, short), NEAR.get(short, ""))
        w.case("log_sigmoid_backward", "%s[3], %s[3], %s[3]=0.25" % (short, short, short), NEAR.get(short, ""))
    for a, b in (("f32[2,3]", "f64[3]"), ("f16[3]", "f32[3]"), ("f32[2,3].t", "f32[2,3]"), ("f32[2]", "f32[3]")):
        for op, rest in calls:
            w.case(op, "%s, %s%s" % (a, b, rest), "rtol=1e-6 atol=2e-7")
        w.case("elu_backward", "%s, 1, 1, 1, False, %s" % (a, b), "rtol=1e-6 atol=2e-7")
    for x in ("f32[3,2].t", "f32[4].strided", "f32[2,3,4,5].cl", "f32[]", "f32[0,3]"):
        for op in ("gelu", "silu", "hardtanh", "log_sigmoid_forward", "elu"):
            w.case(op, x, GELU if op == "gelu" else "rtol=1e-6 atol=2e-7")
    for op in ("gelu_", "silu_", "mish_", "hardswish_", "hardsigmoid_", "leaky_relu_", "elu_", "hardtanh_", "relu6_",
               "selu_", "celu_"):
        for x in ("f32[2,3]", "f16[4].strided", "f64[3,2].t"):
            w.case(op, x, "same " + (GELU if op == "gelu_" and x[:3] == "f32" else NEAR[x[:3]]))


def gates(w):
    w.comment("glu and prelu")
    for short in FLOATS + ("i64", "c64"):
        for rest in ("[2,4]", "[4,3], 0", "[2,4,3], 1", "[2,4].t", "[4], -1", "[0,2]"):
            w.case("glu", short + rest, NEAR.get(short, ""))
    for x in ("f32[3]", "f32[]", "f32[4], 1", "f32[3,2], 0"):
        w.case("glu", x)
    w.case("glu.out", "f32[2,4], out=f32[0]", NEAR["f32"])
    for g, x, dim in (("f32[2,2]", "f32[2,4]", 1), ("f32[2,3]", "f32[4,3]", 0), ("f32[2,2]", "f32[2,4].t", -1),
                      ("f64[2]", "f64[4]", 0), ("f16[2]", "f16[4]", 0), ("f64[2]", "f32[4]", 0), ("f32[]", "f32[]", 0),
                      ("f32[1]", "f32[3]", 0)):
        w.case("glu_backward", "%s, %s, %d" % (g, x, dim), NEAR[x[:3]])
    for x, weight in (("f32[2,3]", "f32[3]"), ("f32[2,3,4]", "f32[3]"), ("f32[2,3]", "f32[1]"), ("f32[]", "f32[1]"),
                      ("f32[3]", "f32[]"), ("f16[2,3].t", "f16[3]"), ("f32[2,3]", "f32[2]"), ("f32[3]", "f64[1]"),
                      ("f32[3]", "f32[1,1]"), ("f32[]", "f32[2]"), ("i64[2]", "i64[1]"), ("f32[4]", "f32[4]")):
        w.case("prelu", "%s, %s" % (x, weight))
    for g, x, weight in (("f32[2,3]", "f32[2,3]", "f32[1,3]"), ("f32[2,3].t", "f32[2,3].t", "f32[1,3]"),
                         ("f16[3]", "f16[3]", "f16[1]"), ("f32[2]", "f32[2]", "f64[1]")):
        w.case("_prelu_kernel_backward", "%s, %s, %s" % (g, x, weight))


def bounds(w):
    w.comment("bounds")
    for short in SHORT.values():
        for rest in ("-1, 1", "0.5", "None, 2", "2, 1", "None, -0.5", "nan, 1", "1, nan", "True", "-inf, 3"):
            if short == "u8" and "-" in rest:
                continue
            w.case("clamp", "$x_%s, %s" % (short, rest))
        for number in ("0", "1", "0.5", "nan"):
            w.case("clamp_min", "$x_%s, %s" % (short, number))
            w.case("clamp_max", "$x_%s, %s" % (short, number))
        for low, high in (("%s[3]" % short, "f32[3]"), ("%s[2,1]" % short, "%s[3]" % short), ("None", "i64[]"),
                          ("f16[3]", "None"), ("None", "None")):
            w.case("clamp.Tensor", "%s[3], %s, %s" % (short, low, high))
        w.case("clamp_min.Tensor", "%s[3], f32[2,1]" % short)
        w.case("clamp_max.Tensor", "%s[3], i16[]" % short)
    w.case("clamp", "f32[2]")
    w.case("clamp", "u8[2], -1, 300")
    w.case("clamp.Tensor", "f32[2,3].t, f32[2,3], f32[]")
    w.case("clamp.Tensor", "f32[3]=nan, f32[3], f32[3]")
    w.case("clamp.Tensor", "f32[3], f32[3]=nan, f32[3]")
    w.case("clamp.Tensor", "f32[3], f32[3]=2, f32[3]=nan")
    w.case("clamp_", "f32[2,3], -1, 0.5", "same")
    w.case("clamp_.Tensor", "f32[2,3], f32[3]", "same")
    w.case("clamp_.Tensor", "f32[3], f32[2,3]", "same")
    w.case("clamp_min_", "f32[2,3].strided, 0.5", "same")
    w.case("clamp.out", "f32[2,3], -1, 0.5, out=f32[0]")


def masks(w):
    w.comment("masks")
    w.tensor("m", torch.tensor([True, False, True]))
    for short in SHORT.values():
        for value in ("2", "2.7", "-1", "True", "300", "1j", "inf", "nan", "-inf"):
            if short == "bool" or not (short[0] in "ui" and value in ("-1",)):
                w.case("masked_fill.Scalar", "%s[3], $m, %s" % (short, value))
        for value in ("f32[]=2", "i64[]=3", "f64[]=1.5", "bool[]", "c64[]"):
            if short[0] == "c" or value != "c64[]":
                w.case("masked_fill.Tensor", "%s[3], $m, %s" % (short, value))
    for x, mask in (("f32[2,3]", "bool[3]"), ("f32[3]", "bool[2,3]"), ("f32[2,3].t", "bool[2,3]"), ("f32[]", "bool[]"),
                    ("f32[0]", "bool[1]"), ("f32[2,3].strided", "bool[2,1]"), ("f32[3]", "bool[2]"), ("f32[3]", "u8[3]"),
                    ("f32[3]", "f32[3]"), ("f32[2,3,4,5].cl", "bool[3,1,1]")):
        w.case("masked_fill.Scalar", "%s, %s, 2" % (x, mask))
        w.case("masked_fill.Tensor", "%s, %s, f32[]" % (x, mask))
        w.case("masked_fill_.Scalar", "%s, %s, 2" % (x, mask), "same")
        w.case("masked_fill_.Tensor", "%s, %s, f32[]" % (x, mask), "same")
    w.case("masked_fill.Tensor", "f32[3], $m, f32[1]")
    for number in ("2", "2.5", "True", "1j", "0.1"):
        for short in SHORT.values():
            w.case("where.ScalarSelf", "$m, %s, %s[3]" % (number, short))
            w.case("where.ScalarOther", "$m, %s[2,1], %s" % (short, number))
        w.case("where.Scalar", "$m, %s, 3" % number)
        w.case("where.Scalar", "bool[2,3].t, False, %s" % number)
    w.case("where.ScalarSelf", "f32[3], 1, f32[3]")


def losses(w):
    w.comment("losses")
    for short in FLOATS + ("i64", "c64", "bool"):
        near = NEAR.get(short, "rtol=1e-6")
        for reduction in (0, 1, 2):
            for op, rest in (("mse_loss", ""), ("smooth_l1_loss", ""), ("smooth_l1_loss", ", 0.5"),
                             ("smooth_l1_loss", ", 0.0"), ("huber_loss", ""), ("huber_loss", ", 0.5"), ("kl_div", ""),
                             ("l1_loss", "")):
                if op == "l1_loss" and short == "c64":
                    continue
                w.case(op, "%s[5], %s[5]=0.75, %d%s" % (short, short, reduction, rest), near)
            for op, rest in (("mse_loss", ""), ("smooth_l1_loss", ", 1.0"), ("smooth_l1_loss", ", 0.5"),
                             ("huber_loss", ", 1.0"), ("huber_loss", ", 0.5")):
                if short in FLOATS:
                    grad = "%s[5]" % short if reduction == 0 else "%s[]=1.5" % short
                    w.case(op + "_backward", "%s, %s[5], %s[5]=0.75, %d%s" % (grad, short, short, reduction, rest), near)
            for weight in ("None", "%s[5]" % short, "%s[]" % short):
                w.case("binary_cross_entropy", "%s[5]=0.3, %s[5]=0.75, %s, %d" % (short, short, weight, reduction), near)
                w.case("binary_cross_entropy_with_logits", "%s[5], %s[5]=0.75, %s, None, %d"
                       % (short, short, weight, reduction), near)
                if short in FLOATS:
                    w.case("binary_cross_entropy_backward", "%s[]=2, %s[5]=0.3, %s[5]=0.75, %s, %d"
                           % (short, short, short, weight, reduction), near)
                    w.case("binary_cross_entropy_with_logits", "%s[2,3], %s[2,3]=0.75, None, %s[3], %d"
                           % (short, short, short, reduction), near)
    w.tensor("p", torch.tensor([0.0, 1.0, 1e-30, 0.5, 0.999, 1e-7, 1.0, 0.0]))
    w.tensor("t", torch.tensor([1.0, 0.0, 1.0, 0.5, 0.25, 0.0, 1.0, 0.0]))
    w.case("binary_cross_entropy", "$p, $t, None, 0", "rtol=1e-6")
    w.case("binary_cross_entropy_backward", "f32[8]=1, $p, $t, None, 0", "rtol=1e-6")
    w.tensor("logits", torch.tensor([100.0, -100.0, 0.0, 1e-5, -30.0, 30.0]))
    w.case("binary_cross_entropy_with_logits", "$logits, f32[6]=0.25, None, None, 0", "rtol=1e-6 atol=1e-12")
    w.tensor("inf_logits", torch.tensor([inf, -inf]))
    w.case("binary_cross_entropy_with_logits", "$inf_logits, f32[2]=0.25, None, None, 0")
    w.case("kl_div", "f32[3], f32[3]=0, 0")
    w.case("kl_div", "f32[3], f32[3]=-1, 0")
    w.case("kl_div", "f32[3], f32[3], 0, log_target=True", "rtol=1e-6")
    w.case("kl_div", "f32[3], f64[3]=0.5, 0", "rtol=1e-6")
    for op in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"):
        for a, b in (("f32[2,3]", "f32[3]"), ("f32[2,3].t", "f32[2,3]"), ("f64[3]", "f32[3]"), ("f32[0]", "f32[0]"),
                     ("f32[2]", "f32[3]")):
            w.case(op, "%s, %s, 0" % (a, b), "rtol=1e-6")
            w.case(op, "%s, %s" % (a, b), "rtol=1e-6 atol=1e-7")
    w.case("binary_cross_entropy", "f32[3]=2, f32[3]", "cpu")
    w.case("binary_cross_entropy", "f32[3]=1, f32[3]=2", "cpu")
    w.case("binary_cross_entropy", "f32[3]=nan, f32[3]=0", "cpu")
    w.case("binary_cross_entropy", "f32[3]=1, f32[2]=0")
    w.case("binary_cross_entropy", "f32[3]=1, f64[3]=0")
    w.case("smooth_l1_loss", "f32[3], f32[3], 1, -1.0")
    w.case("huber_loss", "f32[3], f32[3], 1, 0.0")
    w.case("huber_loss", "f32[2,3], f64[3], 0")
    w.case("huber_loss", "i64[3], f32[3], 0")
    w.case("mse_loss_backward", "f32[3], f32[3], f64[3], 1")
    w.case("gelu", "f32[3], approximate='x'")
    w.case("elu_backward", "f32[2], -1, 1, 1, True, f32[2]")
    w.case("celu", "f32[3], 0")
    w.case("threshold", "u8[3], 0, 300")
    w.case("leaky_relu", "f32[3], 1j")
    w.case("hardtanh", "u8[3]")


with Writer("activation") as writer:
    for part in (inputs, activations, gates, bounds, masks, losses):
        part(writer)
