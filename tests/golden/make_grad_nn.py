#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of activations, losses, softmax and norms, and of their backward operators."""

import torch

from literal import Writer

inf, nan = float("inf"), float("nan")
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -3.0, 6.0, -7.0, 0.25, 21.0, -0.75]
NEAR = {"f32": "rtol=3e-6 atol=2e-6", "f64": "rtol=1e-11 atol=1e-13", "f16": "rtol=4e-3 atol=2e-3",
        "bf16": "rtol=3e-2 atol=2e-2"}
ROUGH = "rtol=1e-6 atol=1e-9"  # a constant of the reference is a float32, or its order of operations cancels


def activations(w):
    w.comment("activations")
    for op, rest in (("gelu", ""), ("gelu", ", approximate='tanh'"), ("silu", ""), ("mish", ""), ("hardswish", ""),
                     ("hardsigmoid", ""), ("leaky_relu", ""), ("leaky_relu", ", 0.25"), ("elu", ""), ("elu", ", 2, 3, 0.5"),
                     ("softplus", ""), ("softplus", ", 2, 1"), ("hardtanh", ""), ("hardtanh", ", 0, 6"), ("relu6", ""),
                     ("selu", ""), ("celu", ", 2"), ("threshold", ", 0.5, 7"), ("log_sigmoid", ""), ("relu", ""),
                     ("log_sigmoid_forward", "")):
        options = ROUGH if op == "hardsigmoid" else NEAR["f64"]
        w.grad(op, "$x_f64.grad" + rest, options)
        w.grad(op, "f32[2,3].t.grad" + rest, NEAR["f32"])
    for op in ("gelu_", "silu_", "leaky_relu_", "elu_", "hardtanh_", "relu_", "hardswish_", "mish_"):
        w.grad(op, "f64[6].grad", NEAR["f64"])
    for op, rest in (("gelu_backward", ""), ("gelu_backward", ", approximate='tanh'"), ("hardswish_backward", ""),
                     ("leaky_relu_backward", ", 0.1, False"), ("softplus_backward", ", 2, 1"),
                     ("hardtanh_backward", ", -3, 3"), ("threshold_backward", ", 0"), ("sigmoid_backward", ""),
                     ("tanh_backward", "")):
        w.grad(op, "f64[13].grad, $x_f64.grad" + rest, NEAR["f64"])
    for rest in ("1, 1, 1, False", "2, 3, 0.5, False"):
        w.grad("elu_backward", "f64[13].grad, %s, $x_f64.grad" % rest, NEAR["f64"])
    w.grad("log_sigmoid_backward", "f64[3].grad, f64[3].grad, f64[3]=0.25", NEAR["f64"])
    for x in ("f32[2,4].grad", "f32[4,3].grad, 0", "f32[2,4].t.grad"):
        w.grad("glu", x, NEAR["f32"])
    w.grad("glu_backward", "f64[2,2].grad, f64[2,4].grad, 1", NEAR["f64"])
    w.grad("glu_backward", "f64[2,3].grad, f64[4,3].grad, 0", NEAR["f64"])
    w.grad("prelu", "f32[2,3,2].grad, f32[3].grad", NEAR["f32"])
    w.grad("prelu", "$x_f64.grad, f64[1].grad", NEAR["f64"])
    w.grad("_prelu_kernel_backward", "f64[2,3].grad, f64[2,3].grad, f64[1,3].grad", NEAR["f64"])
    for seeds in ("0", "1"):
        w.grad("_prelu_kernel_backward", "f64[2,3].grad, f64[2,3].grad, f64[1,3].grad", NEAR["f64"] + " seeds=" + seeds)


def losses(w):
    w.comment("losses")
    for op, rest in (("mse_loss", ""), ("smooth_l1_loss", ""), ("smooth_l1_loss", ", 0.5"), ("huber_loss", ""),
                     ("huber_loss", ", 0.5"), ("l1_loss", "")):
        for reduction in range(3):
            w.grad(op, "$p.grad, $q.grad, %d%s" % (reduction, rest), NEAR["f64"])
            w.grad(op, "f32[2,3].t.grad, f32[2,3], %d%s" % (reduction, rest), NEAR["f32"] + " strides=no")
    for reduction in range(3):
        seed = "f64[6].grad" if reduction == 0 else "f64[].grad"
        for op, rest in (("mse_loss_backward", ""), ("smooth_l1_loss_backward", ", 0.5"), ("huber_loss_backward", ", 0.5")):
            w.grad(op, "%s, $p.grad, $q.grad, %d%s" % (seed, reduction, rest), NEAR["f64"])
        for weight in ("None", "f64[6]=2"):
            w.grad("binary_cross_entropy", "$prob.grad, $goal.grad, %s, %d" % (weight, reduction), ROUGH)
            w.grad("binary_cross_entropy_backward", "%s, $inner.grad, $goal.grad, %s, %d" % (seed, weight, reduction), ROUGH)
            for positive in ("None", "f64[]=3", "f64[6]=0.5"):
                w.grad("binary_cross_entropy_with_logits", "$p.grad, $goal.grad, %s, %s, %d" % (weight, positive, reduction),
                       NEAR["f64"])
        for log_target in ("False", "True"):
            w.grad("kl_div", "$p.grad, $goal.grad, %d, log_target=%s" % (reduction, log_target), NEAR["f64"])
        w.grad("cosine_embedding_loss", "f64[2,3].grad, f64[2,3].grad, $sign, 0.25, %d" % reduction, NEAR["f64"])
    w.grad("binary_cross_entropy", "f64[3]=0.5, f64[3]=0.5, f64[3].grad")
    w.comment("classification")
    for reduction in range(3):
        for weight in ("None", "f64[3]=0.5"):
            w.grad("nll_loss_forward", "f64[4,3].grad, $class, %s, %d, -100" % (weight, reduction), NEAR["f64"])
            w.grad("nll_loss_forward", "f64[4,3].grad, $class, %s, %d, 1" % (weight, reduction), NEAR["f64"])
            w.grad("nll_loss2d_forward", "f64[2,3,2,1].grad, $pixels, %s, %d, 2" % (weight, reduction), NEAR["f64"])
            w.grad("cross_entropy_loss", "f64[4,3].grad, $class, %s, %d, 1, 0.25" % (weight, reduction), NEAR["f64"])
            w.grad("cross_entropy_loss", "f32[4,3].grad, $class, None, %d" % reduction, NEAR["f32"])
            w.grad("nll_loss_backward", "%s, f64[4,3].grad, $class, %s, %d, -100, f64[]=2" % (
                "f64[4].grad" if reduction == 0 else "f64[].grad", weight, reduction), NEAR["f64"])
    w.grad("cross_entropy_loss", "f64[4,3].grad, f64[4,3]=0.25", NEAR["f64"])
    w.grad("nll_loss_forward", "f64[4,3].grad, $class, f64[3].grad, 1, -100")


def softmaxes(w):
    w.comment("softmax")
    for op in ("softmax.int", "log_softmax.int", "_safe_softmax"):
        for x in ("f64[2,3].grad, 1", "f64[2,3].grad, 0", "f64[3,2].t.grad, -1", "f32[].grad, 0", "f64[2,3,2].grad, 1",
                  "f32[0,3].grad, 1"):
            w.grad(op, x, NEAR["f64"] if x[1:3] == "64" else NEAR["f32"])
        w.grad(op, "bf16[2,3].grad, 1", NEAR["bf16"])
        if op != "_safe_softmax":  # where the reference fails
            w.grad(op, "f16[2,3].grad, 1, dtype=float32", NEAR["f16"])
        w.grad(op, "$masked.grad, 1", NEAR["f64"])
    for op in ("_softmax_backward_data", "_log_softmax_backward_data"):
        for dim in (0, 1):
            w.grad(op, "f64[2,3].grad, f64[2,3].grad, %d, float64" % dim, NEAR["f64"])


def bags(w):
    w.comment("bags of embeddings: one is empty, one row may be padding; by frequency the reference takes another row's")
    for mode in range(3):
        for rest in ("None", "None, False, 2") + (("f64[5].grad", "f64[5].grad, False, 2") if mode == 0 else ()):
            w.grad("_embedding_bag", "f64[4,3].grad, $bagged, $bags, False, %d, False, %s" % (mode, rest),
                   NEAR["f64"] + " strides=no")


def norms(w):
    w.comment("norms")
    for x, rest in (("f64[2,3]", "[3], f64[3].grad, f64[3].grad"), ("f64[2,3]", "[3], None, None"),
                    ("f64[2,3,2]", "[3,2], f64[3,2].grad, None"), ("f64[2,3]", "[3], None, f64[3].grad"),
                    ("f32[4,5].t", "[5], f32[5].grad, f32[5].grad"), ("f64[0,3]", "[3], f64[3].grad, f64[3].grad")):
        w.grad("native_layer_norm", "%s.grad, %s, 1e-5" % (x, rest), NEAR[x[:3]])
        w.grad("layer_norm", "%s.grad, %s" % (x, rest), NEAR[x[:3]])
    w.grad("native_layer_norm", "f64[2,3], [3], f64[3].grad, f64[3].grad, 1e-5", NEAR["f64"])
    w.grad("layer_norm", "bf16[4,6].grad, [6], bf16[6].grad, bf16[6].grad", NEAR["bf16"])
    for rest in ("[3], f64[3].grad", "[3]", "[2,3], f64[2,3].grad, 1e-6"):
        w.grad("rms_norm", "f64[2,3].grad, " + rest, NEAR["f64"])
    for train in ("True", "False"):
        for x in ("f64[4,3]", "f64[2,3,2]", "f64[2,3,2,2].cl"):
            w.grad("native_batch_norm", "%s.grad, f64[3].grad, f64[3].grad, f64[3], f64[3]=2, %s, 0.1, 1e-5" % (x, train),
                   NEAR["f64"] + " strides=no")
            w.grad("batch_norm", "%s.grad, None, None, f64[3], f64[3]=2, %s, 0.1, 1e-5, False" % (x, train),
                   NEAR["f64"] + " strides=no")
        w.grad("_native_batch_norm_legit", "f64[4,3].grad, f64[3].grad, f64[3].grad, f64[3], f64[3]=2, %s, 0.1, 1e-5" % train,
               NEAR["f64"])
    w.grad("_native_batch_norm_legit.no_stats", "f64[4,3].grad, f64[3].grad, f64[3].grad, True, 0.1, 1e-5", NEAR["f64"])
    w.grad("_native_batch_norm_legit_no_training", "f64[4,3].grad, f64[3].grad, f64[3].grad, f64[3], f64[3]=2, 0.1, 1e-5",
           NEAR["f64"])
    w.grad("instance_norm", "f64[2,3,4].grad, f64[3].grad, f64[3].grad, None, None, True, 0.1, 1e-5, False", NEAR["f64"])
    for weight in ("f64[4].grad, f64[4].grad", "None, None"):
        w.grad("native_group_norm", "f64[2,4,3].grad, %s, 2, 4, 3, 2, 1e-5" % weight, NEAR["f64"] + " seeds=0")
        w.grad("group_norm", "f64[2,4,3,1].grad, 2, %s" % weight, NEAR["f64"])
    w.comment("norms, twice: mean and rstd follow the input, so they are those of the input here")
    x = torch.arange(12, dtype=torch.float64).sin().reshape(4, 3)
    w.tensor("rows", x)
    w.tensor("row_mean", x.mean(1, keepdim=True))
    w.tensor("row_rstd", (x.var(1, unbiased=False, keepdim=True) + 1e-5).rsqrt())
    w.tensor("column_mean", x.mean(0))
    w.tensor("column_rstd", (x.var(0, unbiased=False) + 1e-5).rsqrt())
    for seeds in ("0,1,2", "0", "1", "2", "0,2"):
        w.grad("native_layer_norm_backward", "f64[4,3].grad, $rows.grad, [3], $row_mean, $row_rstd, f64[3].grad, f64[3], "
               "[True,True,True]", NEAR["f64"] + " strides=no seeds=" + seeds)
        w.grad("native_batch_norm_backward", "f64[4,3].grad, $rows.grad, f64[3].grad, None, None, $column_mean, $column_rstd, "
               "True, 1e-5, [True,True,True]", NEAR["f64"] + " strides=no seeds=" + seeds)
        w.grad("native_batch_norm_backward", "f64[4,3].grad, $rows.grad, f64[3].grad, f64[3], f64[3]=2, None, None, "
               "False, 1e-5, [True,True,True]", NEAR["f64"] + " strides=no seeds=" + seeds)
    w.grad("native_layer_norm_backward", "f64[4,3].grad, $rows.grad, [3], $row_mean, $row_rstd, None, None, "
           "[True,False,False]", NEAR["f64"] + " strides=no")


if __name__ == "__main__":
    with Writer("grad_nn") as writer:
        def real(values):
            return torch.tensor(values, dtype=torch.float64)
        writer.tensor("x_f64", real(REAL))
        writer.tensor("p", real([0.0, 0.25, -1.0, 3.0, 0.5, -0.5]))
        writer.tensor("q", real([0.0, 0.75, 1.0, 2.0, 0.5, 0.0]))
        writer.tensor("prob", real([0.0, 1.0, 0.25, 0.5, 0.75, 1.0]))
        writer.tensor("inner", real([0.1, 0.9, 0.25, 0.5, 0.75, 0.6]))
        writer.tensor("goal", real([0.0, 1.0, 1.0, 0.5, 0.25, 0.0]))
        writer.tensor("sign", real([1.0, -1.0]))
        writer.tensor("class", torch.tensor([0, 2, 1, 2]))
        writer.tensor("pixels", torch.tensor([[[0], [2]], [[1], [1]]]))
        writer.tensor("masked", real([[0.5, -inf, 1.0], [-inf, -inf, -inf]]))
        activations(writer)
        losses(writer)
        softmaxes(writer)
        norms(writer)
        writer.tensor("bagged", torch.tensor([1, 2, 2, 0, 3]))
        writer.tensor("bags", torch.tensor([0, 2, 2]))
        bags(writer)
