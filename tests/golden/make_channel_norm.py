#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batch, group and instance normalisation: layouts, dtypes, running statistics, gradients with masks, refusals."""

import torch

from literal import Writer

CLOSE = {"f16": "rtol=3e-3 atol=3e-3", "bf16": "rtol=2e-2 atol=2e-2", "f32": "rtol=4e-6 atol=3e-5",
         "f64": "rtol=1e-13 atol=1e-13"}


def batch(w):
    w.comment("batch normalisation")
    for a in CLOSE:
        for x in ("[4,3,2]", "[4,3]", "[2,3,2,2].cl", "[4,3].t", "[2,3,1,2]", "[1,3,1]", "[2,3,2,1,2]"):
            for params in ("None, None, None, None", "%s[3], %s[3], %s[3], %s[3]=1.5" % (a, a, a, a), "%s[3], None, None, None" % a,
                           "None, %s[3], %s[3], %s[3]=1.5" % (a, a, a)):
                for training in ("True", "False"):
                    if training == "False" and params.endswith("None"):
                        continue
                    w.case("native_batch_norm", "%s%s, %s, %s, 0.1, 1e-5" % (a, x, params, training), CLOSE[a])
        for mask in ("[True,True,True]", "[True,False,False]", "[False,True,False]", "[False,False,True]"):
            for x in ("[4,3,2]", "[2,3,2,2].cl", "[4,3].t"):
                w.case("native_batch_norm_backward", "%s%s, %s%s.offset, %s[3], None, None, %s[3], %s[3]=1.5, True, 1e-5, %s"
                       % (a, x, a, x, a, a, a, mask), CLOSE[a])
                w.case("native_batch_norm_backward", "%s%s, %s%s.offset, None, %s[3], %s[3]=1.5, None, None, False, 1e-5, %s"
                       % (a, x, a, x, a, a, mask), CLOSE[a])
    w.case("native_batch_norm", "f16[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, True, 0.1, 1e-5", CLOSE["f16"])
    w.case("native_batch_norm", "f16[4,3,2], None, None, f32[3], f32[3]=1, False, 0.1, 1e-5", CLOSE["f16"])
    w.case("native_batch_norm", "f64[4,3,2], f32[3], None, None, None, True, 0.1, 1e-5")
    w.case("native_batch_norm", "i64[4,3,2], None, None, None, None, True, 0.1, 1e-5")
    w.case("native_batch_norm", "f32[3], None, None, None, None, True, 0.1, 1e-5")
    w.case("native_batch_norm", "f32[0,3], None, None, None, None, True, 0.1, 1e-5")
    w.case("_native_batch_norm_legit", "f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, True, 0.1, 1e-5", CLOSE["f32"])
    w.case("_native_batch_norm_legit", "f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, False, 0.1, 1e-5", CLOSE["f32"])
    w.case("_native_batch_norm_legit.no_stats", "f32[4,3,2], f32[3], f32[3], True, 0.1, 1e-5", CLOSE["f32"])
    w.case("_native_batch_norm_legit_no_training", "f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, 0.1, 1e-5", CLOSE["f32"])
    for args in ("f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, True", "f32[4,3], None, None, f32[3], None, True",
                 "f32[4,3], None, None, None, None, False", "f32[4,3], None, None, f32[2], f32[3], True",
                 "f32[4,3], None, None, f32[3], f32[4], False", "f32[4,3], f32[4], None, f32[3], f32[3], False",
                 "f32[4,3], None, f32[4], f32[3], f32[3], False", "f32[0,3], None, None, f32[3], f32[3], True",
                 "f32[3], None, None, None, None, True", "f32[4,3], None, None, None, None, True"):
        w.case("batch_norm", args + ", 0.1, 1e-5, True", CLOSE["f32"])
    for args in ("f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, True", "f32[4,3,2], None, None, None, None, True",
                 "f32[4,3,2], None, None, None, None, False", "f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, False",
                 "f32[2,3,2,2].cl, f32[3], None, None, None, True", "f64[4,3,2], f64[3], f64[3], None, None, True"):
        w.case("instance_norm", args + ", 0.1, 1e-5, True", CLOSE["f32"])


def group(w):
    w.comment("group normalisation")
    for a in CLOSE:
        for x, sizes in (("[2,4,3]", "2, 4, 3"), ("[2,4]", "2, 4, 1"), ("[2,4,2,2].cl", "2, 4, 4"), ("[0,4,3]", "0, 4, 3")):
            for groups in (1, 2, 4):
                for params in ("None, None", "%s[4], %s[4]" % (a, a), "%s[4], None" % a):
                    w.case("native_group_norm", "%s%s, %s, %s, %d, 1e-5" % (a, x, params, sizes, groups), CLOSE[a])
                if ".cl" in x:
                    continue
                batch_size = sizes.split(",")[0]
                stat = "%s[%s,%d]" % (a, batch_size, groups)
                for mask in ("[True,True,True]", "[True,False,False]", "[False,True,False]", "[False,False,True]"):
                    w.case("native_group_norm_backward", "%s%s, %s%s.offset, %s, %s=1.5, %s[4], %s, %d, %s"
                           % (a, x, a, x, stat, stat, a, sizes, groups, mask), CLOSE[a])
    w.case("native_group_norm", "f16[2,4,3], f32[4], f32[4], 2, 4, 3, 2, 1e-5", CLOSE["f16"])
    for args in ("f32[2,4,3], None, None, 2, 4, 3, 3", "f32[2,4,3], f32[3], None, 2, 4, 3, 2",
                 "f64[2,4,3], f32[4], f32[4], 2, 4, 3, 2", "f32[2,4,3], None, None, 2, 4, 3, 0", "i64[2,4,3], None, None, 2, 4, 3, 2"):
        w.case("native_group_norm", args + ", 1e-5")
    for args in ("f32[2,4,3], 2, f32[4], f32[4]", "f32[2,4,3], 3", "f32[2,4,3], 0", "f32[2,4,3], 2, f32[3]", "f32[0,4,3], 2, f32[4], f32[4]",
                 "f32[2,3,4].t, 1", "f32[2,4], 2"):
        w.case("group_norm", args, CLOSE["f32"])


with Writer("channel_norm") as w:
    batch(w)
    group(w)
