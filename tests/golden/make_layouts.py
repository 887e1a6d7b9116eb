#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write layouts.inc: what PyTorch says of random sizes and strides.

    python3 make_layouts.py > layouts.inc          (made with PyTorch 2.11)

One row a layout: sizes, strides, contiguous, channels-last, channels-last 3d, dense, suggested format,
strides of empty_like.
"""
import random

import torch
from torch._prims_common import suggest_memory_format

FORMATS = {torch.contiguous_format: 0, torch.channels_last: 2, torch.channels_last_3d: 3}


def random_layout(rng):
    n = rng.choice([0, 1, 2, 3, 4, 4, 4, 5, 5, 5])
    sizes = [rng.choice([0, 1, 1, 2, 2, 3, 4]) if rng.random() < 0.9 else 5 for _ in range(n)]
    if n and rng.random() < 0.85:
        sizes = [max(s, 1) for s in sizes]
    order = list(range(n))
    kind = rng.random()
    if kind < 0.25 and n == 4:
        order = [0, 2, 3, 1]
    elif kind < 0.25 and n == 5:
        order = [0, 2, 3, 4, 1]
    elif kind < 0.7:
        rng.shuffle(order)
    strides, step = [0] * n, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1)
        if rng.random() < 0.1:
            step += rng.randint(1, 3)
    for d in range(n):
        if rng.random() < 0.12:
            strides[d] = rng.choice([0, 1, strides[d] + 1, 7])
    return sizes, strides


def row(sizes, strides):
    need = 1 + sum((s - 1) * t for s, t in zip(sizes, strides)) if 0 not in sizes else 0
    x = torch.empty(need).as_strided(sizes, strides)
    flag = lambda b: str(int(b))
    values = [
        flag(x.is_contiguous()),
        flag(x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)),
        flag(x.dim() == 5 and x.is_contiguous(memory_format=torch.channels_last_3d)),
        flag(torch.ops.aten.is_non_overlapping_and_dense(x)),
        str(FORMATS[suggest_memory_format(x)]),
    ]
    braces = lambda v: "{" + ", ".join(map(str, v or [0])) + "}"
    kept = list(torch.empty_like(x).stride())
    print("{%d, %s, %s, %s, %s}," % (len(sizes), braces(sizes), braces(strides), ", ".join(values),
                                     braces(kept)))


def main():
    rng = random.Random(20)
    print("/* Written by make_layouts.py with PyTorch %s. */" % torch.__version__.split("+")[0])
    for _ in range(400):
        row(*random_layout(rng))


main()
