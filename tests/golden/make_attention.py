#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention: both ways of computing it, masks, shared heads, layouts, gradients, refusals.

The gradients of whole calls are kept too: the reference differentiates scaled_dot_product_attention, and the case is
one of the explicit backward operator with the forward's results as arguments."""

import torch

from literal import Writer

inf = float("inf")
CLOSE = {"f16": "rtol=4e-3 atol=4e-3", "bf16": "rtol=3e-2 atol=3e-2", "f32": "rtol=2e-5 atol=2e-6",
         "f64": "rtol=1e-13 atol=1e-13"}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
FLASH = "_scaled_dot_product_flash_attention_for_cpu"


def masks(w):
    half = torch.ones(3, 5, dtype=torch.bool).tril()
    half[1] = False
    w.tensor("bool", half)
    w.tensor("bool4", (torch.arange(2 * 3 * 5) % 3 > 0).reshape(2, 1, 3, 5))
    w.tensor("nothing", torch.zeros(3, 5, dtype=torch.bool))
    for name, dtype in DTYPES.items():
        added = torch.zeros(3, 5, dtype=dtype)
        added[1] = -inf
        added[2, 2:] = -inf
        added[0] = torch.arange(5) / 4
        w.tensor("added_" + name, added)


def public(w):
    op = "scaled_dot_product_attention"
    w.comment(op)
    for d in DTYPES:
        close = CLOSE[d]
        q, k = d + "[2,2,3,4]", d + "[2,2,5,4]"
        three = "%s, %s, %s" % (q, k, k)
        for more in ("", ", is_causal=True", ", scale=0.25", ", scale=-0.5", ", $bool", ", $bool4", ", $nothing",
                     ", $added_" + d, ", $added_" + d + ", is_causal=True", ", f32[1,5]", ", %s[3,1]" % d,
                     ", %s[2,2,3,5]" % d, ", %s[2,3,5]" % d):
            w.case(op, three + more, close)
        for args in ("[3,4], {0}[5,4], {0}[5,3]", "[2,3,4], {0}[2,5,4], {0}[2,5,7], is_causal=True",
                     "[2,3,4], {0}[2,5,4], {0}[2,5,4], $bool", "[3,4], {0}[2,2,5,4], {0}[2,2,5,4]",
                     "[1,4,3,4], {0}[1,2,5,4], {0}[1,2,5,4], enable_gqa=True",
                     "[4,3,4], {0}[2,5,4], {0}[2,5,4], enable_gqa=True",
                     "[1,6,3,4], {0}[1,2,5,4], {0}[1,2,5,4], enable_gqa=True",
                     "[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,7]", "[2,3,4,5].t, {0}[2,3,4,5].t, {0}[2,3,4,5].t",
                     "[2,2,3,4].cl, {0}[2,2,3,4].cl, {0}[2,2,3,4].cl", "[2,2,3,4].expanded, {0}[2,2,5,4], {0}[2,2,5,4]",
                     "[2,2,3,4].strided, {0}[2,2,5,4], {0}[2,2,5,4]", "[2,2,3,4], {0}[2,2,0,4], {0}[2,2,0,4]",
                     "[2,2,0,4], {0}[2,2,5,4], {0}[2,2,5,4]", "[0,2,3,4], {0}[0,2,5,4], {0}[0,2,5,4]",
                     "[1,1,1,1], {0}[1,1,1,1], {0}[1,1,1,1]",
                     "[2,2,3,4], {0}[1,2,5,4], {0}[1,2,5,4]", "[2,2,3,4], {0}[2,1,5,4], {0}[2,1,5,4]"):
            w.case(op, d + args.format(d), close)
    # In memory as a transformer has it: [batch, length, heads, width].
    for d in ("f32", "bf16"):
        w.tensor("rows_" + d, (torch.arange(2 * 5 * 3 * 8).reshape(2, 5, 3, 8) % 13 / 4 - 1.5).to(DTYPES[d]))
        w.view("turned_" + d, "rows_" + d, (2, 3, 5, 8), (120, 8, 24, 1))
        w.case(op, "$turned_{0}, $turned_{0}, $turned_{0}, is_causal=True".format(d), CLOSE[d])
    w.case(op, "f32[1,1,70,4], f32[1,1,300,4], f32[1,1,300,4]", CLOSE["f32"])
    w.case(op, "f32[1,1,70,4], f32[1,1,300,4], f32[1,1,300,4], is_causal=True", CLOSE["f32"])
    w.case(op, "f32[1,1,300,1], f32[1,1,280,1], f32[1,1,280,1], is_causal=True", CLOSE["f32"])
    w.comment("refusals")
    for args in ("f32[4], f32[4], f32[4]", "f32[], f32[], f32[]", "f32[2,2,3,4], f64[2,2,5,4], f32[2,2,5,4]",
                 "f32[2,2,3,4], f32[2,2,5,3], f32[2,2,5,4]", "f32[2,2,3,4], f32[3,2,5,4], f32[3,2,5,4]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], i64[3,5]", "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f64[3,5]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f16[3,5]", "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f32[3,4]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], f32[1,2,2,3,5]", "f32[2,3,4], f32[2,5,4], f32[2,5,4], f32[3,5], is_causal=True",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], dropout_p=-0.5", "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], dropout_p=1.5",
                 "f32[1,6,3,4], f32[1,4,5,4], f32[1,4,5,4], enable_gqa=True", "f32[3,4], f32[5,4], f32[5,4], enable_gqa=True",
                 "f32[1,6,3,4], f32[1,2,5,4], f32[1,2,5,4]"):
        w.case(op, args)
    w.case(op, "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], dropout_p=0.5", "values=no")
    w.case(op, "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], dropout_p=1.0", CLOSE["f32"])


def by_products(w):
    op = "_scaled_dot_product_attention_math"
    w.comment(op)
    for d in ("f32", "f64", "bf16"):
        for args in ("[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,4]", "[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,4], $bool",
                     "[3,4], {0}[5,4], {0}[5,3], $added_{0}, scale=-0.5",
                     "[2,3,4], {0}[2,5,4], {0}[2,5,4], None, 0.25, False, bool[2,3,5]",
                     "[4,3,4], {0}[2,5,4], {0}[2,5,4], None, 0.0, True, enable_gqa=True"):
            w.case(op, d + args.format(d), CLOSE[d])
    w.case(op, "f32[2,3,4], f32[2,5,4], f32[2,5,4], f32[3,5], 0.0, True")


def flash(w):
    w.comment(FLASH)
    for d in DTYPES:
        for args in ("[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,4]", "[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,4], 0.0, True",
                     "[2,2,3,4], {0}[2,2,5,4], {0}[2,2,5,4], 0.0, True, attn_mask=$added_{0}, scale=0.7",
                     "[1,4,3,4], {0}[1,2,5,4], {0}[1,2,5,4]"):
            w.case(FLASH, d + args.format(d), CLOSE[d])
        # The reference takes every last stride for 1.
        w.case(FLASH, d + "[2,2,3,4].cl, {0}[2,2,5,4].t, {0}[2,2,5,4].strided".format(d), "values=no")
    w.case(FLASH, "bf16[2,2,3,4], bf16[2,2,5,4], bf16[2,2,5,4], attn_mask=$added_f32", CLOSE["bf16"])
    w.case(FLASH, "f32[1,1,3,300], f32[1,1,70,300]=0.25, f32[1,1,70,300]", CLOSE["f32"])
    for args in ("i64[2,2,3,4], i64[2,2,5,4], i64[2,2,5,4]", "f32[2,3,4], f32[2,5,4], f32[2,5,4]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], 0.5", "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,3]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], attn_mask=i64[3,5]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], attn_mask=bool[3,5]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], attn_mask=f32[2,3,5]",
                 "f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], attn_mask=f32[3,4]",
                 "f32[2,2,3,4], f64[2,2,5,4], f32[2,2,5,4]"):
        w.case(FLASH, args)


def backward(w):
    op = FLASH + "_backward"
    w.comment(op)
    n = 0
    for d, sizes, more in [(d, s, m) for d in DTYPES for s, m in (
            (((1, 2, 3, 4), (1, 2, 5, 4)), "False"), (((1, 2, 3, 4), (1, 2, 5, 4)), "True"),
            (((1, 2, 3, 4), (1, 2, 5, 4)), "True, attn_mask=$added_" + d + ", scale=0.7"))] + [
            ("f32", ((1, 1, 70, 1), (1, 1, 300, 1)), "True"), ("f32", ((1, 1, 150, 1), (1, 1, 140, 1)), "True"),
            ("f64", ((1, 2, 7, 1), (1, 2, 260, 1)), "False"), ("f32", ((1, 1, 2, 260), (1, 1, 3, 260)), "False")]:
        q = (torch.arange(torch.Size(sizes[0]).numel()) % 17 / 8 - 1).reshape(sizes[0]).to(DTYPES[d])
        k = (torch.arange(torch.Size(sizes[1]).numel()) % 11 / 8 - 0.5).reshape(sizes[1]).to(DTYPES[d])
        names = ["b%d%s" % (n, s) for s in ("q", "k", "o", "l")]
        n += 1
        w.tensor(names[0], q)
        w.tensor(names[1], k)
        text = "$%s, $%s, $%s, 0.0, %s" % (names[0], names[1], names[1], more)
        out, lse = w.call(FLASH, text)
        w.tensor(names[2], out)
        w.tensor(names[3], lse)
        grad = "%s[%s]" % (d, ",".join(map(str, sizes[0])))
        w.case(op, "%s, $%s, $%s, $%s, $%s, $%s, 0.0, %s" % (grad, names[0], names[1], names[1], names[2], names[3], more),
               {"f32": "rtol=5e-5 atol=1e-5"}.get(d, CLOSE[d]))


with Writer("attention") as w:
    masks(w)
    public(w)
    by_products(w)
    flash(w)
    backward(w)
