#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Truth, products, logsumexp, variances and norms over dimensions: dtypes, empty reductions, special values."""

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
CLOSE = {"f16": "rtol=2e-3 atol=1e-3", "bf16": "rtol=1e-2 atol=1e-2", "f32": "rtol=2e-6 atol=1e-6",
         "f64": "rtol=1e-13 atol=1e-13", "c64": "rtol=2e-6 atol=1e-6", "c128": "rtol=1e-13 atol=1e-13"}


def truth(w):
    w.comment("any, all")
    w.tensor("odd", torch.tensor([[nan, 0.0, -0.0], [0.0, -0.0, 0.0], [1.0, inf, nan]]))
    for op in ("any", "all"):
        for a in DTYPES:
            w.case(op, a + "[2,3]")
            w.case(op + ".dim", a + "[4,3], 1")
            w.case(op + ".dim", a + "[4,3].t, 0, True")
            w.case(op + ".dims", a + "[2,3,4], [0,2]")
            w.case(op, a + "[2,3]=0")
        for args in ("f32[0], 0", "f32[0,3], 0", "f32[0,3], 1", "f32[], 0", "f32[2,3], 2", "f32[2,3], -3"):
            w.case(op + ".dim", args)
        for args in ("f32[2,3], []", "f32[2,3], None", "f32[2,3], [0,0]", "f32[2,3], [0,1], True", "u8[2,3], []", "f32[0,3], [0,1]"):
            w.case(op + ".dims", args)
        w.case(op, "$odd")
        w.case(op + ".dim", "$odd, 1")
        w.case(op, "f32[0]")
        w.case(op, "f32[]")


def prod(w):
    w.comment("prod")
    for a in DTYPES:
        w.case("prod", a + "[2,3]", CLOSE.get(a, ""))
        w.case("prod", a + "[5].strided", CLOSE.get(a, ""))
        w.case("prod.dim_int", a + "[2,3], 1", CLOSE.get(a, ""))
        w.case("prod.dim_int", a + "[2,3].t, 0, True", CLOSE.get(a, ""))
        for dtype in ("float64", "int32", "uint8", "bool", "complex64"):
            if "c" not in a:
                w.case("prod", "%s[4], dtype=%s" % (a, dtype), "rtol=2e-6")
    for args in ("f32[0,3], 0", "f32[0,3], 1", "f32[], 0", "f32[2,3], 2", "i64[0], 0"):
        w.case("prod.dim_int", args)
    w.case("prod", "f32[0]")
    w.case("prod", "u8[20]=3")
    w.tensor("zeros", torch.tensor([[0.0, inf, 1], [nan, 0, 1], [-0.0, 2, 3]]))
    w.case("prod.dim_int", "$zeros, 1")


def logsumexp(w):
    w.comment("logsumexp")
    for a in DTYPES:
        if a[0] == "c":
            continue
        for args in ("[2,3], [1]", "[2,3], [0]", "[2,3,4], [0,2], True", "[2,3].t, [1]", "[], [0]"):
            w.case("logsumexp", a + args, CLOSE.get(a, CLOSE["f32"]))
    rows = [[-inf, -inf, -inf], [inf, 0, -inf], [nan, 0, 1], [-inf, 0, 1], [1e4, 1e4, 0], [-200, -201, -202], [inf, inf, inf]]
    w.tensor("rows", torch.tensor(rows))
    w.case("logsumexp", "$rows, [1]", CLOSE["f32"])
    w.case("logsumexp", "$rows, [0]", CLOSE["f32"])
    for args in ("f32[0,3], [0]", "f32[0,3], [1]", "f32[2,3], [2]", "f32[2,3], [0,0]", "f32[2,1100], [1]"):
        w.case("logsumexp", args, CLOSE["f32"])


def variance(w):
    w.comment("variances")
    for op in ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"):
        for a in DTYPES:
            for args in ("[2,3]", "[2,3], [1]", "[2,3,4], [0,2], correction=0, keepdim=True", "[4,3].t, [1], correction=1.5"):
                w.case(op, a + args, CLOSE.get(a, ""))
        for args in ("f32[1]", "f32[2,3], [1], correction=3", "f32[2,3], [1], correction=5", "f32[2,3]=2, [1], correction=3",
                     "f32[0,3], [0]", "f32[0,3], [1]", "f32[]", "f32[], [0]", "f32[2,3], [2]", "f32[2,3], [0,0]",
                     "f32[2,3], []", "f32[2,3], correction=-1", "f32[3000]"):
            w.case(op, args, CLOSE["f32"])
    w.tensor("inf", torch.tensor([[1, inf, 2], [nan, 1, 2], [1e4, 1e4 + 1, 1e4 + 2]]))
    w.case("var.correction", "$inf, [1]", "rtol=1e-4")
    for op in ("var", "std", "var_mean", "std_mean"):
        w.case(op, "f32[2,3]", CLOSE["f32"])
        w.case(op, "f32[2,3], False", CLOSE["f32"])
        w.case(op + ".dim", "f32[2,3], [1]", CLOSE["f32"])
        w.case(op + ".dim", "f32[2,3], None, False, True", CLOSE["f32"])


def norms(w):
    w.comment("norms")
    op = "linalg_vector_norm"
    for a in DTYPES:
        for order in ("2", "1", "0", "3", "inf", "-inf", "-1", "0.5", "2.5"):
            w.case(op, "%s[2,3], %s" % (a, order), CLOSE.get(a, ""))
            if a in CLOSE:
                w.case(op, "%s[2,3].t, %s, [1], True" % (a, order), CLOSE[a])
                w.case(op, "%s[2,3,4], %s, [0,2]" % (a, order), CLOSE[a])
    for order in ("2", "0", "inf", "-inf", "-1"):
        for args in ("", ", [0]", ", [1]", ", [0,1]"):
            w.case(op, "f32[0,3], %s%s" % (order, args))
        w.tensor("special" + order.replace("-", "m"), torch.tensor([[1, nan, 2], [inf, -inf, 0], [0, -0.0, 0], [3e-30, 4e-30, 0], [1e30, 1e30, 0]]))
        w.case(op, "$special%s, %s, [1]" % (order.replace("-", "m"), order), CLOSE["f32"])
    for args in ("f32[2,3], 2, [2]", "f32[2,3], 2, [0,0]", "f32[2,3], 2, [], True", "f32[2,3], 2, dtype=float64",
                 "f64[2,3], 2, dtype=float32", "f32[2,3], 2, dtype=complex64", "c64[2,3], 2, dtype=float32",
                 "f32[2,3], 2, dtype=int32", "f32[2,3], 1j", "c64[2,3], 2, dtype=complex128", "i64[2], 2, dtype=float32",
                 "f16[2,3], 2, dtype=float32", "f32[], 3", "f32[3000], 2"):
        w.case(op, args, CLOSE["f32"])
    w.case("norm.Scalar", "f32[2,3], 2", CLOSE["f32"])
    w.case("norm.Scalar", "c64[2,3], 1", CLOSE["f32"])
    w.case("norm.Scalar", "i64[2]")
    w.case("norm.ScalarOpt_dim", "f32[2,3], None, [1], True", CLOSE["f32"])
    w.case("norm.ScalarOpt_dim", "f32[2,3], 3, [0]", CLOSE["f32"])
    w.case("norm.ScalarOpt_dim", "f32[2,3], None, []", CLOSE["f32"])
    w.case("norm.ScalarOpt_dim_dtype", "f16[2,3], 2, [0], False, dtype=float32", CLOSE["f32"])
    w.case("norm.ScalarOpt_dtype", "f16[2,3], None, dtype=float32", CLOSE["f32"])
    w.case("norm.ScalarOpt_dtype", "i64[2,3], None, dtype=int64")
    w.case("norm.ScalarOpt_dim", "i64[2,3], None, [1]")

    w.comment("cosine_similarity")
    for a in ("f32", "f64", "bf16"):
        for args in ("%s[2,3], %s[2,3].strided", "%s[2,3], %s[3], 0", "%s[2,3,4], %s[4], -1", "%s[3], %s[3]=1, 0",
                     "%s[2,3]=0, %s[2,3], 1", "%s[2,3], %s[2,3], 1, 10.0"):
            w.case("cosine_similarity", args % (a, a), CLOSE[a])
    w.case("cosine_similarity", "i64[2,3], i64[2,3]")
    w.case("cosine_similarity", "f32[2,3], f64[2,3]", CLOSE["f32"])
    w.case("cosine_similarity", "f32[2,3], i64[2,3]", CLOSE["f32"])


def counting(w):
    w.comment("what counts")
    w.tensor("holes", torch.tensor([[1.0, nan, 3.0], [nan, nan, nan], [0.0, -0.0, inf]]))
    for a in DTYPES:
        w.case("count_nonzero", a + "[2,3]")
        w.case("count_nonzero", a + "[2,3].t, 0")
        w.case("count_nonzero.dim_IntList", a + "[2,3,4], [0,2]")
        w.case("nansum", a + "[2,3]", CLOSE.get(a, ""))
        w.case("nansum", a + "[2,3].t, [1], True", CLOSE.get(a, ""))
        if a[0] != "c":
            w.case("nanmean", a + "[2,3]", CLOSE.get(a, ""))
    for op in ("nansum", "nanmean"):
        for args in ("$holes", "$holes, [1]", "$holes, [0], True", "f32[0]", "f32[2,3], [2]", "$holes, [1], dtype=float64"):
            w.case(op, args, CLOSE["f32"])
    w.case("nansum", "f32[2,3], [0], dtype=int64")
    for args in ("$holes", "$holes, 1", "f32[0,3]", "f32[0,3], 1", "f32[2,3], 2", "f32[]"):
        w.case("count_nonzero", args)
    w.case("count_nonzero.dim_IntList", "f32[2,3], []")


with Writer("stat") as w:
    truth(w)
    prod(w)
    logsumexp(w)
    variance(w)
    norms(w)
    counting(w)
