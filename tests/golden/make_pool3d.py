# SPDX-License-Identifier: MIT
"""Golden data of pooling over three dimensions, of adaptive maxima, and of what is made of them: data/pool3d.txt."""

import torch

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-6"
HALF = "rtol=1e-2 atol=1e-2"
WINDOWS = ("[2]", "[2,1,3]", "[3], [2], [1]", "[3], [2], [1], %s True", "[2], [1,2,1], [0,1,1], %s True", "[2,3,2], [3], [1]")


def windows(w):
    w.comment("windows")
    for sizes in ("[1,2,4,5,4]", "[2,3,4,4]"):
        for window in WINDOWS:
            maximum, mean = window.replace("%s ", "[1], "), window.replace("%s ", "")
            w.case("max_pool3d_with_indices", "f32%s, %s" % (sizes, maximum))
            w.case("avg_pool3d", "f32%s, %s" % (sizes, mean), CLOSE)
        w.case("max_pool3d_with_indices", "f32%s, [2], [1], [1], [2], False" % sizes)
        w.case("avg_pool3d", "f32%s, [3], [2], [1], True, False" % sizes, CLOSE)
        w.case("avg_pool3d", "f32%s, [3], [2], [1], False, True, 5" % sizes, CLOSE)
        w.case("max_pool3d", "f32%s, [2]" % sizes)
    w.tensor("last", torch.arange(2 * 3 * 3 * 3 * 4).reshape(2, 3, 3, 3, 4).float().neg().to(memory_format=torch.channels_last_3d))
    w.tensor("nan", torch.tensor([1.0, float("nan"), 3, 2, float("inf"), float("nan"), -float("inf"), 0]).reshape(1, 1, 2, 2, 2))
    for op, options in (("max_pool3d_with_indices", ""), ("avg_pool3d", CLOSE)):
        w.case(op, "$last, [2]", options)
        w.case(op, "$nan, [2,1,2]", options)
        w.case(op, "$nan, [1,1,2]", options)
        for d in ("f64", "f16", "bf16", "i64", "i32", "u8"):
            if op == "avg_pool3d" and d in ("f16", "bf16", "i32", "u8"):
                continue
            w.case(op, d + "[1,2,4,4,2], [2]", options)
        for how in (".strided", ".offset", ".t", ".expanded"):
            w.case(op, "f32[1,2,2,4,4]%s, [2]" % how, options)
        w.case(op, "f32[0,2,4,4,4], [2]")


def gradients(w):
    w.comment("gradients")
    for sizes, out, window in (("[1,2,4,5,4]", "[1,2,2,2,2]", "[2], [], [0], %sFalse"), ("[2,3,4,4]", "[2,2,2,2]", "[3], [2], [1], %sFalse"),
                               ("[1,2,4,5,4]", "[1,2,2,3,2]", "[2], [], [0], %sTrue")):
        for grad in ("f32" + out, "f32" + out + ".strided"):
            w.case("avg_pool3d_backward", "%s, f32%s, %s, True, None" % (grad, sizes, window % ""), CLOSE)
            w.case("avg_pool3d_backward", "%s, f32%s, %s, False, None" % (grad, sizes, window % ""), CLOSE)
            w.case("avg_pool3d_backward", "%s, f32%s, %s, True, 3" % (grad, sizes, window % ""), CLOSE)
            w.case("max_pool3d_with_indices_backward", "%s, f32%s, %s, i64%s=5" % (grad, sizes, window % "[1], ", out), CLOSE)
    w.case("avg_pool3d_backward", "f64[1,2,2,2,2], f64[1,2,4,4,4], [2], [], [0], False, True, None", CLOSE)
    w.case("max_pool3d_with_indices_backward", "bf16[1,2,2,2,2], bf16[1,2,4,4,4], [2], [], [0], [1], False, i64[1,2,2,2,2]=5", HALF)
    w.case("max_pool3d_with_indices_backward", "f32[2,3,1,1,2], $last, [2], [], [0], [1], False, i64[2,3,1,1,2]=5", CLOSE)
    w.case("avg_pool3d_backward", "f32[2,3,1,1,2], $last, [2], [], [0], False, True, None", CLOSE)


def adaptive(w):
    w.comment("adaptive")
    two = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).float()
    w.tensor("flat", (two * 37 % 29).to(memory_format=torch.channels_last))
    for x in ("f32[2,3,4,5]", "f32[3,4,5]", "$flat", "f64[2,3,4,5].strided", "f16[2,3,4,5]", "bf16[2,3,4,5].t", "f32[0,3,4,5]"):
        for size in ("[2,3]", "[1,1]", "[7,4]", "[0,2]"):
            w.case("adaptive_max_pool2d", x + ", " + size)
    for x in ("f32[2,3,4,5]", "f64[2,3,4,5]", "$flat", "f32[2,3,4,5].strided"):
        w.case("adaptive_max_pool2d_backward", "%s[2,3,2,3], %s, i64[2,3,2,3]=7" % ("f32" if x[0] == "$" else x[:3], x), CLOSE)
    w.case("adaptive_max_pool2d_backward", "bf16[3,2,3], bf16[3,4,5], i64[3,2,3]=7", HALF)
    w.case("adaptive_max_pool2d_backward", "f32[0,3,2,3], f32[0,3,4,5], i64[0,3,2,3]")
    for x in ("f32[2,2,4,3,4]", "f32[2,4,3,4]", "$last", "f64[1,2,4,3,4].strided", "bf16[1,2,4,3,4]", "f32[0,2,4,3,4]"):
        for size in ("[2,3,2]", "[1,1,1]", "[5,1,6]", "[0,2,2]"):
            w.case("adaptive_max_pool3d", x + ", " + size)
            w.case("_adaptive_avg_pool3d", x + ", " + size, HALF if x[0] == "b" else CLOSE)
        w.case("adaptive_avg_pool3d", x + ", [2,1,3]", HALF if x[0] == "b" else CLOSE)
    for x in ("f32[2,2,4,3,4]", "f32[0,2,4,3,4]"):
        w.case("adaptive_avg_pool3d", x + ", [1,1,1]", CLOSE)
    for x, grad in (("f32[1,2,4,3,4]", "f32[1,2,2,3,2]"), ("f64[2,4,3,4]", "f64[2,2,3,2]"), ("$last", "f32[2,3,2,3,2]"),
                    ("bf16[1,2,4,3,4]", "bf16[1,2,2,3,2]")):
        options = HALF if x[0] == "b" else CLOSE
        w.case("_adaptive_avg_pool3d_backward", "%s, %s" % (grad, x), options)
        w.case("adaptive_max_pool3d_backward", "%s, %s, i64%s=5" % (grad, x, grad[grad.index("["):]), options)


def lines(w):
    w.comment("one dimension")
    for x in ("f32[2,3,6]", "f32[3,6]", "f64[2,3,6].strided"):
        for size in ("[4]", "[1]", "[6]"):
            w.case("adaptive_max_pool1d", x + ", " + size)
            w.case("adaptive_avg_pool1d", x + ", " + size, CLOSE)
        for window in ("[2]", "[3], [2], [1]", "[2], [1], [0], [2], True"):
            w.case("max_pool1d_with_indices", x + ", " + window)


def refusals(w):
    w.comment("refusals")
    x = "f32[2,3,4,5,6]"
    for op in ("max_pool3d_with_indices", "avg_pool3d"):
        for rest in ("[2,2]", "[2], [1,1]", "[2], [2], [1,1]", "[2], [0]", "[0], [1]", "[-1], [1]", "[2], [2], [2]", "[2], [2], [-1]",
                     "[7]", "[2], [-1]"):
            w.case(op, x + ", " + rest)
        for other in ("f32[4,5,6]", "f32[2,0,4,5,6]", "f32[2,3,4,5,0]", "bool[2,3,4,5,6]", "c64[2,3,4,5,6]"):
            w.case(op, other + ", [2]")
    w.case("max_pool3d_with_indices", x + ", [2], [2], [0], [0]")
    w.case("max_pool3d_with_indices", x + ", [2], [2], [0], [1,1]")
    w.case("avg_pool3d", x + ", [2], [2], [0], False, True, 0")
    w.case("avg_pool3d", "i32[2,3,4,5,6], [2]")
    g, rest = "f32[2,3,2,2,3]", "[2], [2], [0], "
    for grad, of, places in (("f32[2,3,2,2,2]", x, "i64[2,3,2,2,2]=1"), ("f32[2,2,2,2,3]", x, "i64[2,3,2,2,3]=1"),
                             ("f64[2,3,2,2,3]", x, "i64[2,3,2,2,3]=1"), ("f32[3,2,2,3]", x, "i64[2,3,2,2,3]=1"),
                             ("i32[2,3,2,2,3]", "i32[2,3,4,5,6]", "i64[2,3,2,2,3]=1")):
        # The reference names what it found as what it wants, over three dimensions.
        if "2,2,2]" not in grad:
            w.case("max_pool3d_with_indices_backward", "%s, %s, %s[1], False, %s" % (grad, of, rest, places))
        w.case("avg_pool3d_backward", "%s, %s, %sFalse, True, None" % (grad, of, rest))
    w.case("max_pool3d_with_indices_backward", "%s, %s, %s[1], False, i64[2,3,2,2,2]=1" % (g, x, rest))
    w.case("max_pool3d_with_indices_backward", "%s, %s, %s[1], False, i32[2,3,2,2,3]=1" % (g, x, rest))
    y = "f32[2,3,4,5]"
    for a in (y + ", [2]", y + ", [2,2,2]", "f32[4,5], [2,3]", "f32[2,0,4,5], [2,3]", "f32[2,3,4,0], [2,3]", "i32[2,3,4,5], [2,3]",
              "u8[2,3,4,5], [2,3]", y + ", [-1,2]"):
        w.case("adaptive_max_pool2d", a)
    for a in ("f32[2,3,2,2], %s, i64[2,3,2,3]=1" % y, "f64[2,3,2,3], %s, i64[2,3,2,3]=1" % y, "f32[3,2,3], %s, i64[2,3,2,3]=1" % y,
              "f32[2,3,2,3], %s, i32[2,3,2,3]=1" % y, "f32[2,3,2,0], %s, i64[2,3,2,0]" % y,
              "i32[2,3,2,3], i32[2,3,4,5], i64[2,3,2,3]=1"):
        w.case("adaptive_max_pool2d_backward", a)
    for op in ("adaptive_max_pool3d", "_adaptive_avg_pool3d"):
        for a in (x + ", [2]", "f32[4,5,6], [2,3,2]", "f32[2,0,4,5,6], [2,3,2]", "f32[2,3,4,5,0], [2,3,2]", "i32[2,3,4,5,6], [2,3,2]"):
            w.case(op, a)
    w.case("adaptive_max_pool3d", x + ", [-1,2,2]")
    w.case("adaptive_avg_pool3d", x + ", [-1,2,2]")
    w.case("adaptive_avg_pool3d", x + ", [2,2]")
    for a in ("f64[2,3,2,3,2], " + x, "f32[3,2,3,2], " + x, "f32[2,3,2,3,0], " + x, "i32[2,3,2,3,2], i32[2,3,4,5,6]"):
        w.case("_adaptive_avg_pool3d_backward", a)
        w.case("adaptive_max_pool3d_backward", a + ", i64%s" % a[3:a.index("]") + 1] + ("=1" if "0]" not in a else ""))
    for op in ("adaptive_avg_pool1d", "adaptive_max_pool1d"):
        for a in ("f32[6], [4]", "f32[2,3,6], [4,4]", "f32[2,3,6], [-1]", "i32[2,3,6], [2]", "f32[2,3,0], [2]", "f32[2,3,4,5], [2]"):
            w.case(op, a)
    for a in ("f32[6], [2]", "f32[2,3,6], [2,2]", "f32[2,3,6], [2], [0]", "f32[2,3,6], [2], [2], [2]"):
        w.case("max_pool1d_with_indices", a)


with Writer("pool3d") as writer:
    for part in (windows, gradients, adaptive, lines, refusals):
        part(writer)
