#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random sampling: sizes, layouts, dtypes and refusals; values where chance has no say."""

import torch

from literal import DTYPES, Writer

ANY = "values=no"


def fills(w):
    w.comment("fills")
    for a in DTYPES:
        w.case("bernoulli_.float", a + "[2,3].t, 0.5", ANY + " same")
        w.case("bernoulli_.float", a + "[2,3].t, 1.0", "same")
        w.case("bernoulli_.float", a + "[5], 0.0", "same")
        w.case("bernoulli_.Tensor", a + "[2,3], f64[3]=1", "same")
        w.case("bernoulli.p", a + "[2,3].t, 1.0")
        w.case("random_", a + "[3]", ANY + " same")
        w.case("random_.to", a + "[2,3], 1", "same")
        w.case("random_.from", a + "[3], 1, 2", "same")
        w.case("exponential_", a + "[3]", ANY + " same")
        w.case("bernoulli", a + "[2,3]=1")
        w.case("multinomial", a + "[3]=1, 2", ANY)
        w.case("native_dropout", a + "[2,3], 0.0, True")
        w.case("native_dropout", a + "[2,3], 0.5, False")
    for args in ("f32[2], 1.5", "f32[2], -0.1", "f32[2], nan", "f32[3].expanded, 0.5", "f32[0], 0.5"):
        w.case("bernoulli_.float", args)
    for args in ("f32[2,3], f32[2]=1", "f32[2,3], i64[3]", "f32[2,3], f32[2,2,3]=1", "f32[2,3].t, f32[2,1]=0"):
        w.case("bernoulli_.Tensor", args)
    w.case("bernoulli", "i64[3]")
    w.case("bernoulli", "f32[2,3].t=1")
    w.case("bernoulli", "f32[2,3,4,5].cl=0")
    w.lines.append("bernoulli | f32[2]=2 | cpu RuntimeError: Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    w.case("bernoulli.out", "f32[2,3]=1, out=f32[0]")
    w.case("bernoulli.p", "f32[2], 1.5")
    for args in ("f32[2], 3, 3", "u8[2], 0, 300", "i8[2], -200, 3", "i8[2], -200, None", "f16[2], 0, 70000", "c64[2], 0, 2", "bool[2], 0, 3",
                 "i64[2], 5, None", "f32[2], -5, 5"):
        w.case("random_.from", args, ANY)
    w.case("random_.to", "f32[2], 0")
    for args in ("f32[2], 0.0", "f32[2], -1.0", "i64[2]", "f32[2,3].t, 2.0"):
        w.case("exponential_", args, ANY)


def factories(w):
    w.comment("factories")
    for args in ("5, [2]", "5, [2,3], dtype=float32", "300, [2], dtype=uint8", "5, [2], dtype=bool", "5, [2], dtype=complex64", "1, [0]", "0, [0]", "0, [2]",
                 "70000, [2], dtype=float16"):
        w.case("randint", args, ANY)
    for args in ("5, 5, [2]", "-3, 3, [2,2]", "-200, 3, [2], dtype=int8"):
        w.case("randint.low", args, ANY)
    w.case("randint.low", "4, 5, [2,2], dtype=float64")
    w.case("randint_like", "f32[2,3].t, 5", ANY)
    w.case("randint_like", "f32[2,3].t, 1, dtype=int64")
    w.case("randint_like.low_dtype", "f32[2,3], 3, 4")
    for args in ("5", "0", "-1", "5, dtype=float32", "300, dtype=uint8", "3000, dtype=float16", "5, dtype=bool", "5, dtype=complex64", "129, dtype=int8"):
        w.case("randperm", args, ANY)
    w.case("randperm", "1")
    w.case("randperm.out", "4, out=i64[4].strided", ANY)


def choices(w):
    w.comment("multinomial")
    for args in ("f32[3]=1, 2", "f32[3]=1, 4", "f32[3]=1, 4, True", "f32[2,3]=1, 2", "f32[2,2,3]=1, 2", "f32[3]=1, 0", "f32[0], 1", "f32[]=1, 1", "f32[0,3], 2"):
        w.case("multinomial", args, ANY)
    for args in ("f32[3]=-1, 2, True", "f32[3]=0, 2, True", "f32[3]=0, 2", "f32[2]=nan, 1, True", "f32[2]=inf, 1", "f32[3]=-1, 2"):
        w.case("multinomial", args, "cpu")
    w.tensor("sure", torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 1e-3]]))
    w.case("multinomial", "$sure, 5, True")
    w.case("multinomial", "$sure, 1")


def dropout(w):
    w.comment("dropout")
    for args in ("f32[2,3].t, 0.5, True", "f32[2,3], 1.0, True", "f32[2,3], 0.5, None"):
        w.case("native_dropout", args, ANY)
    w.case("native_dropout", "f32[2], 2.0, True")
    w.case("native_dropout", "i64[2], 0.5, True")
    w.case("native_dropout_backward", "f32[2,3], bool[2,3], 2.0")
    w.case("native_dropout_backward", "f16[2,3].t, bool[2,3], 1.5")
    for args in ("f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[0], 0.5, True"):
        w.case("dropout", args, "same")
        w.case("dropout_", args, "same")
    w.tensor("odd", torch.tensor([1.0, -2.0, float("inf"), float("nan"), -0.0]))
    w.case("dropout", "$odd, 1.0, True")
    w.case("dropout", "f32[2,3].t, 0.5, True", ANY)
    for args in ("f32[2], 2.0, True", "f32[2], -0.1, False", "i64[2], 0.5, True"):
        w.case("dropout", args)


with Writer("random") as writer:
    for part in (fills, factories, choices, dropout):
        part(writer)
