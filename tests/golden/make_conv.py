# SPDX-License-Identifier: MIT
"""Golden data of convolutions: data/conv.txt."""

import torch

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-5"
HALF = "rtol=1e-2 atol=2e-2"


def args(x, w, bias="None", stride=(1,), padding=(0,), dilation=(1,), transposed=False, output_padding=(0,), groups=1):
    lists = [str(list(v)).replace(" ", "") for v in (stride, padding, dilation, output_padding)]
    return "%s, %s, %s, %s, %s, %s, %s, %s, %d" % (x, w, bias, lists[0], lists[1], lists[2], transposed, lists[3], groups)


def shapes(w):
    w.comment("dimensions, strides, paddings, dilations, groups")
    for x, k, n in (("[2,4,9]", "[3]", 1), ("[1,4,5,4]", "[3,2]", 2), ("[1,4,3,3,2]", "[2,3,2]", 3)):
        kernel = k[1:-1]
        for groups in (1, 2, 4):
            weight, turned = "f32[4,%d,%s]" % (4 // groups, kernel), "f32[4,%d,%s]" % (2, kernel)
            for stride, padding, dilation in (((1,), (0,), (1,)), ((2,), (1,), (1,)), ((1,), (1,), (2,)), ((3,), (1,), (1,)),
                                              (tuple(range(1, n + 1)), tuple(range(n)), tuple(range(1, n + 1))[::-1])):
                w.case("convolution", args("f32" + x, weight, "f32[4]", stride, padding, dilation, False, (0,), groups), CLOSE)
                if groups < 4 or n == 2:
                    w.case("convolution", args("f32" + x, turned, "f32[%d]" % (2 * groups), stride, padding, dilation, True, (0,),
                                               groups), CLOSE)
        w.case("convolution", args("f32" + x, "f32[4,3,%s]" % kernel, "None", (2,), (1,), (1,), True, (1,)), CLOSE)
        w.case("convolution", args("f32" + x, "f32[4,3,%s]" % kernel, "None", (3,), (1,), (2,), True, (2,)), CLOSE)
        ones = ",".join("1" * n)
        for stride in (1, 2):
            w.case("convolution", args("f32" + x, "f32[6,4,%s]" % ones, "f32[6]", (stride,)), CLOSE)
            w.case("convolution", args("f32" + x, "f32[6,2,%s]" % ones, "f32[6]", (stride,), groups=2), CLOSE)
            w.case("convolution", args("f32" + x, "f32[4,2,%s]" % ones, "f32[4]", (stride,), (0,), (1,), True, (0,), 2), CLOSE)
        w.case("convolution", args("f32" + x, "f32[6,4,%s]" % ones, "None", (1,), (1,)), CLOSE)
    w.case("convolution", args("f32[1,40,12,12]", "f32[3,40,5,5]", "f32[3].strided", (1,), (2,)), CLOSE)
    w.case("convolution", args("f32[1,300,10]", "f32[2,300,9]", "f32[2]", (1,), (4,)), CLOSE)


def dtypes(w):
    w.comment("every dtype")
    for d in ("u8", "i8", "i16", "i32", "i64", "f64"):
        w.case("convolution", args(d + "[2,4,5,5]", d + "[2,4,3,3]", d + "[2]", (1,), (1,)))
        w.case("convolution", args(d + "[2,4,5,5]", d + "[4,2,3,3]", d + "[4]", (2,), (1,), groups=2))
    for d in ("f16", "bf16"):
        w.case("convolution", args(d + "[2,4,5,5]", d + "[2,4,3,3]", d + "[2]", (1,), (1,)), HALF)
        w.case("convolution", args(d + "[2,4,5,5]", d + "[4,2,3,3]", d + "[4]", (2,), (1,), groups=2), HALF)
        w.case("convolution", args(d + "[2,4,5,5]", d + "[4,2,3,3]", d + "[2]", (2,), (1,), transposed=True), HALF)
    w.case("convolution", args("f64[2,4,5,5]", "f64[4,2,3,3]", "f64[2]", (2,), (1,), transposed=True), CLOSE)
    w.case("conv2d", "c64[2,4,5,5], c64[2,4,3,3], c64[2]", CLOSE)
    w.case("conv1d", "c128[2,4,5], c128[2,4,3]", CLOSE)


def layouts(w):
    w.comment("layouts; channels last")
    last = torch.channels_last

    def values(*sizes):
        n = 1
        for s in sizes:
            n *= s
        return ((torch.arange(n) * 37 % 29 - 14).float() / 8).reshape(sizes)

    w.tensor("x", values(2, 4, 4, 3))
    w.tensor("xl", values(2, 4, 4, 3).to(memory_format=last))
    w.tensor("w", values(6, 4, 3, 3))
    w.tensor("wl", values(6, 4, 3, 3).to(memory_format=last))
    w.tensor("g", values(6, 2, 3, 3))
    w.tensor("p", values(6, 4, 1, 1))
    w.tensor("pl", values(6, 4, 1, 1).to(memory_format=last))
    w.tensor("t", values(4, 3, 3, 2))
    w.tensor("tl", values(4, 3, 3, 2).to(memory_format=last))
    w.tensor("x3", values(1, 3, 4, 3, 3).to(memory_format=torch.channels_last_3d))
    w.tensor("w3", values(2, 3, 2, 2, 2))
    w.tensor("one", values(2, 4, 1, 1).to(memory_format=last))
    w.tensor("gray", values(2, 1, 5, 5).to(memory_format=last))
    w.tensor("x1", values(2, 5, 4).transpose(1, 2))
    for x in ("$x", "$xl"):
        for k in ("$w", "$wl"):
            w.case("convolution", args(x, k, "f32[6]", (2, 1), (1, 1)), CLOSE)
        for k in ("$p", "$pl"):
            w.case("convolution", args(x, k, "f32[6]"), CLOSE)
            w.case("convolution", args(x, k, "f32[6]", (2,), (1,)), CLOSE)
        w.case("convolution", args(x, "$g", "f32[6]", (1,), (1,), groups=2), CLOSE)
        for k in ("$t", "$tl"):
            w.case("convolution", args(x, k, "f32[3]", (2, 1), (1, 1), transposed=True), CLOSE)
            w.case("convolution", args(x, k, "f32[6]", (2, 1), (1, 1), transposed=True, groups=2), CLOSE)
    # The reference keeps channels last in three dimensions for float32 with a library, and not for small ones.
    w.case("convolution", args("$x3", "$w3", "f32[2]", (1,), (1,)), CLOSE + " strides=no")
    w.case("convolution", args("$one", "$p"), CLOSE)
    w.case("convolution", args("$gray", "f32[2,1,3,3]"), CLOSE)
    w.case("convolution", args("$x1", "f32[2,4,3]", "f32[2]", (1,), (1,)), CLOSE)
    for how in (".strided", ".offset", ".expanded", ".t"):
        w.case("convolution", args("f32[2,4,5,5]" + how, "f32[4,4,3,3]", "f32[4].strided"), CLOSE)
        w.case("convolution", args("f32[2,4,5,5]", "f32[4,4,3,3]" + how), CLOSE)


def empty(w):
    w.comment("no elements, and kernels that see padding only")
    w.case("convolution", args("f32[0,4,5,5]", "f32[6,4,3,3]", "f32[6]"))
    w.case("convolution", args("f32[2,0,5,5]", "f32[6,0,3,3]"))
    w.case("conv2d", "f32[0,4,5,5], f32[6,4,3,3]")
    w.case("convolution", args("f32[1,1,1,1]", "f32[1,1,3,3]", "f32[1]", (1,), (3,)), CLOSE)
    w.tensor("bad", torch.full((1, 1, 3, 3), float("nan")))
    w.case("convolution", args("$bad", "f32[1,1,2,2]", "None", (1,), (2,)), CLOSE)


def composites(w):
    w.comment("by the number of dimensions, and paddings by name")
    for n, x, k in ((1, "6", "3"), (2, "4,3", "3,2"), (3, "2,3,2", "2,3,2")):
        for lead in ("2,4", "4"):
            for bias in ("None", "f32[4]"):
                w.case("conv%dd" % n, "f32[%s,%s], f32[4,4,%s], %s" % (lead, x, k, bias), CLOSE)
                w.case("conv_transpose%dd%s" % (n, "" if n == 1 else ".input"),
                       "f32[%s,%s], f32[4,2,%s], %s, [2], [1], [1], 2" % (lead, x, k, bias), CLOSE)
            for padding in ("'same'", "'valid'"):
                w.case("conv%dd.padding" % n, "f32[%s,%s], f32[4,4,%s], None, [1], %s" % (lead, x, k, padding), CLOSE)
                w.case("conv%dd.padding" % n, "f32[%s,%s], f32[4,2,%s], f32[4], [1], %s, [%d], 2" %
                       (lead, x, k, padding, 2 if n < 3 else 1), CLOSE)
    w.case("conv2d", "f32[2,4,5,5], f32[6,4,3,3], None, [2,1], [1,0], [1,2]", CLOSE)


def refusals(w):
    w.comment("refusals")
    x, k = "f32[2,4,5,5]", "f32[6,4,3,3]"
    w.refuse("convolution", args(x, k, dilation=(0, 1)), "RuntimeError: dilation should be greater than zero, but got [0, 1]")
    for a in (args(x, k, padding=(-1, 0)), args(x, k, stride=(0, 1)), args(x, k, dilation=(-1, 1)),
              args("f32[2,3,5,5]", k), args("f32[4,5,5]", k), args(x, k, "f32[5]"), args(x, k, "f32[6,1]"),
              args(x, k, groups=2), args(x, k, groups=4), args(x, k, groups=0), args(x, k, groups=-1), args(x, k, groups=7),
              args("f32[2,4,2,2]", k), args("f32[2,4,2]", "f32[6,4,3]"), args("f32[2,4,2,2,2]", "f32[6,4,3,3,1]"),
              args(x, "f32[6,0,3,3]"), args("f32[2,4,0,5]", k, padding=(2, 2)), args("f32[2,4,0,5]", k),
              args(x, k, stride=(1, 1, 1)), args(x, k, padding=(1, 1, 1)), args(x, k, dilation=(2, 2, 2)),
              args(x, k, output_padding=(-1, 0)), args(x, k, output_padding=(0, 0, 0)),
              args(x, "f32[4,6,3,3]", output_padding=(1, 1), transposed=True),
              args(x, "f32[4,6,3,3]", "None", (2, 2), (0, 0), (1, 1), True, (2, 2)),
              args(x, "f32[3,6,3,3]", transposed=True), args(x, "f32[4,6,3,3]", "f32[5]", transposed=True),
              args(x, "f32[4,3,3,3]", "f32[3]", transposed=True, groups=2), args(x, "f32[4,3,3,3]", transposed=True, groups=3),
              args(x, "f32[0,6,3,3]", transposed=True), args("f32[2,4]", "f32[6,4]"), args(x, "f32[]"), args("f32[]", k),
              args("bool[2,4,5,5]", "bool[6,4,3,3]")):
        w.case("convolution", a)
    for op, a in (("conv2d", "f32[5,5], " + k), ("conv1d", "f32[5], f32[6,4,3]"), ("conv3d", "f32[2,4,5], f32[6,4,3,3,3]"),
                  ("conv_transpose2d.input", "f32[5,5], f32[4,6,3,3]"), ("conv_transpose1d", "f32[5], f32[4,6,3]"),
                  ("conv_transpose3d.input", "f32[5,5], f32[4,6,3,3,3]"), ("conv2d", "f32[3,5,5], " + k),
                  ("conv2d", x + ", f32[6,4,3], None, [1,1]"),
                  ("conv2d.padding", x + ", " + k + ", None, [2,2], 'same'"), ("conv2d.padding", x + ", " + k + ", None, [1], 'full'"),
                  ("conv2d.padding", x + ", f32[4,4,3], None, [1,1], 'same'"),
                  ("conv2d.padding", x + ", " + k + ", None, [1,1,1], 'same'"),
                  ("conv2d.padding", x + ", " + k + ", None, [1,1], 'same', [1,1,1]"),
                  ("conv2d.padding", "f32[5,5], " + k + ", None, [1,1], 'same'")):
        w.case(op, a)
    w.comment("which the reference refuses in words that depend on the kernel it would choose")
    w.refuse("convolution", args(x, "f64[6,4,3,3]"), "RuntimeError: expected scalar type Float but found Double")
    w.refuse("convolution", args(x, k, "f64[6]"), "RuntimeError: expected scalar type Float but found Double")
    w.refuse("convolution", args("f64[2,4,5,5]", k), "RuntimeError: expected scalar type Double but found Float")
    w.refuse("convolution", args(x, "f32[4,6,1,1]", padding=(3,), transposed=True),
             "RuntimeError: Given input size per channel: (5 x 5). Calculated output size per channel: (-1 x -1). Output size is "
             "too small")


with Writer("conv") as writer:
    for part in (shapes, dtypes, layouts, empty, composites, refusals):
        part(writer)
