#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Running extremes, medians without NaN, both extremes at once, quantiles; searching, counting, unique slices."""

import torch

from literal import DTYPES, Writer

inf, nan = float("inf"), float("nan")
CLOSE = "rtol=2e-6 atol=1e-6"
LOOSE = {"f16": "rtol=2e-3 atol=2e-3", "bf16": "rtol=2e-2 atol=2e-2", "f64": "rtol=1e-13 atol=1e-13"}


def running(w):
    w.comment("running extremes and logarithms of sums")
    w.tensor("holes", torch.tensor([[1, nan, 3, nan], [nan, 2, 1, 0], [4, 4, 2, 5], [-inf, -inf, inf, 1]]))
    for op in ("cummax", "cummin"):
        for a in DTYPES:
            w.case(op, a + "[2,5], 1")
            w.case(op, a + "[4,2].t, 0")
        for args in ("$holes, 1", "$holes, 0", "f32[], 0", "f32[0], 0", "f32[2,0], 0", "f32[2], 1"):
            w.case(op, args)
        w.case(op + ".out", "f32[3], 0, values=f32[0], indices=i64[0]")
    for a in DTYPES:
        w.case("logcumsumexp", a + "[2,5], 1", LOOSE.get(a, CLOSE))
        w.case("logcumsumexp", a + "[4,2].t, 0", LOOSE.get(a, CLOSE))
    for args in ("$holes, 1", "$holes, 0", "f32[], 0", "f32[0], 0", "f32[2], 1", "f32[3]=1000, 0", "f32[3]=-1000, 0"):
        w.case("logcumsumexp", args, CLOSE)
    w.case("logcumsumexp.out", "f32[3], 0, out=f32[0]", CLOSE)


def extremes(w):
    w.comment("both extremes; medians and quantiles")
    for a in DTYPES:
        w.case("aminmax", a + "[2,5]")
        w.case("aminmax", a + "[2,5].t, dim=1")
        w.case("aminmax", a + "[2,5], dim=0, keepdim=True")
        if a[0] != "c" and a != "bool":
            w.case("nanmedian", a + "[2,5]")
            w.case("nanmedian.dim", a + "[2,5].t, 1")
    for args in ("$holes", "$holes, dim=1", "f32[0]", "f32[0,3], dim=0", "f32[0,3], dim=1", "f32[], dim=0", "f32[2], dim=1", "f32[], keepdim=True", "f32[2,2], keepdim=True"):
        w.case("aminmax", args)
    w.case("aminmax.out", "f32[2,3], dim=1, min=f32[0], max=f32[2]")
    for args in ("$holes", "f32[3]=nan", "f32[0]", "f32[4]"):
        w.case("nanmedian", args)
    for args in ("$holes, 1", "$holes, 0, True", "f32[2]=nan, 0", "f32[0,3], 0", "f32[0,3], 1", "f32[], 0"):
        w.case("nanmedian.dim", args)
    w.case("nanmedian.dim_values", "f32[2,3], 1, values=f32[0], indices=i64[0]")
    for args in ("f32[4,2]", "i64[5]", "f32[]", "f32[0,2]"):
        w.case("msort", args)
    w.case("msort.out", "f32[3,2], out=f32[0]")
    w.tensor("q", torch.tensor([0.0, 0.3, 0.5, 1.0]))
    for mode in ("linear", "lower", "higher", "nearest", "midpoint"):
        w.case("quantile", "f32[3,5], $q, 1, interpolation='%s'" % mode, "cpu " + CLOSE)
        w.case("quantile.scalar", "f32[3,5], 0.4, 0, True, interpolation='%s'" % mode, CLOSE)
    for args in ("f32[3,5], $q", "$holes, $q, 1", "f64[7], f64[]=0.25, 0", "f32[2,2], f32[1]=2", "f32[2,2], f32[1]=-1"):
        w.case("quantile", args, "cpu " + CLOSE)
    w.case("quantile", "f32[3,4], $q, 1, True", "strides=no cpu " + CLOSE)
    for args in ("f32[0], f32[]=0.5", "i64[3], f32[]=0.5", "f32[3], f64[]=0.5", "f32[3], f32[1,1]", "f32[3], f32[]=0.5, 0, interpolation='odd'"):
        w.case("quantile", args)
    for args in ("f32[3,5], 0.5", "f32[3,5], 0.5, None, True", "f32[], 0.5", "f32[3,5].t, 0.1, 1", "f32[3], 1.5"):
        w.case("quantile.scalar", args, CLOSE)
    w.case("quantile.scalar_out", "f32[3,5], 0.5, 1, out=f32[0]", CLOSE)
    w.case("quantile.out", "f32[3,5], $q, 1, out=f32[0]", "cpu " + CLOSE)


def searching(w):
    w.comment("searchsorted, bucketize")
    w.tensor("edges", torch.tensor([-2.0, -0.5, 0.0, 0.0, 1.5]))
    w.tensor("rows", torch.tensor([[-2.0, 0.0, 1.0], [-1.0, -1.0, 2.0]]))
    w.tensor("mixed", torch.tensor([1.5, -2.0, 0.0, -0.5, 0.0]))
    w.tensor("order", torch.tensor([1, 3, 2, 4, 0]))
    w.tensor("odd", torch.tensor([nan, inf, -inf, 0.0, -0.0]))
    for args in ("$edges, f32[2,3]", "$edges, f32[2,3].t, right=True", "$edges, f32[3], side='right'", "$edges, f32[3], side='left'", "$edges, f32[4], out_int32=True", "$rows, f32[2,4]", "$rows, f32[2,4], right=True", "$mixed, f32[5], sorter=$order",
                 "$edges, $odd", "$edges, $odd, right=True", "$edges, f32[]", "f32[0], f32[3]", "$edges, f32[0]"):
        w.case("searchsorted.Tensor", args)
    for a in DTYPES:
        w.case("searchsorted.Tensor", "%s[4]=1, %s[3]" % (a, a))
    for args in ("$edges, f64[3]", "$rows, f32[3]", "$rows, f32[3,2]", "f32[], f32[3]", "$edges, f32[3], right=True, side='left'", "$edges, f32[3], side='odd'", "$mixed, f32[5], sorter=i64[4]", "$mixed, f32[5], sorter=i32[5]",
                 "$edges, i64[3]"):
        w.case("searchsorted.Tensor", args)
    w.case("searchsorted.Tensor", "$mixed, f32[5], sorter=i64[5]=7", "cpu")
    for args in ("$edges, 0", "$edges, 0, right=True", "$edges, 5.5, out_int32=True", "$rows, 1"):
        w.case("searchsorted.Scalar", args)
    w.case("searchsorted.Tensor_out", "$edges, f32[3], out=i64[0]")
    w.case("searchsorted.Tensor_out", "$edges, f32[3], out_int32=True, out=i32[3]")
    w.refuse("searchsorted.Tensor_out", "$edges, f32[3], out=i32[3]", "RuntimeError: torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype Int and out_int32 flag is False")
    w.case("searchsorted.Scalar_out", "$edges, 1, out=i64[0]")
    for args in ("f32[2,3], $edges", "f32[3], $edges, right=True", "i64[3], $edges", "$odd, $edges, out_int32=True", "f32[3], $rows", "f32[3], f32[0]"):
        w.case("bucketize.Tensor", args)
    for args in ("1, $edges", "0.0, $edges, right=True"):
        w.case("bucketize.Scalar", args)
    w.case("bucketize.Tensor_out", "f32[3], $edges, out=i64[0]")


def counting(w):
    w.comment("bincount, histc")
    w.tensor("n", torch.tensor([1, 0, 3, 3, 1]))
    w.tensor("n8", torch.tensor([1, 0, 3, 3, 1], dtype=torch.uint8))
    for args in ("$n", "$n8", "$n, f32[5]", "$n, f64[5]", "$n, i32[5]", "$n, None, 6", "$n, f16[5], 2", "i64[0]", "i64[0], None, 3", "i64[0], f64[0], 2", "i64[3]=-1", "$n, f32[4]", "$n, bool[5]"):
        w.case("bincount", args, "cpu")
    for args in ("f32[3]", "i64[2,2]", "$n, None, -1", "$n, f32[5,1]", "bool[3]"):
        w.case("bincount", args, "cpu")
    for a in ("f32", "f64", "i64", "f16"):
        w.case("histc", a + "[3,7], 5")
        w.case("histc", a + "[3,7], 4, -1, 2")
    for args in ("f32[5]=1, 3", "f32[0], 3", "f32[3], 0", "f32[3], 3, 2, 1", "f32[3], 3, 0, inf"):
        w.case("histc", args)
    for args in ("f32[3]=nan, 3", "f32[3]=inf, 3"):
        w.refuse("histc", args, "cpu RuntimeError: torch.histc: range of [")
    w.case("histc", "f32[4]=nan, 3, 0, 1")
    w.case("histc.out", "f32[5], 3, out=f32[0]")


def unique(w):
    w.comment("unique slices, runs of equal elements")
    w.tensor("u", torch.tensor([[1, 2], [0, 5], [1, 2], [0, 4]]))
    w.tensor("u3", torch.tensor([[[0, 0, 0], [1, 0, 1]], [[0, 1, 0], [0, 0, 0]]]))
    w.tensor("runs", torch.tensor([[1.0, 1], [2, 2], [2, nan], [nan, 1]]))
    for args in ("$u, 0", "$u, 0, True, True, True", "$u, 1, True, True, True", "$u, 0, False, True, False", "f32[3,2].t, 1, True, True, True", "f32[0,3], 0, True, True, True", "bool[4], 0, True, True, True", "f32[2,0], 0",
                 "$u3, 0, True, True, True", "$u3, 1, True, True, True", "$u3, 2, True, True, True", "$u3, -1, False, True, False"):
        w.case("unique_dim", args, "cpu")
    for args in ("$runs", "$runs, True, True", "$u, True, True", "$u, True, True, 0", "$u, True, True, 1", "f32[0]", "f32[0], True, True", "f32[]", "bool[5], False, True", "i64[2,2].t, True", "$runs, True, True, 0", "$u3, True, True, 2"):
        w.case("unique_consecutive", args, "cpu")
    w.comment("isin")
    w.tensor("some", torch.tensor([1, 4, 7]))
    for args in ("$u, $some", "$u, $some, invert=True", "f32[5], f32[2]", "$u, i64[0]", "i64[0], $some", "$u, f32[3]", "i32[3], $some, assume_unique=True", "$runs, $runs", "u8[20], u8[5]"):
        w.case("isin.Tensor_Tensor", args)
    w.case("isin.Tensor_Scalar", "$u, 2")
    w.case("isin.Tensor_Scalar", "$u, 2, invert=True")
    w.case("isin.Scalar_Tensor", "4, $u")
    for op, args in (("Tensor_Tensor", "bool[3], i64[2]"), ("Tensor_Tensor", "i64[3], c64[2]"), ("Tensor_Scalar", "bool[3], 2"),
                     ("Tensor_Scalar", "c64[3], 2"), ("Scalar_Tensor", "2, bool[3]")):
        w.case("isin." + op, args)
    w.comment("allclose")
    for args in ("f32[3], f32[3]", "f32[3], f32[3]=1", "f32[3]=nan, f32[3]=nan", "f32[3]=nan, f32[3]=nan, 1e-5, 1e-8, True", "f32[2], f32[3]", "f32[0], f32[0]", "f32[3], f64[3]", "f32[3]=1, f32[3]=1.1, 0.2"):
        w.case("allclose", args, "cpu")


if __name__ == "__main__":
    with Writer("search") as writer:
        for part in (running, extremes, searching, counting, unique):
            part(writer)
