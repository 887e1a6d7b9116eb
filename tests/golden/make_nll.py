#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Classification losses: reductions, weights, ignored targets, soft targets, refusals."""

import torch

from literal import Writer

CLOSE = {"f16": "rtol=2e-3 atol=2e-3", "bf16": "rtol=2e-2 atol=2e-2", "f32": "rtol=2e-6 atol=2e-6",
         "f64": "rtol=1e-13 atol=1e-13"}


def rows(w):
    w.comment("rows")
    w.tensor("t", torch.tensor([0, 2, 1, 2]))
    w.tensor("skip", torch.tensor([0, -100, 1, -100]))
    w.tensor("all_skipped", torch.tensor([-100, -100, -100, -100]))
    w.tensor("bytes", torch.tensor([0, 2, 1, 2], dtype=torch.uint8))
    w.tensor("bad", torch.tensor([0, 3, 1, 2]))
    w.tensor("negative", torch.tensor([0, -1, 1, 2]))
    for a in CLOSE:
        for target in ("$t", "$skip", "$all_skipped", "$bytes"):
            for weight in ("None", a + "[3]"):
                for reduction in (0, 1, 2):
                    w.case("nll_loss_forward", "%s[4,3], %s, %s, %d, -100" % (a, target, weight, reduction), CLOSE[a])
                    grad = "[4]" if reduction == 0 else "[]"
                    w.case("nll_loss_backward", "%s%s, %s[4,3], %s, %s, %d, -100, %s[]=2"
                           % (a, grad, a, target, weight, reduction, a), CLOSE[a])
    for args in ("f32[4,3].t, $t, f32[3].strided, 0, 2", "f32[4,3], $t, None, 1, 2", "f32[3], i64[]=1, None, 0, -100",
                 "f32[3], i64[]=1, f32[3], 1, -100", "f32[3], i64[]=1, None, 2, 1", "f32[3], i64[1]=1, None, 1, -100",
                 "f32[0,3], i64[0], None, 0, -100", "f32[0,3], i64[0], None, 1, -100", "f32[0,3], i64[0], f32[3], 2, -100",
                 "f32[4,3], $t, f32[2], 1, -100", "f32[4,3], $t, f64[3], 1, -100", "f32[4,3], i32[4]=1, None, 1, -100",
                 "i64[4,3], $t, None, 1, -100", "f32[2,3,4], i64[2]=1, None, 1, -100", "f32[4,3], i64[4,1]=1, None, 1, -100",
                 "f32[4,3], i64[3]=1, None, 1, -100", "f32[], i64[]=0, None, 1, -100", "f32[4,3], f32[4], None, 1, -100"):
        w.case("nll_loss_forward", args, CLOSE["f32"])
    for target in ("$bad", "$negative"):
        for reduction in (0, 1):
            w.case("nll_loss_forward", "f32[4,3], %s, None, %d, -100" % (target, reduction), "cpu")
    w.case("nll_loss_backward", "f32[], f32[4,3], $bad, None, 1, -100, f32[]=2", "cpu")
    for args in ("f32[2], f32[4,3], $t, None, 1, -100, f32[]", "f32[], f32[4,3], $t, None, 1, -100, f32[2]",
                 "f32[3], f32[4,3], $t, None, 0, -100, f32[]", "f64[], f32[4,3], $t, None, 1, -100, f32[]",
                 "f32[], f32[4,3], $t, f32[2], 1, -100, f32[]"):
        w.case("nll_loss_backward", args)
    w.case("nll_loss_backward", "f32[], f32[3], i64[]=1, None, 1, -100, f32[]=1", CLOSE["f32"])


def images(w):
    w.comment("images")
    torch.manual_seed(0)
    w.tensor("im", torch.randint(0, 3, (2, 2, 3)))
    holes = torch.randint(0, 3, (2, 2, 3))
    holes[0, 1] = -100
    w.tensor("holes", holes)
    for a in ("f32", "f64", "bf16"):
        for target in ("$im", "$holes"):
            for weight in ("None", a + "[3]"):
                for reduction in (0, 1, 2):
                    w.case("nll_loss2d_forward", "%s[2,3,2,3], %s, %s, %d, -100" % (a, target, weight, reduction), CLOSE[a])
                    grad = "[2,2,3]" if reduction == 0 else "[]"
                    w.case("nll_loss2d_backward", "%s%s, %s[2,3,2,3], %s, %s, %d, -100, %s[]=2"
                           % (a, grad, a, target, weight, reduction, a), CLOSE[a])
    for args in ("f32[2,3,2,3].cl, $im, None, 0, 1", "f32[0,3,2,3], i64[0,2,3], None, 1, -100",
                 "f32[0,3,2,3], i64[0,2,3], None, 2, -100", "f32[2,3,2,3], i64[2,3], None, 1, -100",
                 "f32[3,2,3], $im, None, 1, -100", "f32[2,3,2,2], $im, None, 1, -100", "f32[2,3,2,3], $im, f32[2], 1, -100",
                 "f32[2,3,2,3], i32[2,2,3]=1, None, 1, -100", "f32[2,3,2,3], $im, f64[3], 1, -100"):
        w.case("nll_loss2d_forward", args, CLOSE["f32"])
    w.case("nll_loss2d_forward", "f32[2,2,2,3], $im, None, 1, -100", "cpu")
    w.case("nll_loss2d_backward", "f32[2,2], f32[2,3,2,3], $im, None, 0, -100, f32[]")
    w.case("nll_loss2d_backward", "f32[2], f32[2,3,2,3], $im, None, 1, -100, f32[]")


def composites(w):
    w.comment("any number of dimensions")
    for args in ("f32[4,3], $t", "f32[3], i64[]=1", "f32[2,3,2,3], $im", "f32[2,3,4], i64[2,4]=1",
                 "f32[2,3,4], i64[2,4]=1, f32[3], 0", "f32[2,3,1,2,2], i64[2,1,2,2]=1, None, 0",
                 "f32[2,3,1,2,2], i64[2,1,2,2]=2, f32[3], 2", "f32[2,3,4], i64[2,3]", "f32[2,3,2,2,2], i64[2,2,2,3]",
                 "f32[], i64[]", "f32[4,3], i64[2]", "f32[0,3,4], i64[0,4], None, 0", "f32[2,3,4].t, i64[2,4]=1, None, 1, 1"):
        w.case("nll_loss_nd", args, CLOSE["f32"])
    w.case("nll_loss", "f32[4,3], $t", CLOSE["f32"])
    w.case("nll_loss2d", "f32[2,3,2,3], $im, None, 2", CLOSE["f32"])

    w.comment("cross entropy")
    for a in ("f32", "f64", "bf16"):
        for target in ("$t", "$skip", "$all_skipped", a + "[4,3]=0.25", a + "[4,3]"):
            for weight in ("None", a + "[3]"):
                for reduction in (0, 1, 2):
                    for smoothing in ("0.0", "0.1", "1.0"):
                        close = "rtol=5e-2 atol=5e-2" if a == "bf16" else "rtol=1e-5 atol=1e-5"
                        w.case("cross_entropy_loss", "%s[4,3], %s, %s, %d, -100, %s"
                               % (a, target, weight, reduction, smoothing), close)
    for args in ("f32[2,3,2,3], $im", "f32[2,3,2,3], $im, f32[3], 0, 1, 0.1", "f32[2,3,4], i64[2,4]=2, f32[3], 1, -100, 0.2",
                 "f32[3], i64[]=1", "f32[3], i64[]=1, None, 1, -100, 0.1", "f32[3], f32[3]=0.5", "f32[2,3,4], f32[2,3,4], f32[3]",
                 "f32[4,3], f64[4,3]", "f32[0,3], i64[0]", "f32[0,3], i64[0], None, 2", "f32[0,3], f32[0,3]", "f32[0,3], f32[0,3], None, 2",
                 "f32[4,3], $t, None, 1, -100, 1.5", "f32[4,3], f32[4,3], None, 1, -100, 1.5", "f32[4,3], f32[1,3]",
                 "f32[4,3], f32[4,3], None, 1, 3", "f32[4,3], i32[4]=1", "f32[4,3], $t, f32[2]", "f32[4,3], f32[4,3], f32[2]",
                 "f32[4,3], i64[4,3]"):
        w.case("cross_entropy_loss", args, CLOSE["f32"])
    w.case("cross_entropy_loss", "f32[4,3], $bad", "cpu")

    w.comment("cosine embedding")
    w.tensor("sign", torch.tensor([1, -1, 1, 0]))
    for a in ("f32", "f64"):
        for margin in (0.0, 0.3):
            for reduction in (0, 1, 2):
                w.case("cosine_embedding_loss", "%s[4,3], %s[4,3].strided, $sign, %s, %d" % (a, a, margin, reduction), CLOSE[a])
                w.case("cosine_embedding_loss", "%s[3], %s[3]=1.5, i64[]=-1, %s, %d" % (a, a, margin, reduction), CLOSE[a])
    for args in ("f32[2,3], f32[2,3], i64[2,1]", "f32[3], f32[3], i64[2]", "f32[2,3], f32[2,3], i64[]"):
        w.case("cosine_embedding_loss", args)


with Writer("nll") as w:
    rows(w)
    images(w)
    composites(w)
