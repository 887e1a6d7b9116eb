# SPDX-License-Identifier: MIT
"""Golden data of the gradients of convolutions: data/conv_backward.txt."""

import torch

from literal import Writer, parse

CLOSE = "rtol=2e-5 atol=2e-5"
HALF = "rtol=1e-2 atol=5e-2"
ALL = "[True,True,True]"


def result_sizes(x, w, lists, transposed, groups):
    stride, padding, dilation, more = lists
    return list(torch.ops.aten.convolution(parse(x).float(), parse(w).float(), None, stride, padding, dilation, transposed, more,
                                           groups).shape)


def args(x, w, stride=(1,), padding=(0,), dilation=(1,), transposed=False, output_padding=(0,), groups=1, mask=ALL, how="",
         bias=True):
    lists = [list(v) for v in (stride, padding, dilation, output_padding)]
    sizes = result_sizes(x, w, lists, transposed, groups)
    shown = [str(v).replace(" ", "") for v in lists]
    grad = "%s[%s]%s" % (x.split("[")[0], ",".join(map(str, sizes)), how)
    return "%s, %s, %s, %s, %s, %s, %s, %s, %s, %d, %s" % (
        grad, x, w, "[%d]" % sizes[1] if bias else "None", shown[0], shown[1], shown[2], transposed, shown[3], groups, mask)


def shapes(w):
    w.comment("dimensions, strides, paddings, dilations, groups")
    for x, k, n in (("[2,4,7]", "[3]", 1), ("[2,4,5,4]", "[3,2]", 2), ("[1,4,4,3,2]", "[2,3,2]", 3)):
        kernel = k[1:-1]
        for groups in (1, 2, 4):
            weight, turned = "f32[4,%d,%s]" % (4 // groups, kernel), "f32[4,2,%s]" % kernel
            for stride, padding, dilation in (((1,), (0,), (1,)), ((2,), (1,), (1,)), ((1,), (1,), (2,)), ((3,), (1,), (1,)),
                                              (tuple(range(1, n + 1)), tuple(range(n)), tuple(range(1, n + 1))[::-1])):
                if n == 3 and (groups == 4 or padding == (0,)):
                    continue
                w.case("convolution_backward", args("f32" + x, weight, stride, padding, dilation, groups=groups), CLOSE)
                if groups < 4 and (n < 3 or stride != (3,)):
                    w.case("convolution_backward", args("f32" + x, turned, stride, padding, dilation, True, (0,), groups), CLOSE)
        w.case("convolution_backward", args("f32" + x, "f32[4,3,%s]" % kernel, (2,), (1,), (1,), True, (1,)), CLOSE)
        w.case("convolution_backward", args("f32" + x, "f32[4,1,%s]" % kernel, (3,), (1,), (2,), True, (2,), 4), CLOSE)
        w.case("convolution_backward", args("f32" + x, "f32[8,1,%s]" % kernel, (2,), (1,), groups=4), CLOSE)
        ones = ",".join("1" * n)
        for stride in (1, 2):
            w.case("convolution_backward", args("f32" + x, "f32[6,4,%s]" % ones, (stride,)), CLOSE)
            w.case("convolution_backward", args("f32" + x, "f32[6,2,%s]" % ones, (stride,), groups=2), CLOSE)
            w.case("convolution_backward", args("f32" + x, "f32[4,2,%s]" % ones, (stride,), transposed=True, groups=2), CLOSE)
        w.case("convolution_backward", args("f32" + x, "f32[6,4,%s]" % ones, (1,), (1,)), CLOSE)
    w.case("convolution_backward", args("f32[1,20,9,9]", "f32[2,20,3,3]", (1,), (1,)), "rtol=1e-4 atol=1e-4")


def masks(w):
    w.comment("masks and biases")
    for mask in ("[True,False,False]", "[False,True,False]", "[False,False,True]", "[False,False,False]", "[True,True,False]"):
        # The reference's float32 computes the weight's gradient whenever it computes the bias's.
        w.case("convolution_backward", args("f64[2,2,4,4]", "f64[3,2,2,2]", mask=mask), CLOSE)
        w.case("convolution_backward", args("f64[2,2,3,3]", "f64[2,3,2,2]", (2,), transposed=True, mask=mask), CLOSE)
    w.case("convolution_backward", args("f64[2,2,4,4]", "f64[3,2,2,2]", bias=False), CLOSE)


def dtypes(w):
    w.comment("dtypes")
    for d in ("f64", "f16", "bf16"):
        options = CLOSE if d == "f64" else HALF
        w.case("convolution_backward", args(d + "[2,4,4,4]", d + "[2,4,3,3]", (1,), (1,)), options)
        w.case("convolution_backward", args(d + "[2,4,4,4]", d + "[4,2,3,3]", (2,), (1,), groups=2), options)
        w.case("convolution_backward", args(d + "[2,4,4,4]", d + "[4,2,2,2]", (2,), (1,), transposed=True), options)
        w.case("convolution_backward", args(d + "[2,4,6]", d + "[4,1,3]", (1,), (1,), groups=4), options)


def layouts(w):
    w.comment("layouts; channels last")
    for x in ("f32[2,4,4,3]", "f32[2,4,4,3].cl"):
        for how in ("", ".cl"):
            for k in ("f32[6,4,3,3]", "f32[6,4,3,3].cl"):
                w.case("convolution_backward", args(x, k, (2, 1), (1, 1), how=how), CLOSE)
        for k in ("f32[6,4,1,1]", "f32[6,4,1,1].cl"):
            w.case("convolution_backward", args(x, k, (2,), how=".cl"), CLOSE)
        w.case("convolution_backward", args(x, "f32[6,2,3,3]", (1,), (1,), groups=2), CLOSE)
        w.case("convolution_backward", args(x, "f32[4,1,3,3]", (1,), (1,), groups=4), CLOSE + " strides=no")
        w.case("convolution_backward", args(x, "f32[4,3,3,2].cl", (2, 1), (1, 1), transposed=True), CLOSE)
        w.case("convolution_backward", args(x, "f32[4,3,3,2]", (2, 1), (1, 1), transposed=True, groups=2), CLOSE)
    w.case("convolution_backward", args("f32[1,3,3,3,3].cl", "f32[2,3,2,2,2]", (1,), (1,)), CLOSE + " strides=no")
    for how in (".strided", ".offset", ".expanded", ".t"):
        w.case("convolution_backward", args("f32[2,3,4,4]" + how, "f32[2,3,3,3]"), CLOSE)
        w.case("convolution_backward", args("f32[2,3,4,4]", "f32[2,3,3,3]" + how), CLOSE)
        w.case("convolution_backward", args("f32[2,3,4,4]", "f32[2,3,3,3]", how=how), CLOSE)


def empty(w):
    w.comment("no elements, and kernels that see padding only")
    w.case("convolution_backward", "f32[0,6,3,3], f32[0,4,5,5], f32[6,4,3,3], [6], [1], [0], [1], False, [0], 1, " + ALL)
    w.case("convolution_backward", "f32[0,6,3,3], f32[0,4,5,5], f32[6,4,3,3].cl, [6], [1], [0], [1], False, [0], 1, " + ALL)
    w.case("convolution_backward", "f32[2,0,3,3], f32[2,0,5,5], f32[6,0,3,3], [6], [1], [0], [1], False, [0], 1, " + ALL)
    w.case("convolution_backward", args("f32[1,1,1,1]", "f32[1,1,3,3]", (1,), (3,)), CLOSE)
    w.case("convolution_backward", args("f32[1,2,2,2]", "f32[2,2,2,2]", (5,), transposed=True), CLOSE)
    w.case("convolution_backward", args("f32[1,2,7,7]", "f32[2,2,2,2]", (4,), (1,)), CLOSE)


def refusals(w):
    w.comment("refusals")
    x, k, rest = "f32[2,4,5,5]", "f32[6,4,3,3]", "[6], [1], [0], [1], False, [0], 1, " + ALL
    g = "f32[2,6,3,3]"
    for a in ("%s, %s, %s, [6], [1], [-1], [1], False, [0], 1, " % (g, x, k) + ALL,
              "%s, %s, %s, [6], [0], [0], [1], False, [0], 1, " % (g, x, k) + ALL,
              "%s, %s, %s, [6], [1], [0], [-1], False, [0], 1, " % (g, x, k) + ALL,
              "%s, %s, %s, [6], [1], [0], [1], False, [0], 0, " % (g, x, k) + ALL,
              "%s, %s, %s, [6], [1,1,1], [0], [1], False, [0], 1, " % (g, x, k) + ALL,
              "f32[6,3,3], %s, %s, " % (x, k) + rest, "f64[2,5,3,3], f64[2,4,5,5], f64[6,4,3,3], " + rest,
              "f64[2,6,4,3], f64[2,4,5,5], f64[6,4,3,3], " + rest, "%s, f32[2,3,5,5], %s, " % (g, k) + rest,
              "f32[2,6], f32[2,4], f32[6,4], [6], [1], [0], [1], False, [0], 1, " + ALL,
              "f32[2,6,8,8], %s, f32[4,6,3,3], [6], [1], [0], [1], True, [1], 1, " % x + ALL,
              "i32[2,6,3,3], i32[2,4,5,5], i32[6,4,3,3], " + rest, "i64[2,6,3], i64[2,4,5], i64[6,4,3], " + rest):
        w.case("convolution_backward", a)
    w.comment("which the reference refuses in words that depend on the kernel it would choose")
    found = "RuntimeError: expected scalar type Float but found Double"
    w.refuse("convolution_backward", "f64[2,6,3,3], %s, %s, " % (x, k) + rest, found)
    w.refuse("convolution_backward", "%s, %s, f64[6,4,3,3], " % (g, x) + rest, found)
    w.refuse("convolution_backward", "f32[3,6,3,3], %s, %s, " % (x, k) + rest,
             "RuntimeError: Expected a tensor of dimension 4 and tensor.size[0] == 2 but got: dimension 4 and tensor.size[0] = 3")


with Writer("conv_backward") as writer:
    for part in (shapes, masks, dtypes, layouts, empty, refusals):
        part(writer)
