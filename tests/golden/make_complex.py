#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conjugates, and views of complex numbers as pairs of real ones."""

import torch

from literal import Writer


def main():
    with Writer("complex") as w:
        w.tensor("z", torch.tensor([[1 + 2j, -0.0 - 0.0j, complex("inf")], [complex(0, float("nan")), 3j, -2.5]]))
        w.tensor("pairs", torch.arange(12.0).reshape(3, 2, 2)[1:])
        w.tensor("odd", torch.arange(12.0)[1:5].reshape(2, 2))
        w.tensor("uneven", torch.arange(9.0).reshape(3, 3)[:, :2])
        for x in ("$z", "c128[2,3].t", "c64[3].strided", "c64[]", "c64[0,2]"):
            w.case("conj_physical", x)
            w.case("conj_physical_", x)
            w.case("view_as_real", x, "view")
            w.case("real", x, "view")
            w.case("imag", x, "view")
        for x in ("f32[2]", "i64[2]"):
            w.case("conj", x, "same")
            w.case("real", x, "same")
        for x in ("f32[3,2]", "f64[2]", "f32[0,2]", "$pairs"):
            w.case("view_as_complex", x, "view")
        for x in ("i64[2]", "f32[]", "f32[3]", "f32[2,2].t", "$odd", "$uneven"):
            w.case("view_as_complex", x)
        w.case("view_as_real", "f32[2]")
        w.case("imag", "f32[2]")


main()
