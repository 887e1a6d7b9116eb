#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bare numbers that a dtype cannot hold: which operators refuse them, in which words, and what the others make of them."""

import torch

from literal import Writer

DTYPES = {"u8": torch.uint8, "i8": torch.int8, "i64": torch.int64, "f16": torch.float16, "f32": torch.float32}
NUMBERS = ("300", "2147483648", "65520.0", "1e39", "-1e300")
# An operator, and its arguments with %s for a tensor and %n for the number.
FORMS = (("fill.Scalar", "%s, %n"), ("full_like", "%s, %n"), ("masked_fill.Scalar", "%s, bool[3], %n"),
         ("where.ScalarOther", "bool[3], %s, %n"), ("where.ScalarSelf", "bool[3], %n, %s"),
         ("pow.Tensor_Scalar", "%s, %n"), ("clamp", "%s, 0, %n"), ("clamp_min", "%s, %n"), ("clamp_max", "%s, %n"),
         ("hardtanh", "%s, 0, %n"), ("threshold", "%s, %n, 0"), ("threshold", "%s, 1, %n"), ("leaky_relu", "%s, %n"),
         ("elu", "%s, %n"), ("softplus", "%s, %n"), ("softplus", "%s, 1, %n"), ("hardshrink", "%s, %n"),
         ("softshrink", "%s, %n"), ("addcmul", "%s, %s, %s, value=%n"), ("addcdiv", "%s, %s, %s, value=%n"),
         ("logit", "%s, %n"), ("scatter.value", "%s, 0, i64[1]=1, %n"), ("add.Scalar", "%s, %n"), ("mul.Scalar", "%s, %n"),
         ("lt.Scalar", "%s, %n"))
BY_PRODUCT = ("addmm", "$m_%t, $m_%t, $m_%t, alpha=%n"), ("addmm", "$m_%t, $m_%t, $m_%t, beta=%n"), ("add.Tensor", "%s, %s, alpha=%n")


def main():
    with Writer("numbers") as w:
        w.comment("tensors")
        for t in DTYPES:
            w.tensor("x_" + t, torch.tensor([1, 2, 3]).to(DTYPES[t]))
            w.tensor("m_" + t, torch.tensor([[1]]).to(DTYPES[t]))
        for op, form in FORMS + BY_PRODUCT:
            w.comment(op)
            for t in DTYPES:
                for number in NUMBERS:
                    close = "rtol=1e-2 atol=1e-2" if t in ("f16", "bf16") else "rtol=1e-5 atol=1e-6"
                    w.case(op, form.replace("%s", "$x_" + t).replace("%t", t).replace("%n", number), close)
        w.comment("float_power_: only what has the dtype of the result already")
        for form in ("f32[2], 2", "f16[2], 2", "i64[2], 2", "c64[2], 2", "f64[2]=2, 3", "f64[2], 1j", "c128[2], 2"):
            w.case("float_power_.Scalar", form, "rtol=1e-12 atol=1e-12")
        for form in ("f32[2], f32[2]", "f64[2]=2, f32[2]", "f64[2]=2, i64[2]", "f64[2], c64[2]", "c128[2], f64[2]"):
            w.case("float_power_.Tensor", form, "rtol=1e-12 atol=1e-12")
        w.comment("arange: positions are computed in int64, of half a float in float32")
        for form in ("1e39, 2e39, dtype=int64", "1e39, 2e39, dtype=uint8", "1e39, 2e39, dtype=float16", "1e10, 10000000002, dtype=int64"):
            w.case("arange.start", form)


if __name__ == "__main__":
    main()
