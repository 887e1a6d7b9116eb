#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write promotion.inc: what PyTorch promotes each pair of our dtypes to.

    python3 make_promotion.py > promotion.inc      (made with PyTorch 2.11)
"""
import torch

NAMES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
         "complex128", "bool", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16",
         "uint32", "uint64"]


def main():
    print("/* Written by make_promotion.py with PyTorch %s. */" % torch.__version__.split("+")[0])
    for a in NAMES:
        for b in NAMES:
            try:
                c = torch.promote_types(getattr(torch, a), getattr(torch, b))
            except RuntimeError:  # there is none
                c = "invalid"
            print('{"%s", "%s", "%s"},' % (a, b, str(c).removeprefix("torch.")))


main()
