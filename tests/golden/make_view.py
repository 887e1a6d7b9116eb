#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Views: sizes, strides and offsets over many layouts, what is copied and what is not, refusals."""

import random

import torch

from literal import Writer

RNG = random.Random(11)


def layout(rng):
    """Sizes, strides and offset of a random tensor: permuted, sliced, expanded, with sizes 0 and 1."""
    n = rng.randint(0, 4)
    sizes = [rng.choice([1, 2, 2, 3, 3, 4, 0]) if rng.random() < 0.9 else 5 for _ in range(n)]
    order = list(range(n))
    if rng.random() < 0.5:
        rng.shuffle(order)
    strides, step = [0] * n, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1) * (2 if rng.random() < 0.15 else 1)
    for d in range(n):
        if sizes[d] == 1 and rng.random() < 0.3:
            strides[d] = rng.choice([0, 1, 7])  # never walked, but views may keep it
        elif rng.random() < 0.08:
            strides[d] = 0
    return sizes, strides, rng.choice([0, 0, 1, 3])


def factors(rng, n):
    """A shape of n elements."""
    if n == 0:
        return rng.choice([[0], [0, 3], [2, 0], [3, 0, 2], [-1, 5], [0, -1]])
    shape = []
    while n > 1:
        f = rng.choice([f for f in range(2, n + 1) if n % f == 0])
        shape.append(f)
        n //= f
    for _ in range(rng.choice([0, 0, 1, 2])):
        shape.insert(rng.randint(0, len(shape)), 1)
    rng.shuffle(shape)
    if shape and rng.random() < 0.25:
        shape[rng.randrange(len(shape))] = -1
    return shape


def random_cases(w):
    w.comment("random layouts")
    for i in range(100):
        sizes, strides, offset = layout(RNG)
        n = len(sizes)
        room = offset + 1 + sum((s - 1) * t for s, t in zip(sizes, strides) if s)
        t = torch.arange(room).to(RNG.choice([torch.float32, torch.int16, torch.float64]))
        w.tensor("v%d" % i, t.as_strided(sizes, strides, offset))
        me = "$v%d" % i
        numel = 1
        for s in sizes:
            numel *= s

        def dim(extra=0):
            return RNG.randint(-n - extra, n - 1 + extra) if n + extra else 0

        shape = factors(RNG, numel)
        w.case("view", "%s, %s" % (me, shape), "view")
        w.case("view", "%s, %s" % (me, list(sizes)), "view")
        w.case("reshape", "%s, %s" % (me, shape))
        w.case("_unsafe_view", "%s, %s" % (me, factors(RNG, numel)), "view")
        w.case("flatten.using_ints", "%s, %d, %d" % (me, dim(), dim()))
        order = list(range(n))
        RNG.shuffle(order)
        w.case("permute", "%s, %s" % (me, order), "view")
        w.case("transpose.int", "%s, %d, %d" % (me, dim(), dim()), "view")
        w.case("t", me, "view")
        w.case("squeeze", me, "view")
        w.case("squeeze.dim", "%s, %d" % (me, dim()), "view")
        w.case("squeeze.dims", "%s, %s" % (me, RNG.sample(range(n), RNG.randint(0, n))), "view")
        w.case("unsqueeze", "%s, %d" % (me, RNG.randint(-n - 1, n)), "view")
        wider = [RNG.choice([-1, s, s, 1 if s == 1 else s, 4 if s == 1 else s]) for s in sizes]
        w.case("expand", "%s, %s" % (me, [RNG.choice([1, 2, 0]) for _ in range(RNG.randint(0, 2))] + wider),
               "view")
        if n:
            d = dim()
            size = sizes[d]
            w.case("select.int", "%s, %d, %d" % (me, d, RNG.randint(-size - 1, size)), "view")
            bounds = [RNG.choice(["None", str(RNG.randint(-size - 2, size + 2))]) for _ in range(2)]
            w.case("slice.Tensor", "%s, %d, %s, %s, %d" % (me, d, *bounds, RNG.choice([1, 1, 2, 3])), "view")
            w.case("narrow", "%s, %d, %d, %d" % (me, d, RNG.randint(-size, size), RNG.randint(0, size)), "view")
            w.case("split.Tensor", "%s, %d, %d" % (me, RNG.randint(0, 3), d), "view")
            w.case("chunk", "%s, %d, %d" % (me, RNG.randint(1, 4), d), "view")
            w.case("unbind.int", "%s, %d" % (me, d), "view")
            w.case("unfold", "%s, %d, %d, %d" % (me, d, RNG.randint(0, size + 1), RNG.randint(1, 3)), "view")
            cut = RNG.randint(0, size)
            w.case("split_with_sizes", "%s, [%d, %d], %d" % (me, cut, size - cut, d), "view")
        if n >= 2:
            a, b = RNG.sample(range(n), 2)
            w.case("diagonal", "%s, %d, %d, %d" % (me, RNG.randint(-3, 3), a, b - n), "view")
            w.case("movedim.intlist", "%s, [%d, %d], [%d, %d]" % (me, a, b, b, RNG.choice([a, a - n])), "view")
            w.case("movedim.int", "%s, %d, %d" % (me, a, b), "view")
        if n != 1:
            w.case("mT", me, "view")
        w.case("detach", me, "view")
        w.case("alias", me, "view")


def in_place(w):
    w.comment("in place")
    for t in ("f32[2,3]", "f32[1,3].strided", "f32[3,1,2].t", "f32[]", "i64[0,2]", "f32[1]"):
        w.case("t_", t, "same")
        w.case("transpose_", t + ", 0, -1", "same")
        w.case("squeeze_", t, "same")
        w.case("squeeze_.dim", t + ", 0", "same")
        w.case("squeeze_.dims", t + ", [0, -1]", "same")
        w.case("unsqueeze_", t + ", 0", "same")
        w.case("unsqueeze_", t + ", -1", "same")
    w.case("as_strided_", "f32[6], [2, 2], [2, 1], 1", "same")
    w.case("as_strided_", "f32[6], [9], [1]")
    w.comment("set_: a storage under other sizes")
    w.tensor("held", torch.arange(1.0, 7.0)[1:])
    for args in ("$held.storage, 1, [2, 2], [2, 1]", "$held.storage, 0, [2, 3]", "$held.storage, 5, [], []", "$held.storage, 2, [3, 4], [1, 0]", "$held.storage, 6, [0], [1]"):
        w.case("set_.source_Storage_storage_offset", "f32[2,2], " + args, "same")
    w.case("set_.source_Storage", "f32[2,2], $held.storage", "same")
    w.comment("resize_")
    w.case("resize_", "f32[6], [2, 3]", "same")
    w.case("resize_", "f32[2,3], [2]", "same")
    w.case("resize_", "f32[2,3].t, [2, 3]", "same")
    w.case("resize_", "f32[2], [3, 0]", "same values=no")
    w.case("resize_", "f32[2,3].t, [3]", "same")
    w.case("resize_", "f32[24], [1, 2, 3, 4], memory_format=channels_last", "same")


def special(w):
    w.comment("corners")
    for shape in ("[]", "[1]", "[1,1]", "[-1]", "[1,-1,1]", "[2]", "[0]"):
        w.case("view", "f32[], " + shape, "view")
    for shape in ("[1]", "[2,1]", "[]", "[0]", "[3,2]"):
        w.case("expand", "f32[], " + shape, "view")
    w.case("_reshape_alias", "f32[2,3], [6], [1]", "view")
    w.case("_reshape_alias", "f32[2,3], [3,2], [1,3]", "view")
    for args in ("[2,2], [1,1], 1", "[0], [1], 9", "[], []", "[2], [2]", "[3], [0], 2"):
        w.case("as_strided", "f32[4], " + args, "view")
    w.case("view_as", "f32[6], f32[2,3]", "view")
    w.case("expand_as", "f32[3], f32[2,3]", "view")
    w.case("slice.Tensor", "f32[7], 0, -9223372036854775808, 9223372036854775807", "view")
    w.case("select.int", "f32[3], 0, -9223372036854775808")
    w.case("unfold", "f32[], 0, 1, 1", "view")
    w.case("unfold", "f32[], 0, 0, 1", "view")
    w.case("chunk", "f32[0,2], 3", "view")
    w.case("split_with_sizes", "f32[0,2], []")
    w.case("unbind.int", "f32[0,3]")
    w.case("unbind.int", "f32[2,0]", "view")


def refusals(w):
    w.comment("refusals")
    for op, args in (
            ("view", "f32[2,3], [-2, 3]"), ("view", "f32[2,3], [-1, -1]"), ("view", "f32[2,3], [7]"),
            ("view", "f32[2,0], [0, -1]"), ("view", "f32[2,3].t, [6]"), ("view", "f32[2,3], [-1, 4]"),
            ("view", "f32[2,3], [1099511627776, 1099511627776]"), ("view_as", "f32[6], f32[4]"),
            ("reshape", "f32[2,3].t, [-2]"), ("reshape", "f32[2,3], [4]"),
            ("_unsafe_view", "f32[2,3].t, [6]"),
            ("expand", "f32[1,3], [-1, 2, 3]"), ("expand", "f32[2,3], [2, 4]"), ("expand_as", "f32[2], f32[3]"),
            ("permute", "f32[2,3], [0, 1, 2]"), ("permute", "f32[2,3], [0, 0]"), ("permute", "f32[2,3], [0, 5]"),
            ("t", "f32[2,3,4]"), ("transpose.int", "f32[], 0, 1"), ("transpose.int", "f32[2,3], 0, 2"),
            ("squeeze.dims", "f32[1,3,1], [0, 0]"), ("squeeze.dim", "f32[1,3], 5"),
            ("squeeze.dims", "f32[1,3], [5]"), ("unsqueeze", "f32[1,3], 5"), ("unsqueeze", "f32[1,3], -4"),
            ("select.int", "f32[], 0, 0"), ("select.int", "f32[2,3], 0, 5"), ("select.int", "f32[2,3], 1, -4"),
            ("slice.Tensor", "f32[], 0"), ("slice.Tensor", "f32[3], 0, 0, 3, 0"), ("slice.Tensor", "f32[3], 1"),
            ("split.Tensor", "f32[], 1"), ("split.Tensor", "f32[3], -1"), ("split.Tensor", "f32[3], 0"),
            ("split_with_sizes", "f32[], [1]"), ("split_with_sizes", "f32[3], [-1, 4]"),
            ("split_with_sizes", "f32[3], [1, 1]"), ("unbind.int", "f32[]"), ("unbind.int", "f32[2], 1"),
            ("flatten.using_ints", "f32[2,3,4], 1, 0"), ("flatten.using_ints", "f32[2,3,4], 0, 5"),
            ("narrow", "f32[], 0, 0, 1"), ("narrow", "f32[3], 0, 0, -1"), ("narrow", "f32[3], 0, 5, 1"),
            ("narrow", "f32[3], 0, 2, 5"), ("narrow", "f32[3], 2, 0, 1"),
            ("chunk", "f32[], 2"), ("chunk", "f32[3], 0"), ("chunk", "f32[3], 2, 1"),
            ("diagonal", "f32[2,3], 0, 0, 0"), ("diagonal", "f32[3]"),
            ("unfold", "f32[3], 0, 5, 1"), ("unfold", "f32[3], 0, 2, 0"), ("unfold", "f32[3], 0, -1, 1"),
            ("unfold", "f32[], 0, 2, 1"), ("unfold", "f32[3], 1, 2, 1"),
            ("mT", "f32[3]"), ("movedim.intlist", "f32[2,3,4], [0, 1], [1]"),
            ("movedim.intlist", "f32[2,3,4], [0, 0], [1, 2]"), ("movedim.intlist", "f32[2,3,4], [0, 1], [1, 1]"),
            ("movedim.intlist", "f32[2,3,4], [0, 7], [1, 1]"),
            ("as_strided", "f32[3], [2], [1, 1]"), ("as_strided", "f32[3], [2], [-1]"),
            ("as_strided", "f32[4], [5], [1]"), ("as_strided", "f32[4], [2], [1], -1"),
            ("expand", "f32[1,2,5], [2, 5]"), ("expand", "i64[1,2], [2]")):
        w.case(op, args)
    # What the reference refuses in words that do not say what is wrong, or does not refuse.
    w.refuse("expand", "f32[1,3], [-2, 3]",
             "RuntimeError: Trying to create tensor with negative dimension -2: [-2, 3]")
    w.refuse("expand", "f32[], [-1]", "RuntimeError: The expanded size of the tensor (-1) isn't allowed in a "
                                      "leading, non-existing dimension 0")
    w.refuse("as_strided", "f32[3], [-2], [1]",
             "RuntimeError: Trying to create tensor with negative dimension -2: [-2]")
    w.refuse("_reshape_alias", "f32[2,3], [7], [1]",
             "RuntimeError: setStorage: sizes [7], strides [1], storage offset 0, and itemsize 4 requiring a "
             "storage size of 28 are out of bounds for storage of size 24")


with Writer("view") as writer:
    for part in (random_cases, in_place, special, refusals):
        part(writer)
