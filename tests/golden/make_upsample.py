# SPDX-License-Identifier: MIT
"""Golden data of upsampling: data/upsample.txt."""

import torch

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-6"
CUBIC = "rtol=1e-4 atol=1e-5"  # the reference computes weights in float32
HALF = "rtol=1e-2 atol=2e-2"
# name, spatial dimensions, whether it has align_corners
OPERATORS = (("upsample_nearest1d", 1, False), ("upsample_nearest2d", 2, False), ("upsample_nearest3d", 3, False),
             ("_upsample_nearest_exact1d", 1, False), ("_upsample_nearest_exact2d", 2, False),
             ("_upsample_nearest_exact3d", 3, False), ("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True),
             ("upsample_trilinear3d", 3, True), ("upsample_bicubic2d", 2, True))
INPUTS = {1: "[2,2,5]", 2: "[1,2,4,5]", 3: "[1,2,2,2,3]"}
SIZES = {1: ("[5]", "[10]", "[3]", "[7]", "[1]"), 2: ("[8,10]", "[4,5]", "[3,7]", "[1,1]", "[5,2]"),
         3: ("[4,4,5]", "[3,2,5]", "[1,3,2]")}
SCALES = {1: ("1.5",), 2: ("2.0, 2.0", "1.7, 0.6", "None, 1.3"), 3: ("1.5, 0.7, 1.2",)}


def gradient(x, size):
    """The sizes of the result."""
    return ",".join(x[1:-1].split(",")[:2] + size[1:-1].split(","))


def one(w, name, n, corners, dtype, x, size, options, scales="", how=""):
    for align in ((", False", ", True") if corners else ("",)):
        rest = align + (", " + scales if scales else "")
        w.case(name, "%s%s%s, %s%s" % (dtype, x, how, size, rest), options)
        w.case(name + "_backward", "%s[%s]%s, %s, %s%s" % (dtype, gradient(x, size), how, size, x, rest),
               CLOSE if not options else options)


def values(w):
    for name, n, corners in OPERATORS:
        w.comment(name)
        x, options = INPUTS[n], CUBIC if "cubic" in name else CLOSE if corners else ""
        for size in SIZES[n][:2 if "exact" in name else 5]:
            one(w, name, n, corners, "f32", x, size, options)
        for scales in SCALES[n]:
            one(w, name, n, corners, "f32", x, SIZES[n][2], options, scales)
        one(w, name, n, corners, "f64", x, SIZES[n][-1], options)
        # The reference rounds the places themselves to these dtypes in some kernels.
        for dtype in ("f16", "bf16"):
            one(w, name, n, corners, dtype, x, SIZES[n][0], HALF)
        if not corners:
            w.case(name, "u8%s, %s" % (x, SIZES[n][0]))
        for how in (".strided", ".offset", ".t") + ((".cl",) if n > 1 else ()):
            w.case(name, "f32%s%s, %s%s" % (x, how, SIZES[n][0], ", False" if corners else ""), options)
            w.case(name + "_backward", "f32[%s]%s, %s, %s%s" % (gradient(x, SIZES[n][1]), how, SIZES[n][1], x,
                                                               ", True" if corners else ""), CLOSE)
        align = ", True" if corners else ""
        w.case(name + ".vec", "f32%s, %s%s, None" % (x, SIZES[n][2], align), options)
        for factor in ("2.0", "1.3", "0.7"):
            w.case(name + ".vec", "f32%s, None%s, [%s]" % (x, align, ", ".join([factor] * n)), options)
        w.case(name, "f32[0,%s, %s%s" % (x[3:], SIZES[n][0], align))


def same_sizes(w):
    w.comment("sizes that stay or are doubled, with scales that say otherwise")
    for name, n, corners in OPERATORS:
        x = INPUTS[n]
        sizes = [int(i) for i in x[1:-1].split(",")[2:]]
        options = CUBIC if "cubic" in name else CLOSE if corners else ""
        for times, scale in ((1, "1.15"), (2, "2.18")):
            size = "[%s]" % ",".join(str(i * times) for i in sizes)
            rest = (", False, " if corners else ", ") + ", ".join([scale] * n)
            for how in ("",) + ((".cl",) if n > 1 else ()):
                w.case(name, "f32%s%s, %s%s" % (x, how, size, rest), options)
                # Those of the others are not the forward's in the reference.
                if "linear" in name or "exact" in name or name == "upsample_nearest2d":
                    w.case(name + "_backward", "f32[%s]%s, %s, %s%s" % (gradient(x, size), how, size, x, rest), CLOSE)
    w.comment("a dimension that stays, and NaN")
    nan = float("nan")
    w.tensor("row", torch.tensor([[[0.5, 1.5, nan]]]))
    w.tensor("below", torch.tensor([[[[0.5, 1.5, 2.0], [0.25, nan, 4.0]]]]))
    w.tensor("beside", torch.tensor([[[[0.5, 1.5, nan], [0.25, 3.0, 4.0]]]]))
    w.case("upsample_linear1d", "$row, [3], False", CLOSE)
    w.case("upsample_bilinear2d", "$below, [2,2], False", CLOSE)
    w.case("upsample_bilinear2d", "$beside, [4,3], True", CLOSE)


def refusals(w):
    w.comment("refusals")
    for name, n, corners in OPERATORS:
        x, size, align = INPUTS[n], SIZES[n][0], ", False" if corners else ""
        zeros = "[" + ",".join("0" * n) + "]"
        w.case(name, "f32[3,4], %s%s" % (size, align))
        w.case(name, "f32%s, [2,2,2,2]%s" % (x, align))
        w.case(name, "f32%s, %s%s" % (x, zeros, align))
        w.case(name, "f32[2,0,%s, %s%s" % (x[5:], size, align))
        w.case(name, "i32%s, %s%s" % (x, size, align))
        w.case(name + "_backward", "f32%s, %s, %s%s" % (x, size, x, align) if n > 1 else "f32[2,2,4], [5], [2,2,5]" + align)
        w.case(name + "_backward", "f32[2,3], %s, %s%s" % (size, x, align))
        w.case(name + "_backward", "f32%s, %s, [2,2]%s" % (x, size, align))
        w.case(name + "_backward", "i32[%s], %s, %s%s" % (gradient(x, size), size, x, align))
        w.case(name + ".vec", "f32%s, None%s, None" % (x, align))
        w.case(name + ".vec", "f32%s, %s%s, [%s]" % (x, size, align, ", ".join(["2.0"] * n)))
        w.case(name + ".vec", "f32%s, None%s, [%s]" % (x, align, ", ".join(["-1.0"] * n)))
        w.case(name + ".vec", "f32%s, None%s, [%s]" % (x, align, ", ".join(["1e30"] * n)))


with Writer("upsample") as writer:
    for part in (values, same_sizes, refusals):
        part(writer)
