#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Factories, fills, copies and conversions."""

import random

import torch

from literal import DTYPES, SHORT, Writer

inf, nan = float("inf"), float("nan")
NAMES = [str(dtype)[6:] for dtype in SHORT]
NUMBERS = ("0", "1", "-1", "2.5", "True", "300", "-300", "nan", "inf", "1e300", "1j", "-0.5", "255.5",
           "1099511627776", "65504", "1e6")


def factories(w):
    w.comment("factories")
    for sizes in ("[2,3]", "[]", "[0]", "[2,0,3]", "[-1]", "[2,3,4,5]"):
        for op in ("zeros", "ones"):
            w.case(op, sizes)
            for dtype in NAMES if sizes == "[2,3]" else ():
                w.case(op, "%s, dtype=%s" % (sizes, dtype))
        w.case("empty.memory_format", sizes, "values=no")
        for memory in ("contiguous_format", "channels_last", "channels_last_3d"):
            w.case("empty.memory_format", "%s, memory_format=%s" % (sizes, memory), "values=no")
        w.case("empty.memory_format", sizes + ", dtype=int16", "values=no")
        w.case("full", sizes + ", 3")
        w.case("rand", sizes, "values=no")
        w.case("randn", sizes, "values=no")
    w.case("empty.memory_format", "[2,3,4,5,6], memory_format=channels_last_3d", "values=no")
    w.case("empty.memory_format", "[2], memory_format=preserve_format")
    for args in ("[2,3], [1,2]", "[2,3], [3,1]", "[2,3], [0,1]", "[], []", "[2,3], [1]", "[2,0], [5,7]"):
        w.case("empty_strided", args, "values=no")
    for value in NUMBERS:
        w.case("full", "[2], " + value)
        for dtype in NAMES:
            w.case("full", "[2], %s, dtype=%s" % (value, dtype))
        w.case("scalar_tensor", value)
    w.case("scalar_tensor", "5, dtype=int8")


def ranges(w):
    w.comment("arange")
    for args in ("5", "0", "2.5", "-1", "inf", "nan", "True", "1e20", "1j"):
        w.case("arange", args, "ulp=1")
    for args in ("2, 5", "5, 2", "0.5, 3", "-3, 3", "2, 2", "-inf, 0"):
        w.case("arange.start", args, "ulp=1")
    for args in ("0, 5, 2", "5, 0, -2", "0, 1, 0.25", "0, 1, 0.1", "0, 5, 0", "0, 5, -1", "5, 0, 1", "0, 3, nan",
                 "0, 10, inf", "3, 3, -1", "-3, 300, 100", "4611686018427387904, 4611686018427387907, 1",
                 "0.3, 40, 0.7", "10, 0, -3"):
        w.case("arange.start_step", args, "ulp=2")
    for dtype in NAMES:
        w.case("arange", "5, dtype=" + dtype)
        w.case("arange.start_step", "0.9, 5.9, 2.5, dtype=" + dtype, "ulp=2")
        w.case("arange.start_step", "5, 0.5, -1.5, dtype=" + dtype, "ulp=2")
        w.case("arange.start_step", "-3, 300, 100, dtype=" + dtype, "ulp=2")
    w.refuse("arange.start_step", "0, 5, 0.5, dtype=int64", "RuntimeError: step must be nonzero")
    for out in ("f32[0]", "i16[3]", "f64[5]", "f32[3].strided"):
        w.case("arange.start_out", "0, 5, 2, out=" + out)


def likes(w):
    w.comment("like others")
    for a in ("f32[2,3]", "f32[2,3].t", "f32[4].strided", "f32[3,4].expanded", "f32[2,3,4,5].cl", "i8[2]", "f16[]",
              "f32[2,0,3]", "f32[2,3,1,1].cl"):
        for op in ("zeros_like", "ones_like"):
            w.case(op, a)
            w.case(op, a + ", dtype=float64")
            w.case(op, a + ", memory_format=contiguous_format")
            w.case(op, a + ", memory_format=channels_last")
        w.case("empty_like", a, "values=no")
        w.case("empty_like", a + ", dtype=bool", "values=no")
        w.case("full_like", a + ", 2")
        if a[0] == "f":
            w.case("rand_like", a, "values=no")
            w.case("randn_like", a, "values=no")
        w.case("new_empty", a + ", [2,2]", "values=no")
        w.case("new_zeros", a + ", [2,2]")
        w.case("new_ones", a + ", [2,2], dtype=int64")
        w.case("new_full", a + ", [2,2], 7")
        for memory in ("", ", memory_format=contiguous_format", ", memory_format=channels_last",
                       ", memory_format=preserve_format"):
            w.case("clone", a + memory)
        w.case("contiguous", a, "values=no" if "0" in a else "")
    rng = random.Random(6)
    for i in range(60):
        n = rng.randint(1, 4)
        sizes = [rng.choice([1, 2, 3]) if rng.random() < 0.95 else 0 for _ in range(n)]
        order = list(range(n))
        rng.shuffle(order)
        strides, step = [0] * n, 1
        for d in reversed(order):
            strides[d] = step
            step *= max(sizes[d], 1) * (2 if rng.random() < 0.2 else 1)
        for d in range(n):
            if rng.random() < 0.12:
                strides[d] = 0
        room = 1 + sum((s - 1) * t for s, t in zip(sizes, strides)) if all(sizes) else 1
        w.tensor("k%d" % i, torch.arange(room).to(torch.int32).as_strided(sizes, strides))
        w.case("clone", "$k%d" % i)
        w.case("_to_copy", "$k%d, dtype=float32" % i)


def fills(w):
    w.comment("fills")
    for a in DTYPES:
        for value in NUMBERS:
            w.case("fill_.Scalar", "%s[3], %s" % (a, value), "same")
        w.case("fill_.Tensor", a + "[2,3].t, f32[]=3", "same")
        w.case("zero_", a + "[2,3].t", "same")
        w.case("zero_", a + "[4].strided", "same")
    w.case("fill_.Scalar", "f32[4].strided, 2", "same")
    w.case("fill_.Scalar", "f32[3,4].expanded, 2", "same")
    w.case("zero_", "f32[3,4].expanded", "same")
    w.case("fill_.Tensor", "f32[2], f32[2]")
    w.case("fill_.Tensor", "f32[2], f32[1]")
    for op in ("uniform_", "normal_"):
        for a in DTYPES:
            w.case(op, a + "[3]", "values=no same")
        w.case(op, "f32[3,4].expanded")
    w.case("uniform_", "f32[3], 2.0, 1.0")
    w.case("uniform_", "f32[3], nan, 1.0")
    w.case("uniform_", "f32[3], -1e39, 1.0")
    w.case("uniform_", "f32[3], -3e38, 3e38")
    w.case("uniform_", "f16[3], 0.0, 1e6")
    w.case("normal_", "f32[3], 0.0, -1.0")


def copies(w):
    w.comment("copies and conversions")
    real = [0.0, -0.0, 1.5, -1.5, 2.5, 127.0, -128.0, 255.0, 65504.0, 1e-8, 3e38, inf, -inf, nan, 0.1]
    whole = [0, 1, -1, 127, -128, 100, 3]
    for dtype, short in SHORT.items():
        if dtype == torch.bool:
            t = torch.tensor([True, False, True])
        elif dtype.is_complex:
            t = torch.tensor([complex(1.5, -2), 0, complex(0, 1), complex(-3, 0.5)], dtype=dtype)
        elif dtype.is_floating_point:
            t = torch.tensor(real, dtype=torch.float64).to(dtype)
        else:
            t = torch.tensor([v % 256 if short == "u8" else v for v in whole], dtype=dtype)
        w.tensor("s_" + short, t)
        for target in DTYPES.values():
            source = "$s_" + short
            if dtype.is_floating_point and not (target.is_floating_point or target.is_complex
                                                or target == torch.bool):
                source = short + "[20]"  # what an integer cannot hold is undefined in the reference
            w.case("to.dtype", "%s, %s" % (source, str(target)[6:]))
            w.case("copy_", "%s[20], %s" % (SHORT[target], short + "[20]"), "same")
    for a, b in (("f32[2,3]", "f32[3]"), ("f32[2,3].t", "f32[2,1]"), ("f32[2,3]", "f32[]"), ("f32[3]", "f32[2,3]"),
                 ("f32[2]", "f32[3]"), ("f32[2,3]", "f32[2]"), ("f32[3,4].expanded", "f32[3,4]"),
                 ("f32[40,50]", "f32[40,50].t"), ("f64[70,33].t", "f64[70,33]"), ("f16[40,50]", "f16[40,50].t"),
                 ("u8[65,3]", "u8[65,3].t"), ("c128[5,40]", "c128[5,40].t"), ("f32[2,40,50]", "f32[2,40,50].t"),
                 ("i64[600].strided", "f32[600]"), ("f32[600]", "i16[600].strided"), ("f32[1,3]", "f32[1,3]"),
                 ("f32[2,0]", "f32[2,0]"), ("f32[2,0]", "f32[1]"), ("f32[0]", "f32[2]"), ("f32[2,3,4,5].cl", "f32[2,3,4,5]"),
                 ("f32[2,3,4,5]", "f32[5].expanded")):
        w.case("copy_", "%s, %s" % (a, b), "same")
    w.tensor("m", torch.arange(16, dtype=torch.float32))
    w.view("rows", "m", [4, 4], [4, 1])
    w.view("cols", "m", [4, 4], [1, 4])
    w.view("left", "m", [4, 2], [4, 1])
    w.view("shifted", "m", [4, 2], [4, 1], 1)
    w.view("row0", "m", [4], [1])
    w.case("copy_", "$rows, $rows", "same")
    w.case("copy_", "$rows, $cols")
    w.lines.append("copy_ | $left, $shifted | f32[4,2](4,1)+0 | 1 2 5 6 9 10 13 14 | same")
    w.lines.append("copy_ | $shifted, $left | f32[4,2](4,1)+1 | 0 1 4 5 8 9 12 13 | same")
    w.lines.append("copy_ | f32[2], meta f32[2] | NotImplementedError: Cannot copy out of meta tensor; no data!")
    w.lines.append("_to_copy | meta f32[2], device=cpu | NotImplementedError: Cannot copy out of meta tensor; no data!")
    w.lines.append("copy_ | meta f32[2], f32[3] | RuntimeError: The size of tensor a (2) must match the size of "
                   "tensor b (3) at non-singleton dimension 0")
    for a in ("f32[2,3]", "f32[2,3].t", "f32[4].strided", "f32[2,3,4,5].cl"):
        w.case("to.dtype", a + ", float32", "same")
        w.case("to.dtype", a + ", float64")
        w.case("to.dtype", a + ", float32, copy=True")
        w.case("to.dtype", a + ", float32, memory_format=contiguous_format", "same" if a == "f32[2,3]" else "")
        w.case("to.dtype_layout", a, "same")
        w.case("to.dtype_layout", a + ", dtype=int32")
        w.case("to.other", a + ", i8[1]")
        w.case("contiguous", a, "same" if a == "f32[2,3]" else "")
    w.case("contiguous", "f32[2,3].t, memory_format=preserve_format")
    w.case("contiguous", "f32[2,3,4,5], memory_format=channels_last")
    w.case("contiguous", "f32[2,3,4,5].cl, memory_format=channels_last", "same")
    for a in ("f32[]=1.5", "i64[]=-7", "bool[]", "f16[1]=0.1", "c64[1,1]", "bf16[]=3", "u8[]=200"):
        w.case("item", a, "meta=Tensor.item() cannot be called on meta tensors")
    w.case("item", "f32[2]")
    w.case("item", "f32[0]")


with Writer("create") as writer:
    for part in (factories, ranges, likes, fills, copies):
        part(writer)
