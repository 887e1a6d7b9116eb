#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of sums, extremes, products, variances, norms, of what goes by order, and of matrix products."""

import torch

from literal import Writer

inf, nan = float("inf"), float("nan")
NEAR = {"f32": "rtol=4e-6 atol=4e-6", "f64": "rtol=1e-12 atol=1e-13", "f16": "rtol=6e-3 atol=6e-3",
        "bf16": "rtol=4e-2 atol=4e-2"}
LOOSE = NEAR["f32"] + " strides=no"
DIMS = (", [1]", ", [0], True", ", [0,1]", ", [-1], False")


def sums(w):
    w.comment("sums, means, extremes")
    for op in ("sum", "mean"):
        for x in ("f32[2,3].grad", "f64[].grad", "f32[2,3].t.grad", "bf16[4].grad", "f32[0,3].grad"):
            w.grad(op, x, NEAR["bf16"] if "bf16" in x else NEAR["f32"])
        w.grad(op, "f32[2,3].grad, dtype=float64", NEAR["f32"])
    for op in ("sum.dim_IntList", "mean.dim"):
        for dim in DIMS + (", None", ", []", ", None, True"):
            w.grad(op, "f32[2,3].grad" + dim, NEAR["f32"])
        w.grad(op, "f32[2,3].grad, [1], dtype=float64", NEAR["f32"])
        w.grad(op, "f32[].grad, [0]", NEAR["f32"])
    for op in ("amax", "amin"):
        for dim in DIMS + ("", ", [], True"):
            w.grad(op, "$ties.grad" + dim, LOOSE)
            w.grad(op, "$gaps.grad" + dim, LOOSE)
        w.grad(op, "f32[].grad", LOOSE)
    for op in ("max", "min", "median"):
        for x in ("$ties.grad", "$gaps.grad", "f32[2,3].t.grad", "f16[5].grad", "f32[].grad"):
            w.grad(op, x, NEAR["f16"] if "f16" in x else LOOSE)
    for x in ("$gaps.grad", "$gaps.grad, [1]", "$gaps.grad, [0], True", "f32[2,3].grad, None, True"):
        w.grad("nansum", x, LOOSE)
    for x in ("$gaps.grad", "$gaps.grad, [1]"):
        w.grad("nanmean", x, LOOSE)
    w.grad("any", "f32[3].grad")
    w.grad("count_nonzero", "f32[3].grad")


def products(w):
    w.comment("products")
    for name in ("full", "one", "two", "lines"):
        w.grad("prod", "$%s.grad" % name, LOOSE)
        for dim in ("0", "1", "-1, True"):
            w.grad("prod.dim_int", "$%s.grad, %s" % (name, dim), LOOSE)
        for dim in ("0", "1"):
            w.grad("cumprod", "$%s.grad, %s" % (name, dim), LOOSE)
    w.grad("prod", "f32[3].grad, dtype=float64", LOOSE)
    w.grad("prod", "f32[].grad", LOOSE)
    w.grad("prod", "f32[0].grad", LOOSE)
    w.grad("prod", "f32[1].grad", LOOSE)
    w.grad("prod", "f32[1]=0", LOOSE)
    w.grad("prod", "f32[1].grad=0", LOOSE)
    w.grad("prod.dim_int", "f32[].grad, 0", LOOSE)
    w.grad("prod.dim_int", "f32[2,1].grad=0, 1", LOOSE)
    w.grad("cumprod", "f32[].grad, 0", LOOSE)
    w.grad("cumprod", "f32[2,1].grad, 1", LOOSE)
    w.grad("cumprod_", "f64[2,3].grad, 1", NEAR["f64"] + " strides=no")
    for x in ("f32[2,3].grad, 1", "f32[2,3].t.grad, 0", "f32[].grad, 0", "f32[0,3].grad, 0", "f32[3].grad, 0, dtype=float64",
              "bf16[3].grad, -1"):
        w.grad("cumsum", x, NEAR["bf16"] + " strides=no" if "bf16" in x else LOOSE)
    w.grad("cumsum_", "f64[2,3].grad, 1", NEAR["f64"] + " strides=no")


def statistics(w):
    w.comment("variances, norms, sums of exponentials")
    for op in ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"):
        for rest in ("", ", [1]", ", [0], correction=0, keepdim=True", ", [0,1], correction=2", ", None, keepdim=True"):
            w.grad(op, "f64[2,3].grad" + rest, NEAR["f64"] + " strides=no")
        w.grad(op, "f64[1].grad", NEAR["f64"] + " strides=no")
        w.grad(op, "f64[3].grad=2", NEAR["f64"] + " strides=no")
        w.grad(op, "f64[2,1].grad, [1]", NEAR["f64"] + " strides=no")
    for op in ("var_mean.correction", "std_mean.correction"):
        for seeds in ("0", "1"):
            w.grad(op, "f64[2,3].grad, [1]", NEAR["f64"] + " strides=no seeds=" + seeds)
    for op in ("var", "std"):
        w.grad(op, "f64[2,3].grad, False", NEAR["f64"] + " strides=no")
    for p in ("2", "1", "0", "3", "0.5", "1.5", "inf", "-inf", "-2", "2.5"):
        for rest in ("", ", [1]", ", [0], True"):
            w.grad("linalg_vector_norm", "$ties.grad, " + p + rest, LOOSE)
        w.grad("norm.Scalar", "$ties.grad, " + p, LOOSE)
        w.grad("norm.ScalarOpt_dim", "$ties.grad, %s, [1]" % p, LOOSE)
    w.grad("linalg_vector_norm", "f32[3].grad=0, 2", LOOSE)
    w.grad("linalg_vector_norm", "f32[3].grad=0, 3", LOOSE)
    w.grad("linalg_vector_norm", "f32[].grad, 2, [0]", LOOSE)
    w.grad("linalg_vector_norm", "f32[2,3].grad, 2, dtype=float64", LOOSE)
    w.grad("norm.ScalarOpt_dim_dtype", "f32[2,3].grad, None, [1], False, dtype=float64", LOOSE)
    w.grad("norm.ScalarOpt_dtype", "f32[2,3].grad, 3, dtype=float64", LOOSE)
    for x in ("f32[2,3].grad, [1]", "f32[2,3].grad, [0,1], True", "$limits.grad, [1]", "f32[].grad, [0]"):
        w.grad("logsumexp", x, LOOSE)
    w.grad("cosine_similarity", "f32[2,3].grad, f32[2,3].t.grad", "rtol=2e-5 atol=2e-5 strides=no")


def order(w):
    w.comment("what goes by order")
    for op in ("max.dim", "min.dim", "median.dim"):
        for rest in ("1", "0, True", "-1"):
            w.grad(op, "$ties.grad, " + rest, LOOSE)
            w.grad(op, "$gaps.grad, " + rest, LOOSE)
        w.grad(op, "f32[].grad, 0", LOOSE)
    for rest in ("1", "2, 0", "2, 1, True"):
        w.grad("kthvalue", "f32[3,4].grad, " + rest, LOOSE)
    for rest in ("", ", 0", ", 1, True"):
        w.grad("mode", "f32[3,4].grad" + rest, LOOSE)
    for rest in ("", ", 0", ", 1, True"):
        w.grad("sort", "f32[3,4].grad" + rest, LOOSE)
    w.grad("sort.stable", "$ties.grad, stable=True, dim=1, descending=True", LOOSE)
    w.grad("sort", "f32[].grad", LOOSE)
    for rest in ("2", "1, 0", "2, 1, False", "0"):
        w.grad("topk", "f32[3,4].grad, " + rest, LOOSE)
    for op in ("cummax", "cummin", "logcumsumexp"):
        for x in ("$ties.grad, 1", "f32[2,3].t.grad, 0", "f32[].grad, 0", "f32[0,3].grad, 0"):
            w.grad(op, x, LOOSE)
    w.grad("logcumsumexp", "f64[12].grad, 0", NEAR["f64"] + " strides=no")
    w.grad("nanmedian", "$gaps.grad", LOOSE)
    w.grad("nanmedian.dim", "$gaps.grad, 1", LOOSE)
    w.grad("nanmedian.dim", "$gaps.grad, 0, True", LOOSE)
    w.grad("histc", "f32[5].grad")
    w.grad("isin.Tensor_Scalar", "f32[5].grad, 1")
    w.grad("argmax", "f32[3].grad")


def products_of_matrices(w):
    w.comment("matrix products")
    close = "rtol=1e-5 atol=1e-5"
    for op, args in (("mm", "f32[2,3].grad, f32[3,4].grad"), ("mm", "f32[2,3].t.grad, f32[3,4].t.grad"),
                     ("bmm", "f32[2,3,4].grad, f32[2,4,5].grad"), ("mv", "f32[2,3].grad, f32[3].grad"),
                     ("dot", "f32[5].grad, f32[5].grad"), ("matmul", "f32[3].grad, f32[3].grad"),
                     ("matmul", "f32[2,4,3].grad, f32[3,5].grad"), ("matmul", "f32[2,1,3,4].grad, f32[5,4,2].grad"),
                     ("matmul", "f32[4].grad, f32[2,4,3].grad"), ("matmul", "f32[2,4,3].grad, f32[3].grad"),
                     ("linear", "f32[2,5,3].grad, f32[4,3].grad, f32[4].grad"), ("linear", "f32[3].grad, f32[4,3].grad"),
                     ("outer", "f32[2].grad, f32[3].grad"), ("bilinear", "f32[2,3].grad, f32[2,4].grad, f32[5,3,4].grad, f32[5].grad"),
                     ("einsum", "'bij,bjk->bik', [f32[2,3,4].grad, f32[2,4,5].grad]"),
                     ("einsum", "'i,ij->j', [f32[2].grad, f32[2,3].grad]")):
        w.grad(op, args, close + ("" if op == "mm" else " strides=no"))
    for rest in ("", ", beta=0.5, alpha=2", ", beta=0"):
        w.grad("addmm", "f32[4].grad, f32[2,3].grad, f32[3,4].grad" + rest, close + " strides=no")
        w.grad("baddbmm", "f32[2,1,5].grad, f32[2,3,4].grad, f32[2,4,5].grad" + rest, close + " strides=no")
        w.grad("addmv", "f32[2].grad, f32[2,3].grad, f32[3].grad" + rest, close + " strides=no")
        w.grad("addr", "f32[2,3].grad, f32[2].grad, f32[3].grad" + rest, close + " strides=no")
    w.grad("addmm_", "f32[2,4].grad, f32[2,3].grad, f32[3,4].grad, beta=2", close + " strides=no")
    w.grad("mm", "c64[2,3].grad, c64[3,4].grad", close + " strides=no")
    w.grad("mv", "c64[2,3].grad, c64[3].grad", close + " strides=no")
    w.grad("dot", "c64[3].grad, c64[3].grad", close + " strides=no")
    w.grad("mul.Tensor", "c64[2,3].grad, f32[3].grad", close)
    w.grad("conj_physical", "c64[2,3].grad")
    w.grad("sum.dim_IntList", "c64[2,3].grad, [0]")


def main():
    with Writer("grad_reduce") as w:
        w.tensor("ties", torch.tensor([[1.0, 3, 3, -2], [0, -4, 4, 4], [2, 2, 2, 0]]))
        w.tensor("gaps", torch.tensor([[1.0, nan, 3, nan], [0.5, -4, 4, 2], [inf, -inf, 2, 0]]))
        w.tensor("limits", torch.tensor([[1.0, inf, 3], [-inf, -inf, -inf], [-inf, 2, 0]]))
        w.tensor("full", torch.tensor([[1.0, 2, -3], [0.5, -1.5, 4], [2, 0.25, 1]]))
        w.tensor("one", torch.tensor([[1.0, 2, -3], [0.5, 0, 4], [2, 0.25, 1]]))
        w.tensor("two", torch.tensor([[1.0, 2, -3], [0.5, 0, 4], [2, 0.25, 0]]))
        w.tensor("lines", torch.tensor([[0.0, 2, -3, 0, 5], [0.5, 0, 4, 2, 0], [2, 0.25, 0, 3, 1], [1, 2, 3, 4, 5]]))
        sums(w)
        products(w)
        statistics(w)
        order(w)
        products_of_matrices(w)


main()
