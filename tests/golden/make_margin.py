#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Losses with margins between classes, losses of sequences without an alignment, and what distributions refuse."""

import torch

from literal import Writer

LOOSE = {"f32": "rtol=1e-5 atol=1e-6", "f64": "rtol=1e-12 atol=1e-12"}


def margins(w):
    w.comment("one target a row")
    w.tensor("t", torch.tensor([2, 0]))
    w.tensor("one", torch.tensor([1]))
    w.tensor("far", torch.tensor([0, 5]))
    for a in ("f32", "f64"):
        for p in (1, 2):
            for reduction in (0, 1, 2):
                w.case("multi_margin_loss", "%s[2,3], $t, %d, 0.7, None, %d" % (a, p, reduction), LOOSE[a])
                w.case("multi_margin_loss", "%s[2,3].t, $t, %d, 1, %s[3], %d" % (a, p, a, reduction), LOOSE[a])
                w.case("multi_margin_loss_backward", "%s[%s], %s[2,3], $t, %d, 0.7, %s[3], %d" % (a, "" if reduction else "2", a, p, a, reduction), LOOSE[a])
    for args in ("f32[3], $one, 1, 1, None, 0", "f32[3], i64[]=2, 2", "f32[3], $one"):
        w.case("multi_margin_loss", args, LOOSE["f32"])
    w.case("multi_margin_loss", "f32[2,3], $far", "cpu")
    w.case("multi_margin_loss.out", "f32[2,3], $t, 1, 1, None, 0, out=f32[0]", LOOSE["f32"])
    w.comment("several targets a row")
    w.tensor("many", torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0]]))
    w.tensor("bad", torch.tensor([[0, 2, -1, 1], [3, -1, 4, 0]]))
    w.tensor("low", torch.tensor([[0, 2, -1, 1], [3, -1, -2, 0]]))
    for a in ("f32", "f64"):
        for reduction in (0, 1, 2):
            w.case("multilabel_margin_loss_forward", "%s[2,4], $many, %d" % (a, reduction), LOOSE[a])
            w.case("multilabel_margin_loss", "%s[2,4].t, $many, %d" % (a, reduction), LOOSE[a])
            w.case("multilabel_margin_loss_forward", "%s[4], i64[4]=1, %d" % (a, reduction), LOOSE[a])
    for args in ("f32[2,4], $bad, 1", "f32[2,4], $low, 1"):
        w.case("multilabel_margin_loss_forward", args, "cpu")
    for args in ("f64[2,4].grad, $many, 0", "f64[4].grad, i64[4]=1, 1"):
        w.grad("multilabel_margin_loss", args, LOOSE["f64"])
    w.grad("multi_margin_loss", "f64[2,3].grad, $t, 2, 0.7, f64[3], 0", LOOSE["f64"])
    w.comment("signs")
    for reduction in (0, 1, 2):
        w.case("soft_margin_loss", "f64[2,3], f64[2,3].t, %d" % reduction, LOOSE["f64"])
        w.case("soft_margin_loss_backward", "f64[%s], f64[2,3], f64[2,3].t, %d" % ("" if reduction else "2,3", reduction), LOOSE["f64"])


def sequences(w):
    w.comment("sequences")
    torch.manual_seed(5)
    w.tensor("p", torch.randn(7, 3, 5, dtype=torch.float64).log_softmax(2))
    w.tensor("single", torch.randn(7, 3, 5).log_softmax(2))
    w.tensor("labels", torch.tensor([[1, 2, 2], [4, 1, 3], [3, 3, 0]]))
    w.tensor("line", torch.tensor([1, 2, 2, 4, 3, 3], dtype=torch.int32))
    w.tensor("lengths", torch.tensor([7, 5, 6]))
    w.tensor("counts", torch.tensor([3, 1, 2]))
    for reduction in (0, 1, 2):
        w.case("ctc_loss.IntList", "$p, $labels, [7,5,6], [3,1,2], 0, %d" % reduction, LOOSE["f64"])
        w.case("ctc_loss.IntList", "$single, $line, [7,7,7], [3,1,2], 0, %d" % reduction, LOOSE["f32"])
        w.case("ctc_loss.Tensor", "$p, $labels, $lengths, $counts, 0, %d" % reduction, LOOSE["f64"] + " cpu")
    for args in ("$p, $labels, [7,7,7], [0,1,3], 4", "$p, $labels, [7,7,3], [3,3,2], 0, 0", "$p, $labels, [7,7,2], [3,3,2], 0, 0", "$p, $labels, [7,7,2], [3,3,2], 0, 1, True",
                 "$p, $labels, [7,7,0], [3,3,1], 0, 0", "$p, $labels, [7,7,8], [3,3,1]", "$p, $labels, [7,7,7], [3,3,4]", "$p, $labels, [7,7,7], [3,3]", "$p, $line, [7,7,7], [3,1,1]"):
        w.case("ctc_loss.IntList", args, LOOSE["f64"])
    for args in ("$p.grad, $labels, [7,5,6], [3,1,2], 0, 0", "$p.grad, $labels, [7,7,2], [3,3,2], 0, 2, True", "$single.grad, $line, [7,7,7], [3,1,2], 0, 1"):
        w.grad("ctc_loss.IntList", args, LOOSE["f32"])
    w.grad("ctc_loss.Tensor", "$p.grad, $labels, $lengths, $counts", LOOSE["f64"] + " cpu")
    w.case("_ctc_loss", "$p, $labels, [7,7,7], [3,3,3], 1", LOOSE["f64"])
    w.case("_ctc_loss", "$single, $labels, [7,7,7], [3,3,3]", LOOSE["f32"])


def refusals(w):
    w.comment("distributions")
    w.case("poisson", "f32[2]=-1", "cpu")
    w.case("poisson", "f32[3]=0")
    w.case("binomial", "f32[3]=0, f32[]=0.3")
    w.case("binomial", "f32[3]=7, f32[]=1")
    w.case("binomial", "f64[3]=7, f64[3]=0")


if __name__ == "__main__":
    with Writer("margin") as writer:
        margins(writer)
        sequences(writer)
        refusals(writer)
