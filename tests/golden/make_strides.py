#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Strides of results where more than one answer would do: dimensions of size 1 or 0 with strides of their own, expanded,
transposed, channels-last and spaced inputs, of operators that take a number beside a tensor, or that make their result like
an input. The values do not matter: every element is 1."""

import torch

from literal import Writer

LAYOUTS = (  # name, sizes, strides
    ("rows", (2, 3), (3, 1)), ("columns", (2, 3), (1, 2)), ("permuted", (2, 3, 4), (3, 1, 6)),
    ("last", (2, 3, 4, 5), (60, 1, 15, 3)), ("last_one", (1, 3, 4, 5), (60, 1, 15, 3)),
    ("last_channel", (2, 1, 4, 5), (20, 1, 5, 1)), ("last_pixel", (2, 3, 1, 1), (3, 1, 3, 3)),
    ("expanded", (3, 4), (1, 0)), ("expanded_first", (2, 3), (0, 1)), ("one_element", (3, 4), (0, 0)),
    ("spaced", (4, 3), (6, 2)), ("spaced_columns", (4, 3), (1, 8)), ("part", (2, 3), (6, 1)),
    ("one_inside", (2, 1, 3), (3, 7, 1)), ("one_behind", (4, 1), (1, 9)), ("one_before", (1, 4), (9, 1)),
    ("one_small", (4, 1, 2), (2, 1, 1)), ("one_swapped", (1, 2, 4), (5, 1, 2)), ("one_far", (2, 1, 4), (1, 100, 2)),
    ("none", (2, 0, 3), (3, 3, 1)), ("none_columns", (3, 0), (1, 3)), ("none_spaced", (4, 0, 2), (5, 3, 1)),
    ("none_last", (0, 3, 4, 5), (60, 1, 15, 3)), ("overlapping", (3, 3), (2, 1)), ("number", (), ()))

# An operator, and its arguments with %s for the tensor.
NUMBERS = (("pow.Tensor_Scalar", "%s, 2"), ("pow.Tensor_Scalar", "%s, 1.5"), ("pow.Scalar", "2, %s"),
           ("float_power.Tensor_Scalar", "%s, 2"), ("float_power.Scalar", "2, %s"), ("square", "%s"),
           ("clamp", "%s, 0, 1"), ("clamp", "%s, 0"), ("clamp_min", "%s, 0.5"), ("clamp_max", "%s, 0.5"),
           ("lerp.Scalar", "%s, %s, 0.5"), ("isposinf", "%s"), ("isneginf", "%s"), ("hardshrink", "%s, 0.5"),
           ("softshrink", "%s, 0.5"), ("add.Scalar", "%s, 1"), ("mul.Scalar", "%s, 2"), ("eq.Scalar", "%s, 1"),
           ("rsub.Scalar", "%s, 1"), ("remainder.Scalar", "%s, 2"), ("exp", "%s"))
LIKE = (("hardtanh", "%s"), ("relu6", "%s"), ("nan_to_num", "%s"), ("huber_loss", "%s, %s, 0"),
        ("binary_cross_entropy", "%s, %s, None, 0"), ("mse_loss", "%s, %s, 0"))
ROWS = (("renorm", "%s, 2, 0, 1"),)


def main():
    with Writer("strides") as w:
        w.comment("layouts, over one storage of ones")
        w.tensor("ones", torch.ones(240))
        for name, sizes, strides in LAYOUTS:
            w.view(name, "ones", sizes, strides)
        for title, ops in (("a number has no say in the layout of powers, bounds and interpolations, and one of others", NUMBERS),
                           ("results that are made like the first input", LIKE), ("results that are row-major", ROWS)):
            w.comment(title)
            for op, form in ops:
                for name, sizes, _ in LAYOUTS:
                    if op != "renorm" or len(sizes) > 1:
                        w.case(op, form.replace("%s", "$" + name), "values=no")
        w.comment("two inputs of different layouts: the first decides, or both")
        for op, form in (("huber_loss", "$columns, $rows, 0"), ("huber_loss", "$rows, $columns, 0"),
                         ("binary_cross_entropy", "$columns, $rows, None, 0"), ("mse_loss", "$columns, $rows, 0"),
                         ("lerp.Scalar", "$columns, $rows, 0.5"), ("lerp.Scalar", "$rows, $columns, 0.5"),
                         ("mse_loss", "$rows, $columns, 0")):
            w.case(op, form, "values=no")


if __name__ == "__main__":
    main()
