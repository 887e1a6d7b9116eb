#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numeric corners, one part a topic: infinities and NaN, ties, nothing to reduce, division by zero, casts that do not fit,
indices out of range. Each comment names the promise that the cases under it are about."""

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
CLOSE = "rtol=2e-6 atol=1e-6"
FLOATS = ("f16", "bf16", "f32", "f64")
TOL = {"f16": "rtol=2e-3 atol=1e-3", "bf16": "rtol=1e-2 atol=1e-2", "f32": CLOSE, "f64": "rtol=1e-13 atol=1e-13"}


def rows(w, name, values, dtype=torch.float32):
    w.tensor(name, torch.tensor(values, dtype=dtype))


def softmax(w):
    special = [[-inf, -inf, -inf], [inf, 0, 1], [nan, 0, 1], [-inf, 0, 1], [0, -200, 1], [1e4, 1e4, -1e4]]
    rows(w, "soft", special)
    rows(w, "soft16", special, torch.float16)
    w.comment("softmax: a row of -inf is NaN, one +inf or NaN makes the whole row NaN, large numbers do not overflow")
    for op in ("softmax.int", "log_softmax.int", "_safe_softmax"):
        for dim in (1, 0):
            w.case(op, "$soft, %d" % dim, CLOSE)
        w.case(op, "$soft16, 1", TOL["f16"])
        w.case(op, "$soft16, 1, float32", CLOSE)
    w.comment("softmax: 0-dim is one element, no elements give none, integers need a dtype")
    for op in ("softmax.int", "log_softmax.int"):
        for args in ("f32[], 0", "f32[], -1", "f32[0], 0", "f32[2,0], 1", "f32[0,2], 1", "f32[0,2], 0", "i64[2], 0", "bool[2], 0", "i64[3], 0, float32", "f32[2], 1"):
            w.case(op, args, CLOSE)
    w.comment("log_softmax is not the logarithm of softmax")
    rows(w, "far", [0.0, -200.0])
    w.case("log_softmax.int", "$far, 0")
    w.comment("logsumexp: -inf of nothing and of -inf, +inf beside anything but NaN")
    for args in ("$soft, [1]", "$soft, [0]", "f32[0], [0]", "f32[0,2], [0]", "f32[2,0], [1]"):
        w.case("logsumexp", args, CLOSE)
    rows(w, "both", [[inf, -inf], [-inf, -inf], [inf, inf], [nan, inf]])
    w.case("logsumexp", "$both, [1]")
    w.case("logaddexp", "f32[3]=inf, f32[3]=inf")
    w.case("logaddexp", "f32[3]=-inf, f32[3]=-inf")
    w.case("logaddexp", "f32[3]=-inf, f32[3]=inf")


def norms(w):
    w.comment("layer_norm: biased variance, one element gives 0, statistics of halves have the input's dtype")
    for a in FLOATS:
        w.case("native_layer_norm", "%s[3,4], [4], None, None, 1e-5" % a, TOL[a])
        w.case("native_layer_norm", "%s[3,1], [1], None, None, 1e-5" % a, TOL[a])
    for a in ("f16", "bf16"):
        w.case("native_layer_norm", "%s[3,4], [4], f32[4], f32[4], 1e-5" % a, TOL[a])
    rows(w, "shifted", [[1e4, 1e4 + 1, 1e4 + 2, 1e4 + 3]])
    w.case("native_layer_norm", "$shifted, [4], None, None, 1e-5", "rtol=1e-3 atol=1e-3")
    for args in ("f32[2,3], [4], None, None, 1e-5", "f32[2,3], [3], f32[4], None, 1e-5", "f32[2,3], [3], None, f32[4], 1e-5", "f32[0,3], [3], f32[3], f32[3], 1e-5", "f32[2,3], [], None, None, 1e-5"):
        w.case("native_layer_norm", args, CLOSE)
    w.case("native_layer_norm_backward", "f32[0,3], f32[0,3], [3], f32[0,1], f32[0,1], f32[3], f32[3], [True,True,True]")
    w.comment("batch_norm: biased variance to normalise, unbiased in the running one; one value a channel gives 0")
    for args in ("f32[1,3], None, None, None, None, True, 0.1, 1e-5", "f32[1,3,1], None, None, None, None, True, 0.1, 1e-5"):
        w.case("native_batch_norm", args, "rtol=1e-5 atol=1e-5")
    for args in ("f32[2,3], None, None, None, None, False, 0.1, 1e-5, True", "f32[2,3], None, None, f32[4], f32[4], True, 0.1, 1e-5, True", "f32[2,3], f32[4], None, None, None, True, 0.1, 1e-5, True",
                 "f32[2,3], None, None, f32[3], f32[3]=1, False, 0.1, 1e-5, True"):
        w.case("batch_norm", args, CLOSE)
    w.comment("group_norm: refusals")
    w.refuse("group_norm", "f32[4], 2", "RuntimeError: Expected at least 2 dimensions for input tensor but received 1")
    for args in ("f32[2,4,3], 3", "f32[2,4,3], 0", "f32[2,4], 2", "f32[2,4,1], 4"):
        w.case("group_norm", args, "rtol=1e-5 atol=1e-5")


def activations(w):
    w.comment("activations at infinities and NaN")
    rows(w, "edge", [nan, -inf, -1e30, -100.0, -0.0, 0.0, 100.0, 1e30])
    rows(w, "edges", [nan, -inf, inf, -0.0, 0.0, 1e30, -1e30])
    w.case("gelu", "$edge", "ulp=4 atol=1e-6 rtol=1e-6")
    w.case("gelu", "$edge, approximate='tanh'", "atol=1e-6 rtol=1e-6")
    for op in ("silu", "mish", "hardswish", "softplus", "elu", "sigmoid", "tanh", "relu", "relu6", "hardtanh", "leaky_relu", "selu", "celu", "hardsigmoid", "log_sigmoid"):
        w.case(op, "$edges", "rtol=1e-6")
    w.case("threshold", "$edges, 0, 7")
    w.comment("relu keeps NaN and -0.0")
    w.case("relu", "$edges")
    w.case("relu", "i8[4]")
    w.comment("clamp: NaN stays, a NaN bound gives NaN, min > max gives max")
    for args in ("$edges, -1, 1", "$edges, nan, 1", "$edges, 0, nan", "$edges, 5, -5", "$edges, None, 1", "$edges, -1", "$edges", "i64[4], 5, -5", "i64[4], 0.5, None"):
        w.case("clamp", args)
    for args in ("$edges, f32[7]=nan, f32[7]=1", "$edges, f32[1]=-1, f32[]=1", "$edges, f32[7]=5, f32[7]=-5", "$edges, None, f32[7]=1", "$edges"):
        w.case("clamp.Tensor", args)
    w.case("clamp_min", "$edges, nan")
    w.case("clamp_max", "$edges, nan")
    w.case("clamp", "c64[2], 0, 1")


def nothing(w):
    w.comment("reductions of nothing")
    for op in ("sum", "prod", "any", "all", "mean", "median", "max", "min", "nansum", "var", "std", "count_nonzero"):
        w.case(op, "f32[0]")
        w.case(op, "f32[0,3]")
    for op in ("amax", "amin", "argmax", "argmin", "sum.dim_IntList", "mean.dim", "logsumexp", "nansum"):
        if op in ("amax", "amin", "argmax", "argmin"):
            w.case(op, "f32[0]")
        dim = "%d" if op.startswith("arg") else "[%d]"
        for d in (0, 1):
            w.case(op, "f32[0,3], " + dim % d)
            w.case(op, "f32[3,0], " + dim % d)
    for op in ("max.dim", "min.dim", "median.dim", "mode", "sort", "cumsum", "cumprod"):
        for args in ("f32[0,3], 0", "f32[0,3], 1", "f32[3,0], 0", "f32[3,0], 1"):
            w.case(op, args)
    for args in ("f32[0,3], 1, 0", "f32[0,3], 1, 1", "f32[3,0], 1, 0"):
        w.case("kthvalue", args)
    for order in ("0", "1", "2", "inf", "-inf", "-1", "0.5"):
        w.case("linalg_vector_norm", "f32[0], " + order)
        w.case("linalg_vector_norm", "f32[0,3], %s, [0]" % order)
        w.case("linalg_vector_norm", "f32[0,3], %s, [1]" % order)
    for op in ("var.correction", "std.correction"):
        for args in ("f32[0]", "f32[1]", "f32[2,1], [1]", "f32[3]=2, None, correction=3", "f32[3], None, correction=3", "f32[3], None, correction=0", "f32[3]=inf"):
            w.case(op, args, CLOSE)


def nan_order(w):
    w.comment("NaN wins in extremes, with its first place; fmax and fmin ignore it; it sorts last")
    rows(w, "holes", [[1, nan, 3, nan], [nan, 2, 1, 0], [4, 3, 2, 1], [nan, nan, nan, nan]])
    for op in ("max.dim", "min.dim", "median.dim", "sort", "argmax", "argmin", "cumsum", "cumprod"):
        w.case(op, "$holes, 1")
        w.case(op, "$holes, 0")
    for op in ("max", "min", "median", "amax", "amin", "argmax", "argmin", "any", "all", "sum", "prod"):
        w.case(op, "$holes")
    w.view("some_holes", "holes", [3, 4], [4, 1])
    for k in (1, 2):
        w.case("kthvalue", "$some_holes, %d, 1" % k)
    w.view("one_hole", "holes", [2, 4], [4, 1], 4)
    w.case("topk", "$one_hole, 2, 1")
    w.case("kthvalue", "$one_hole, 4, 1")
    w.case("sort", "$holes, 1, True")
    w.case("sort.stable", "$holes, stable=True, dim=1, descending=True")
    rows(w, "a", [nan, 1, nan, 2, -inf])
    rows(w, "b", [1, nan, nan, 3, nan])
    for op in ("maximum", "minimum", "fmax", "fmin"):
        w.case(op, "$a, $b")
    w.case("_unique2", "$a, True, True, True", "cpu")
    w.comment("ties: the first place; the lower middle of an even count")
    rows(w, "ties", [[2.0, 1, 2, 1], [1, 1, 1, 1]])
    for op in ("max.dim", "min.dim", "argmax", "argmin"):
        w.case(op, "$ties, 1")
    w.case("median", "$ties")
    w.case("median", "f32[4]")
    w.case("median", "i64[6]")
    w.case("mode", "$ties, 1")
    w.case("sort.stable", "$ties, stable=True, dim=1")


def division(w):
    w.comment("division: by zero, by infinity, of the most negative number")
    rows(w, "n", [-5.0, 5, 1, -1, 0, inf, nan])
    w.tensor("least", torch.tensor([-2**63, 7, -7]))
    w.tensor("least8", torch.tensor([-128, 7, -7], dtype=torch.int8))
    for other in ("inf", "-inf", "0", "-0.0", "3", "0.1", "nan", "-2"):
        for op in ("floor_divide", "remainder.Tensor", "fmod.Tensor", "div.Tensor"):
            w.case(op, "$n, f32[]=" + other)
        for mode in ("trunc", "floor"):
            w.case("div.Tensor_mode", "$n, f32[]=%s, rounding_mode='%s'" % (other, mode))
        w.case("div.Tensor_mode", "$n, f32[]=%s, rounding_mode=None" % other)
    w.case("floor_divide", "f64[]=1, f64[]=0.1")
    w.case("floor_divide", "f32[]=1, f32[]=0.1")
    for a in ("u8", "i8", "i16", "i32", "i64"):
        for op in ("floor_divide", "remainder.Tensor", "fmod.Tensor"):
            w.case(op, "%s[3], %s[3]=0" % (a, a), "cpu")
        w.case("div.Tensor_mode", "%s[3], %s[3]=0, rounding_mode='trunc'" % (a, a), "cpu")
        w.case("div.Tensor_mode", "%s[3], %s[3]=0, rounding_mode='floor'" % (a, a), "cpu")
        w.case("div.Tensor", "%s[3], %s[3]=0" % (a, a))
    for t, one in (("$least", "i64[]=-1"), ("$least8", "i8[]=-1")):
        for op in ("floor_divide", "remainder.Tensor", "fmod.Tensor"):
            w.case(op, "%s, %s" % (t, one))
    # The reference does not survive these.
    w.lines.append("div.Tensor_mode | $least, i64[]=-1, rounding_mode='trunc' | i64[3](1)+0 | %d -7 7" % -2**63)
    w.lines.append("div.Tensor_mode | $least8, i8[]=-1, rounding_mode='trunc' | i8[3](1)+0 | -128 -7 7")
    w.case("remainder.Scalar", "i64[5], -3")
    w.case("fmod.Scalar", "i64[5], -3")
    w.case("remainder.Scalar", "f32[5], -3")
    w.case("fmod.Scalar", "f32[5], -3")
    w.comment("addcdiv of integers is refused")
    w.case("addcdiv", "i64[2], i64[2], i64[2]")


def powers(w):
    w.comment("powers: integers to negative ones, 0, NaN and 1, exponents with forms of their own")
    rows(w, "base", [-inf, -2.0, -0.0, 0.0, 0.3, 1.0, 2.5, inf, nan])
    for e in ("0", "0.5", "-0.5", "1", "-1", "2", "-2", "3", "nan", "inf", "-inf", "0.3"):
        w.case("pow.Tensor_Scalar", "$base, " + e, "" if e in ("0", "0.5", "-0.5", "1", "-1", "2", "-2", "3") else "ulp=2")
    for b in ("1", "0", "-1", "2", "nan", "inf"):
        w.case("pow.Scalar", b + ", $base", "ulp=2")
    w.case("pow.Tensor_Scalar", "i64[5], -1")
    w.case("pow.Tensor_Scalar", "i64[5], 70")
    w.case("pow.Tensor_Scalar", "u8[5], 5")
    w.case("pow.Tensor_Tensor", "i64[5], i64[5]")
    w.tensor("ints", torch.tensor([-2, -1, 0, 1, 2]))
    for e in (-1, -2, 0, 3):
        w.case("pow.Tensor_Tensor", "$ints, i64[]=%d" % e)
    w.case("pow.Scalar", "2, $ints")
    w.case("pow.Tensor_Tensor", "f32[3]=nan, f32[3]=0")
    w.case("pow.Tensor_Tensor", "f32[3]=1, f32[3]=nan")


def casts(w):
    w.comment("casts: floats lose their fraction, numbers wrap, whatever is not 0 is true")
    rows(w, "real", [-1.9, -0.5, 0.0, 0.5, 1.9, 2.5, 100.7])
    rows(w, "large", [1e5, -1e5, 65504.0, 65520.0, 3.4e38])
    for dtype in ("int8", "int16", "int32", "int64", "bool", "float16", "bfloat16"):
        w.case("_to_copy", "$real, dtype=" + dtype)
    w.case("_to_copy", "$large, dtype=float16")
    w.case("_to_copy", "f32[2]=nan, dtype=bool")
    w.case("_to_copy", "c64[3], dtype=bool")
    w.case("_to_copy", "c64[3], dtype=float32")
    w.tensor("wide", torch.tensor([300, -300, 2**31, -2**31 - 1]))
    for dtype in ("int8", "uint8", "int16", "int32", "float32"):
        w.case("_to_copy", "$wide, dtype=" + dtype)
    w.case("add.Tensor", "i8[3]=100, i8[3]=100")
    w.case("mul.Tensor", "u8[3]=20, u8[3]=20")
    rows(w, "halves", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, -0.2])
    w.case("round", "$halves")
    w.case("round.decimals", "$halves, decimals=1", "ulp=1")


def small(w):
    w.comment("small facts")
    rows(w, "s", [nan, inf, -inf, 0.0, -0.0, -1.0, 4.0])
    for op in ("sign", "sgn", "sqrt", "log", "rsqrt", "reciprocal", "logical_not", "nan_to_num", "isnan", "isinf", "isfinite", "exp", "abs", "neg", "log1p", "expm1", "floor", "trunc", "frac", "square"):
        w.case(op, "$s", "ulp=1")
    w.case("isclose", "$s, $s")
    w.case("isclose", "$s, $s, 1e-5, 1e-8, True")
    w.case("nan_to_num", "f16[2]=inf")
    w.case("nan_to_num", "f64[2]=-inf")
    w.case("nan_to_num", "$s, 1, 2, 3")
    w.case("sgn", "c64[3]", "ulp=2")
    w.case("sgn", "c64[2]=0")
    w.case("lerp.Scalar", "f32[2]=1, f32[2]=inf, 0.5")
    w.case("lerp.Scalar", "f32[3], f32[3]=2, 0.75")
    w.case("lerp.Scalar", "f32[3], f32[3]=2, 0.25")
    for args in ("3, 9, 1", "3, 9, 0", "0, 1, -1", "0, 1, 3"):
        w.case("linspace", args)
    for args in ("[f32[0], f32[2,3]], 0", "[f32[0], f32[0]], 0", "[f32[2,3], f32[0]], 1", "[f32[0,2], f32[2,3]], 0"):
        w.case("cat", args)
    for args in ("0, 1, 0.3", "5, 0, -2", "0, 5, 0", "0, 5, -1", "0, inf", "1, 1", "2, 3"):
        w.case("arange.start_step" if args.count(",") > 1 else "arange.start", args)
    for op, a in (("lt.Tensor", "c64[2], c64[2]"), ("max", "c64[2]"), ("sort", "c64[2]"), ("clamp", "c64[2], 0"), ("floor", "c64[2]"), ("maximum", "c64[2], c64[2]"), ("topk", "c64[3], 1"), ("argmax", "c64[3]"),
                  ("median", "c64[3]"), ("cumsum", "c64[3], 0"), ("amax", "c64[3]"), ("sign", "c64[2]"), ("trunc", "c64[2]"), ("relu", "c64[2]")):
        w.case(op, a)


def accuracy(w):
    w.comment("sums of halves are computed in float32; the 2-norm is not scaled")
    w.case("sum", "f16[4096]=1")
    w.case("sum", "bf16[4096]=1")
    w.case("cumsum", "f16[300]=1, 0")
    rows(w, "huge", [1e30, 1e30])
    rows(w, "tiny", [3e-30, 4e-30])
    w.case("linalg_vector_norm", "$huge")
    w.case("linalg_vector_norm", "$tiny")
    w.case("sum", "f32[5000]=0.1", "rtol=1e-6")
    w.case("mean", "f16[3000]=60000", "rtol=1e-3")


def indexing(w):
    w.comment("indices: out of range, wrapped, of the wrong dtype or shape")
    w.tensor("ix", torch.tensor([0, -1]))
    w.tensor("dup", torch.tensor([1, 1, 0]))
    w.tensor("far_ix", torch.tensor([0, 5]))
    w.tensor("mask", torch.tensor([True, False]))
    w.tensor("mask3", torch.tensor([True, False, True]))
    for args in ("f32[3,4], [$ix]", "f32[3,4], [None, $ix]", "f32[3,4], [$ix, $ix]", "f32[2,3,4], [$ix, None, $ix]", "f32[2,3,4], [None, $ix, $ix]", "f32[3,4], [$mask3]", "f32[2,3], [None, $mask3]"):
        w.case("index.Tensor", args, "cpu")
    for args in ("f32[3,4], [$far_ix]", "f32[3,4], [None, $far_ix]", "f32[3,0], [None, $ix]", "f32[0], [$ix]", "f32[3,4], [$mask]"):
        w.case("index.Tensor", args, "cpu")
    for args in ("f32[3,4], [f32[2]]", "f32[3,4], [i64[2], i64[3]]", "f32[3,4], [i64[1], i64[1], i64[1]]", "f32[3,4], [i16[2]]"):
        w.case("index.Tensor", args)
    w.case("index_put", "f32[2,4], [$ix], f32[3]", "cpu")
    w.case("index_put", "f32[3], [$dup], f32[3], True", "cpu")
    w.case("index_put", "f32[3], [$dup], f32[]=7", "cpu")
    w.case("index_put", "f32[3], [$far_ix], f32[2]", "cpu")
    w.comment("gather and scatter: no broadcasting, no wrapping")
    for args in ("f32[3], 0, i64[2]=5", "f32[3], 0, i64[2]=-1"):
        w.case("gather", args, "cpu")
    for args in ("f32[3,4], 0, i64[1,9]=0", "f32[3,4], 0, i64[3]=0", "f32[3], 0, i16[2]", "f32[3], 0, i32[2]=1"):
        w.case("gather", args)
    w.case("scatter.src", "f32[3], 0, i64[2]=5, f32[2]", "cpu")
    w.case("scatter.src", "f32[3,4], 0, i64[1,2]=0, f32[1,1]")
    w.case("scatter_add", "f32[3], 0, $dup, f32[3]")
    w.case("index_add", "f32[3,2], 0, i64[1]=5, f32[1,2]", "cpu")
    for args in ("f32[3], 0, i64[2]=3", "f32[3], 0, i64[2]=-1"):
        w.lines.append("index_select | %s | cpu IndexError: index out of range in self" % args)
    w.comment("embedding: out of range, negative, of the wrong dtype; the padding row gets no gradient")
    w.case("embedding", "f32[3,2], i64[2]=3", "cpu")
    w.case("embedding", "f32[3,2], i64[2]=-1", "cpu")
    w.case("embedding", "f32[3,2], f32[2]")
    w.case("embedding", "f32[3,2], $dup, 1")
    w.case("embedding_dense_backward", "f32[3,2], $dup, 3, 1, False")
    w.case("embedding_dense_backward", "f32[3,2], $dup, 3, -1, True")


def losses(w):
    w.comment("cross_entropy: ignored targets, empty batches, smoothing, weights, bad classes")
    w.tensor("t", torch.tensor([0, 2, -100]))
    w.tensor("none", torch.tensor([-100, -100, -100]))
    w.tensor("bad", torch.tensor([0, 4, 1]))
    for reduction in (0, 1, 2):
        for args in ("f32[3,4], $t, None, %d", "f32[3,4], $none, None, %d", "f32[3,4], $t, f32[4]=2, %d", "f32[3,4], $t, None, %d, -100, 0.1", "f32[3,4], $t, f32[4], %d, -100, 0.1", "f32[3,4], f32[3,4], None, %d",
                     "f32[3,4], f32[3,4], f32[4], %d, -100, 0.1", "f32[0,4], i64[0], None, %d", "f32[4], i64[]=1, None, %d"):
            w.case("cross_entropy_loss", args % reduction, "rtol=1e-5 atol=1e-5")
    w.case("cross_entropy_loss", "f32[3,4], $bad", "cpu")
    for args in ("f32[3,4], i64[2]", "f32[3,4], i32[3]", "f32[3,4], $t, f32[3]", "f32[3,4], f32[3,3]", "f32[3,4], $t, None, 1, -100, 2.0"):
        w.case("cross_entropy_loss", args)
    w.comment("binary_cross_entropy: logarithms end at -100, probabilities only")
    rows(w, "p", [0.0, 1.0, 0.5, 1e-45])
    rows(w, "y", [1.0, 0.0, 0.5, 1.0])
    w.case("binary_cross_entropy", "$p, $y, None, 0", CLOSE)
    for args in ("f32[2]=2, f32[2]=0", "f32[2]=-0.5, f32[2]=0", "f32[2]=nan, f32[2]=0", "f32[2]=0.5, f32[2]=2"):
        w.case("binary_cross_entropy", args, "cpu")
    rows(w, "logits", [inf, -inf, 0.0, 1e4, -1e4, 88.0])
    w.case("binary_cross_entropy_with_logits", "$logits, f32[6]=1, None, None, 0", CLOSE)
    w.case("binary_cross_entropy_with_logits", "$logits, f32[6]=0, None, f32[1]=3, 0", CLOSE)
    w.comment("dropout: nothing to drop gives the input, everything gives zeros")
    w.case("dropout", "f32[4], 0.0, True", "same")
    w.case("dropout", "f32[4], 0.7, False", "same")
    w.case("dropout", "$edge7, 1.0, True")
    w.case("dropout", "f32[4], 2.0, True")
    w.case("dropout", "f32[4], -1.0, True")
    w.case("native_dropout", "f32[4], 0.5, False")
    w.case("native_dropout", "f32[4], 1.0, True")


def windows(w):
    w.comment("pooling: NaN wins, the last of several; ceil_mode; divisors")
    t = torch.arange(16.0).reshape(1, 1, 4, 4)
    t[0, 0, 1, 1], t[0, 0, 0, 1], t[0, 0, 3, 2] = nan, nan, -inf
    w.tensor("img", t)
    for args in ("$img, [2,2]", "$img, [3,3], [1,1], [1,1]", "$img, [3,3], [2,2], [1,1], [1,1], True", "$img, [2,2], [3,3], [0,0], [1,1], True", "$img, [2,2], [2,2], [2,2]", "$img, [2,2], [0,0]", "f32[1,1,1,1], [3,3]"):
        w.case("max_pool2d_with_indices", args)
    for args in ("f32[1,1,5,5], [2,2], [2,2], [0,0], True", "f32[1,1,5,5], [3,3], [2,2], [1,1], True, True", "f32[1,1,5,5], [3,3], [2,2], [1,1], True, False", "f32[1,1,5,5], [3,3], [2,2], [1,1], False, True, 0",
                 "f32[1,1,5,5], [3,3], [2,2], [1,1], False, True, 7"):
        w.case("avg_pool2d", args, CLOSE)
    w.comment("convolution: refusals")
    c = "f32[1,2,5,5], f32[3,2,3,3], %s"
    for args in (c % "None, [1,1], [-1,0], [1,1], False, [0,0], 1", c % "None, [0,1], [0,0], [1,1], False, [0,0], 1", c % "None, [1,1], [0,0], [1,1], False, [0,0], 0",
                 c % "None, [1,1], [0,0], [1,1], False, [0,0], 2", c % "None, [1,1], [0,0], [1,1], False, [0,0], 4", c % "f32[4], [1,1], [0,0], [1,1], False, [0,0], 1",
                 "f32[1,4,5,5], f32[3,2,3,3], None, [1,1], [0,0], [1,1], False, [0,0], 1", "f32[1,2,3,3], f32[3,2,5,5], None, [1,1], [0,0], [1,1], False, [0,0], 1",
                 "f32[2,5,5], f32[3,2,3,3], None, [1,1], [0,0], [1,1], False, [0,0], 1"):
        w.case("convolution", args)


def products(w):
    w.comment("products: beta 0 does not read self, nothing to sum over gives zeros")
    w.case("addmm", "f32[2,3]=nan, f32[2,4], f32[4,3], beta=0", CLOSE)
    w.case("addmm", "f32[2,3], f32[2,0], f32[0,3]", CLOSE)
    w.case("addmm", "f32[2,3]=nan, f32[2,0], f32[0,3], beta=0")
    w.case("mm", "f32[2,0], f32[0,3]")
    w.case("mm", "f32[0,3], f32[3,0]")
    w.case("bmm", "f32[2,3,0], f32[2,0,4]")
    w.case("baddbmm", "f32[2,3,4]=nan, f32[2,3,0], f32[2,0,4], beta=0")
    w.case("addmv", "f32[3]=nan, f32[3,2], f32[2], beta=0", CLOSE)
    w.case("addmv", "f32[3], f32[3,0], f32[0], beta=2")
    w.case("mv", "f32[3,0], f32[0]")
    w.case("dot", "f32[0], f32[0]")
    w.case("matmul", "f32[3,5,0], f32[0,4]")


PARTS = (softmax, norms, activations, nothing, nan_order, division, powers, casts, small, accuracy, indexing, losses, windows, products)

if __name__ == "__main__":
    with Writer("corners") as writer:
        rows(writer, "edge7", [nan, -inf, inf, -0.0, 0.0, 1.0, -1.0])
        for part in PARTS:
            part(writer)
