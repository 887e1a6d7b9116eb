#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Elementwise operators: values at special points, promotion, layouts, output tensors, refusals."""

import random

import torch

from literal import DTYPES, SHORT, Writer, vector

inf, nan = float("inf"), float("nan")
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.0, -7.0, 1e-3, 100.0, inf, -inf, nan]
OTHER = [1.0, 0.0, -0.0, 2.0, -0.5, 0.75, -3.0, 2.0, 3.0, 1e3, -inf, inf, 1.0, nan]
WHOLE = [0, 1, -1, 7, -7, 5, 100, -100, 127, -128, 3, 2]
WHOLE_OTHER = [3, -1, 7, 2, 2, -3, -7, 7, -1, -1, 1, 127]


def first(dtype):
    if dtype.is_complex:
        return vector(dtype, [0.5, -1.0, 2.0, -3.5, 0.25, 1.0, 0.0, 4.0])
    return vector(dtype, REAL if dtype.is_floating_point else WHOLE)


def second(dtype):
    if dtype.is_complex:
        return vector(dtype, [1.5, 1.0, -2.0, 0.5, -0.75, 2.0, 3.0, 1.0])
    return vector(dtype, OTHER if dtype.is_floating_point else WHOLE_OTHER)


def tolerance(dtype, op):
    if dtype.is_complex and op in ("mul", "div", "reciprocal", "exp", "log", "sigmoid", "tanh", "sqrt", "rsqrt"):
        return "rtol=1e-6 atol=1e-6" if dtype == torch.complex64 else "rtol=1e-14 atol=1e-14"
    if op in ("maximum", "minimum") or (op == "neg" and dtype.is_complex):
        return "ulp=0"  # the sign of a zero is nobody's business
    if op in ("exp", "log", "sigmoid", "tanh", "rsqrt"):
        return "ulp=3" if dtype in (torch.float32, torch.float64) else "ulp=1"
    return ""


def values(w):
    w.comment("values")
    for dtype, short in SHORT.items():
        w.tensor("a_" + short, first(dtype))
        w.tensor("b_" + short, second(dtype))
    for op in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "minimum", "eq.Tensor",
               "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor"):
        for dtype, short in SHORT.items():
            w.case(op, "$a_%s, $b_%s" % (short, short), tolerance(dtype, op.split(".")[0]))
    for short in SHORT.values():
        alpha = {"bool": "True", "c64": "1.5-1j", "c128": "2j"}.get(short, "2.5" if "f" in short else "3")
        options = "rtol=1e-6 atol=1e-6" if short[0] == "c" else "ulp=1" if "f" in short else ""
        for op in ("add.Tensor", "sub.Tensor"):
            w.case(op, "$a_%s, $b_%s, alpha=%s" % (short, short, alpha), options)
    for short in SHORT.values():
        if short not in ("bool", "c64", "c128"):
            divisor = "$b_" + short
            for mode in ("'trunc'", "'floor'", "None"):
                w.case("div.Tensor_mode", "$a_%s, %s, rounding_mode=%s" % (short, divisor, mode))
                w.case("div.Scalar_mode", "$a_%s, 3, rounding_mode=%s" % (short, mode))
                w.case("div.Scalar_mode", "$a_%s, -0.7, rounding_mode=%s" % (short, mode), "ulp=1")
    w.tensor("lowest", torch.tensor([-2**63, 5], dtype=torch.int64))
    w.tensor("minus", torch.tensor([-1, -1], dtype=torch.int64))
    w.case("div.Tensor_mode", "$lowest, $minus, rounding_mode='floor'")
    # The reference dies here; its floor wraps, so trunc does.
    w.lines.append("div.Tensor_mode | $lowest, $minus, rounding_mode='trunc' | i64[2](1)+0 | "
                   "-9223372036854775808 -5")
    for mode in ("'trunc'", "'floor'"):
        w.case("div.Tensor_mode", "$a_i32, i32[12]=0, rounding_mode=" + mode, "cpu")
        w.case("div.Scalar_mode", "$a_u8, 256, rounding_mode=" + mode, "cpu")
        w.case("div.Tensor_mode", "$a_f32, f32[14]=0, rounding_mode=" + mode)
    for op in ("neg", "abs", "relu", "exp", "log", "sigmoid", "tanh", "sqrt", "rsqrt", "reciprocal",
               "logical_not"):
        for dtype, short in SHORT.items():
            if op == "abs" and dtype.is_complex:
                continue
            name = "a_" + short
            if dtype.is_floating_point:
                name = "m_" + short
                if name not in w.views:
                    w.tensor(name, torch.tensor(REAL + [-0.1, -20.0, 20.0, 88.0, -90.0, 0.3, 1e-30, 1e30, 60.5,
                                                        -1e-8, 0.7, 5.5, 11.0]).to(dtype))
            w.case(op, "$" + name, tolerance(dtype, op))
    w.tensor("c", torch.tensor([True, False, True, True, False]))
    for dtype, short in SHORT.items():
        w.case("where.self", "$c, %s[5], %s[5]=1" % (short, short))
    w.case("where.self", "u8[5], f32[5], f32[5]=1")


def promotion(w):
    w.comment("promotion")
    for a in DTYPES:
        for b in DTYPES:
            options = "rtol=1e-6 atol=1e-6" if "c" in a + b else ""
            w.case("add.Tensor", "%s[3], %s[3]" % (a, b))
            w.case("mul.Tensor", "%s[3], %s[]" % (a, b), options)
            w.case("div.Tensor", "%s[], %s[3]=2" % (a, b), options or "ulp=1")
            w.case("eq.Tensor", "%s[4], %s[4]" % (a, b))
            w.case("where.self", "bool[3], %s[3], %s[]" % (a, b))
        for number in ("3", "1.5", "True", "0.1", "1j", "300"):
            for op in ("add.Scalar", "mul.Scalar", "div.Scalar", "eq.Scalar"):
                w.case(op, "%s[4], %s" % (a, number), "rtol=1e-6 atol=1e-6" if number == "1j" or a[0] == "c"
                       else "ulp=1" if op == "div.Scalar" else "")
            w.case("add.Scalar", "%s[], %s" % (a, number))
            w.case("sub.Scalar", "%s[2], %s" % (a, number))
            w.case("lt.Scalar", "%s[4], %s" % (a, number))
    for a, b, c in (("i64[3]", "f16[3]", ""), ("i64[3]=2049", "f16[3]", ""), ("f64[3]=0.1", "f16[]", ""),
                    ("f16[3]", "f32[]=0.1", ""), ("bf16[3]", "f64[]=0.1", "")):
        for op in ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "eq.Tensor", "lt.Tensor"):
            w.case(op, "%s, %s" % (a, b), c)


def random_layout(rng, sizes):
    """A tensor of these sizes in some layout: (sizes, strides, offset, storage size)."""
    n = len(sizes)
    order = list(range(n))
    if rng.random() < 0.6:
        rng.shuffle(order)
    strides, step = [0] * n, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1) * (2 if rng.random() < 0.15 else 1)
    for d in range(n):
        if rng.random() < 0.1:
            strides[d] = 0
        elif sizes[d] == 1 and rng.random() < 0.2:
            strides[d] = rng.choice([1, 5, 7])
    offset = rng.choice([0, 0, 0, 3])
    room = offset + 1 + sum((s - 1) * t for s, t in zip(sizes, strides)) if all(sizes) else offset + 1
    return strides, offset, max(room, 1)


def layouts(w):
    w.comment("layouts and broadcasting")
    rng = random.Random(2)
    for i in range(260):
        n = rng.randint(0, 4)
        sizes = [rng.choice([1, 2, 3, 4]) if rng.random() < 0.93 else 0 for _ in range(n)]
        names = []
        for k in range(rng.choice([1, 2, 2, 2, 3])):
            own = [1 if rng.random() < 0.2 else s for s in sizes]
            own = own[rng.randint(0, n):] if rng.random() < 0.25 else own
            dtype = rng.choice([torch.float32, torch.float32, torch.int16, torch.float64])
            if k == 0 and i % 3 == 2:
                dtype = torch.bool
            strides, offset, room = random_layout(rng, own)
            storage = (torch.arange(room) % 7 - 3).to(dtype)
            name = "l%d_%d" % (i, k)
            w.tensor(name, storage.as_strided(own, strides, offset))
            names.append("$" + name)
        if len(names) == 1:
            w.case("logical_not" if i % 3 == 2 else "neg", names[0])
        elif len(names) == 3 and i % 3 == 2:
            w.case("where.self", ", ".join(names))
        else:
            w.case("add.Tensor", ", ".join(names[:2]))
            w.case("lt.Tensor", ", ".join(names[:2]))
    for a, b in (("f32[2,3,4,5].cl", "f32[2,3,4,5].cl"), ("f32[2,3,4,5].cl", "f32[3,1,1]"),
                 ("f32[2,3,4,5]", "f32[2,3,4,5].cl"), ("f32[2,3,1,1].cl", "f32[2,3,1,1]"),
                 ("f32[2,3,2,2,2].cl", "f32[2,3,2,2,2].cl"), ("f32[2,1,1,1].cl", "f32[2,1,1,1].cl")):
        w.case("add.Tensor", "%s, %s" % (a, b))
    for a in ("f32[2,3,4,5].cl", "f32[3,4].t", "f32[4].strided", "f32[3,4].expanded", "f32[0,1]", "f32[1,0]"):
        w.case("mul.Scalar", a + ", 2")
        w.case("neg", a)
    w.case("add.Tensor", "f32[300].strided, f32[300]")
    w.case("add.Tensor", "f32[3,200].t, i32[200]")
    w.case("add.Tensor", "f16[70,3], f64[3]")
    w.case("mul.Tensor", "f64[2,600].t, f32[600]")


def outputs(w):
    w.comment("given outputs")
    for out in ("f32[2,3]", "f32[3,2].t", "f32[0]", "f32[5]", "f64[2,3]", "i64[2,3]", "f16[2,3]", "bool[2,3]",
                "c64[2,3]", "f32[2,3].strided", "f32[2,3].expanded"):
        w.case("add.out", "f32[2,3], f32[3], out=" + out)
        w.case("lt.Tensor_out", "f32[2,3], f32[3], out=" + out)
        w.case("add.out", "f32[3,2].t, f32[3], out=" + out)
        w.case("exp.out", "i32[2,3], out=" + out, "rtol=1e-6" if out.startswith("f64") else "ulp=3")
        if out.startswith("f32"):  # the reference is stricter here than elsewhere
            w.case("add.Scalar_out", "f32[2,3], 2, out=" + out)
            w.case("where.self_out", "bool[3], f32[2,3], f32[], out=" + out)
        w.case("div.out_mode", "f32[2,3], f32[3], rounding_mode='floor', out=" + out)
    for self in ("f32[2,3]", "f64[2,3].t", "i64[2,3]", "u8[2,3]", "bool[2,3]", "f16[2,3]", "f32[3]", "f32[1,3]"):
        for other in ("f32[2,3]", "i64[3]", "bool[]", "c64[2,3]", "f64[3]"):
            w.case("add_.Tensor", "%s, %s" % (self, other), "same")
            w.case("mul_.Tensor", "%s, %s" % (self, other), "same")
            w.case("div_.Tensor", "%s, %s" % (self, other), "same ulp=1")
            w.case("eq_.Tensor", "%s, %s" % (self, other), "same")
            if "c64" not in other or "2,3" in self:
                w.case("gt_.Tensor", "%s, %s" % (self, other), "same")
        for number in ("1", "1.5", "True"):
            w.case("add_.Scalar", "%s, %s" % (self, number), "same")
            w.case("div_.Scalar", "%s, %s" % (self, number), "same ulp=1")
            w.case("div_.Scalar_mode", "%s, %s, rounding_mode='floor'" % (self, number), "same")
            w.case("le_.Scalar", "%s, %s" % (self, number), "same")
        for op in ("neg_", "relu_", "exp_", "sigmoid_", "logical_not_", "abs_"):
            w.case(op, self, "same ulp=3")


def overlap(w):
    w.comment("shared memory")
    w.tensor("m", torch.arange(16, dtype=torch.float32))
    w.view("rows", "m", [4, 4], [4, 1])
    w.view("cols", "m", [4, 4], [1, 4])
    w.view("upper", "m", [2, 4], [4, 1])
    w.view("lower", "m", [2, 4], [4, 1], 8)
    w.view("middle", "m", [2, 4], [4, 1], 4)
    w.view("column0", "m", [4], [4])
    w.view("column1", "m", [4], [4], 1)
    w.view("left", "m", [4, 2], [4, 1])
    w.view("right", "m", [4, 2], [4, 1], 2)
    w.view("again", "m", [4, 4], [4, 1])
    w.view("repeated", "m", [4, 4], [0, 1])
    w.view("one", "m", [1, 4], [0, 1])
    for a, b in (("rows", "cols"), ("rows", "again"), ("upper", "lower"), ("upper", "middle"),
                 ("column0", "column1"), ("left", "right"), ("repeated", "rows"), ("one", "one"),
                 ("upper", "column0")):
        w.case("add_.Tensor", "$%s, $%s" % (a, b), "same")
        w.case("add.out", "$%s, $%s, out=$%s" % (b, b, a))
        w.case("neg.out", "$%s, out=$%s" % (b, a))
    # The reference does not see these, and its results depend on the order of its loop.
    row = " ".join(float(i + i % 4).hex() for i in range(16))
    w.lines.append("add_.Tensor | $rows, $repeated | f32[4,4](4,1)+0 | %s | same" % row)
    row = " ".join(float(-(i % 4)).hex() for i in range(16))
    w.lines.append("neg.out | $repeated, out=$rows | f32[4,4](4,1)+0 | %s | ulp=0" % row)
    w.view("odd", "m", [3], [2], 1)
    w.view("next", "m", [3], [2], 3)
    w.lines.append("add_.Tensor | $next, $odd | f32[3](2)+3 | 0x1p+2 0x1p+3 0x1.8p+3 | same")
    w.view("slid", "m", [3, 3], [2, 2])
    w.refuse("neg_", "$slid", "RuntimeError: unsupported operation: more than one element of the written-to "
             "tensor refers to a single memory location.")


def refusals(w):
    w.comment("refusals")
    for a, b in (("f32[2,3]", "f32[2,4]"), ("f32[3]", "f32[4]"), ("f32[2,3,4]", "f32[2,1,5]"),
                 ("f32[0]", "f32[2]"), ("f32[2,3]", "f32[4,2,3,1]")):
        w.case("add.Tensor", "%s, %s" % (a, b))
        w.case("add.out", "%s, %s, out=f32[2]" % (a, b))
        w.case("add_.Tensor", "%s, %s" % (a, b))
        w.case("where.self", "bool[2], %s, %s" % (a, b))
    for alpha in ("True", "1.5", "1j"):
        for a in ("bool[2]", "i64[2]", "f32[2]", "c64[2]"):
            w.case("add.Tensor", "%s, %s, alpha=%s" % (a, a, alpha), "rtol=1e-6")
            w.case("add.Scalar", "%s, 2, %s" % (a, alpha), "rtol=1e-6")
            if a != "bool[2]":
                w.case("sub.Tensor", "%s, %s, alpha=%s" % (a, a, alpha), "rtol=1e-6")
    for a, b in (("bool[2]", "bool[2]"), ("bool[2]", "i64[2]"), ("f32[2]", "bool[2]")):
        w.case("sub.Tensor", "%s, %s" % (a, b))
    for a, b in (("bool[2]", "True"), ("bool[2]", "1"), ("i64[2]", "True")):
        w.case("sub.Scalar", "%s, %s" % (a, b))
    w.case("div.Tensor_mode", "f32[2], f32[2], rounding_mode='up'")
    w.case("where.self", "f32[2], f32[2], f32[2]")
    w.case("where.self", "i64[2], f32[2], f32[2]")
    mixed = ("RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
             "meta and cpu!")
    for op in ("add.Tensor", "add_.Tensor", "lt.Tensor", "maximum"):
        w.lines.append("%s | f32[2], meta f32[2] | %s" % (op, mixed))
        w.lines.append("%s | meta f32[2], f32[2] | %s" % (op, mixed))
        w.lines.append("%s | f32[2], meta f32[] | %s" % (op, mixed))


with Writer("pointwise") as writer:
    for part in (values, promotion, layouts, outputs, overlap, refusals):
        part(writer)
