#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Overloads and small operators that no other family has: numbers in tensors, sizes as operators, generators, functional
forms of operators that write, padding in three dimensions, scatter with a reduction."""

import torch

from literal import DTYPES, Writer

CLOSE = "rtol=2e-6 atol=1e-6"


def comparing(w):
    w.comment("comparisons with a number")
    w.tensor("odd", torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 2.0]))
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        for a in DTYPES:
            w.case(op + ".Scalar", a + "[5], 2")
            w.case(op + ".Scalar", a + "[4].strided, 1.5")
        for args in ("$odd, 0", "$odd, inf", "$odd, nan", "u8[4], -1", "i8[4], 300", "i64[3], 2.5", "f32[2], 1j", "bool[4], True", "f16[3], 1e6"):
            w.case(op + ".Scalar", args)


def magnitudes(w):
    w.comment("magnitudes of complex numbers")
    w.tensor("z", torch.tensor([3 + 4j, complex("inf+nanj"), complex("nan-infj"), complex("nan+1j"), -0j, 1e30 + 1e30j, 1e-30 - 1e-30j]))
    for args in ("$z", "c64[2,3].t", "c128[4].strided", "c64[0]", "c64[]", "c128[2,3]"):
        w.case("abs", args, "ulp=1")
    w.case("abs.out", "c64[3], out=f32[0]", "ulp=1")
    w.case("abs.out", "c64[3], out=f64[3]", "rtol=1e-6")
    w.case("abs", "bool[2]")
    for args in ("c64[3], c64[3]", "c64[3], c64[3]=1", "$z, $z", "c64[3], c64[3].strided, 0.5, 2.0", "c128[3], c128[3], 1e-5, 1e-8, True"):
        w.case("isclose", args)


def functional(w):
    w.comment("what an operator that writes would leave behind")
    for args in ("f32[2,3], f32[3]", "f32[2,3].t, f32[2,3]", "i64[3,2].t, f32[3,1]", "bool[3], c64[3]", "f32[2], f32[3]", "f32[0], f32[0]", "f32[], i64[]"):
        w.case("copy", args)
    for args in ("f32[2,3].t, 2", "i64[2], 2.5", "u8[2], 300", "bool[3], 7", "f32[2], 1j", "c64[2], 1j", "f32[0], 1", "bf16[2], 1e40"):
        w.case("fill.Scalar", args)
    for args in ("f32[2,3].t, i64[]", "i64[2], f32[]", "f32[2], f32[2]", "bool[2], f32[]"):
        w.case("fill.Tensor", args)
    w.case("lift_fresh", "f32[2,3].t", "same")
    w.case("detach", "f32[2,3].t", "view")
    # Every literal is a view, and views cannot be detached in place: the line is that of `detach`.
    w.lines.append(w.lines[-1].replace("detach |", "detach_ |").replace("view", "same"))
    for args in ("f32[1,1]", "i64[]", "bool[1]", "c64[]", "bf16[]"):
        w.case("_local_scalar_dense", args, "cpu")


def converting(w):
    w.comment("other dtypes, by copy and by view")
    for a in DTYPES:
        w.case("to.device", a + "[2,3].t, cpu, float64", "cpu")
    w.case("to.device", "f32[2,3], cpu, float32", "cpu same")
    w.case("to.device", "f32[2,3], cpu, float32, False, True", "cpu")
    w.tensor("bytes", torch.arange(64, dtype=torch.uint8))
    w.tensor("pairs", torch.tensor([[1.5, -2.0, 3.25], [0.0, 1e-3, 7.0]]))
    w.view("pairs_t", "pairs", [3, 2], [1, 3])
    w.view("pairs_late", "pairs", [1, 2], [3, 1], 1)
    w.view("pairs_even", "pairs", [2, 2], [3, 1])
    w.view("pairs_one", "pairs", [3, 1], [2, 4])
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64", "bool"):
        w.case("view.dtype", "$bytes, " + dtype, "view")
        for t in ("$pairs", "$pairs_t", "$pairs_late", "$pairs_even", "$pairs_one"):
            w.case("view.dtype", "%s, %s" % (t, dtype), "view")
    for args in ("f32[], int32", "f32[], float64", "f32[0], float64", "f32[2,0], float16", "f32[2,0], complex128", "c64[2,3], float32", "f32[4,2].expanded, float64"):
        w.case("view.dtype", args, "view")


def numbers_in_tensors(w):
    w.comment("numbers in tensors")
    for a in ("f32", "f64", "i64", "c64", "f16"):
        n = "%s[]=%s"
        w.case("linspace.Tensor_Tensor", "%s, %s, 5" % (n % (a, 2), n % (a, 9)), "cpu ulp=1")
        w.case("linspace.Tensor_Scalar", "%s, 9, 4, dtype=float64" % (n % (a, 2)), "cpu ulp=1")
        w.case("linspace.Scalar_Tensor", "2.5, %s, 3" % (n % (a, 9)), "cpu ulp=1")
    for args in ("f32[1], f32[], 3", "f32[], f32[2,2], 3", "f32[], f32[], -1"):
        w.case("linspace.Tensor_Tensor", args)
    w.case("linspace.Tensor_Scalar", "f32[1], 3, 3")
    w.case("linspace.Scalar_Tensor", "3, f32[1], 3")
    w.case("linspace.Tensor_Tensor_out", "f32[]=1, f32[]=2, 3, out=f32[0]", "cpu")
    w.case("linspace.Tensor_Scalar_out", "f32[]=1, 2, 3, out=f64[3]", "cpu")
    w.case("linspace.Scalar_Tensor_out", "1, i64[]=4, 4, out=i32[0]", "cpu")
    for args in ("f32[5,2], 0, i64[]=1, 3", "f32[5,2], 1, i32[]=-1, 1", "f32[5], 0, u8[]=5, 0"):
        w.case("narrow.Tensor", args, "cpu view")
    for args in ("f32[5], 0, i64[]=6, 1", "f32[5], 0, i64[]=2, 4"):
        w.case("narrow.Tensor", args, "cpu")
    for args in ("f32[5], 0, f32[], 1", "f32[5], 0, i64[1], 1", "f32[5], 0, bool[], 1"):
        w.case("narrow.Tensor", args)
    for args in ("bool[2,3]", "f32[3,2,2].t", "i64[5]", "f32[]", "f32[]=0", "f32[0,3]", "c64[2]"):
        w.case("where", args, "cpu")


def pieces(w):
    w.comment("pieces")
    for args in ("f32[2,5], [1,0,4], 1", "f32[3], [1,1]", "f32[3], [-1,4]", "f32[], [1]"):
        w.case("split.sizes", args, "view")
    for args in ("f32[5], 3", "f32[2,5].t, 2", "f32[0,2], 3", "f32[], 2", "f32[3], 0", "f32[2,5], 2, -1", "f32[3], 5"):
        w.case("unsafe_chunk", args)
    for args in ("f32[5,2], 2", "f32[2,5], 3, 1", "f32[3], 0", "f32[0], 0", "f32[3], -1"):
        w.case("unsafe_split.Tensor", args)
    for args in ("f32[2,5], [1,0,4], 1", "f32[3], [1,1]"):
        w.case("unsafe_split_with_sizes", args)


def sizes(w):
    w.comment("sizes")
    for args in ("f32[2,3], 0", "f32[2,3], -1", "f32[2,3], 2", "f32[2,3], -3"):
        w.case("sym_size.int", args)
        w.case("sym_stride.int", args)
    w.case("sym_stride.int", "f32[2,3].t, 0")
    for args in ("f32[2,3]", "f32[]", "f32[0,3]", "f32[2,3].offset"):
        w.case("sym_numel", args)
        w.case("sym_storage_offset", args)
        w.case("sym_is_contiguous", args)
    for args in ("f32[2,3].t", "f32[2,3,4,5].cl, channels_last", "f32[2,3,4,5].cl", "f32[2,3,4,5], channels_last", "f32[1,1], channels_last"):
        w.case("sym_is_contiguous", args)


def random(w):
    w.comment("generators")
    no = "values=no"
    for op in ("rand", "randn"):
        for args in ("[2,3], generator=None", "[2], generator=None, dtype=float64", "[], generator=None, dtype=float16", "[-1], generator=None", "[2], generator=None, dtype=int64"):
            w.case(op + ".generator", args, no)
        w.case(op + ".generator_out", "[2,3], generator=None, out=f32[0]", no)
        w.case(op + ".generator_out", "[2,3], generator=None, out=f64[2,3].t", no)
    for args in ("5, [2,3], generator=None", "5, [2], generator=None, dtype=float32", "0, [2], generator=None"):
        w.case("randint.generator", args, no)
    for args in ("-5, 5, [2,3], generator=None", "0, 300, [2], generator=None, dtype=uint8", "3, 3, [2], generator=None"):
        w.case("randint.low_generator", args, no)
    w.case("randint.generator_out", "5, [2,3], generator=None, out=i64[0]", no)
    w.case("randint.low_generator_out", "-5, 5, [2,3], generator=None, out=f32[2,3]", no)
    for args in ("7, generator=None", "0, generator=None", "5, generator=None, dtype=float32", "-1, generator=None"):
        w.case("randperm.generator", args, no)
    w.case("randperm.generator_out", "5, generator=None, out=i32[0]", no)


def padding(w):
    w.comment("padding in three dimensions")
    for op in ("reflection_pad3d", "replication_pad3d"):
        for args in ("f32[2,3,4,5], [2,1,1,2,1,1]", "f64[1,2,2,3,4], [1,1,1,1,1,1]", "f32[1,2,2,3,3].cl, [1,0,0,1,1,0]", "f32[2,2,3,4].t, [1,-1,0,2,1,0]", "i64[1,2,2,2], [1,0,1,0,0,1]",
                     "bf16[1,2,2,2], [1,0,1,0,0,1]", "f32[0,2,2,3,4], [1,1,1,1,1,1]", "bool[2,3,4,5], [1,1,1,1,1,1]", "f32[3,4,5], [1,1,1,1,1,1]", "f32[2,0,3,4], [1,1,1,1,1,1]"):
            w.case(op, args)
            w.case("pad", args + ", '%s'" % op.split("_")[0].replace("reflection", "reflect").replace("replication", "replicate"))
        for args in ("f32[2,5,7,8], f32[2,3,4,5], [2,1,1,2,1,1]", "f64[1,2,4,5,6], f64[1,2,2,3,4], [1,1,1,1,1,1]", "f32[2,5,7,9], f32[2,3,4,5], [2,1,1,2,1,1]", "f32[2,5,6,8], f32[2,3,4,5], [2,1,1,2,1,1]",
                     "f32[2,4,7,8], f32[2,3,4,5], [2,1,1,2,1,1]", "i64[2,5,7,8], i64[2,3,4,5], [2,1,1,2,1,1]"):
            w.case(op + "_backward", args, "rtol=1e-6 atol=1e-6")
        w.case(op + ".out", "f32[1,2,2,2], [1,0,1,0,0,1], out=f32[0]")
        w.case(op + "_backward.grad_input", "f32[1,3,3,3], f32[1,2,2,2], [1,0,1,0,0,1], grad_input=f32[0]")
    w.case("reflection_pad3d", "f32[2,3,4,5], [1,1,1,1,4,1]")
    w.case("reflection_pad3d", "f32[2,3,4,5], [5,1,1,1,1,1]")


def scattering(w):
    w.comment("scatter with a reduction")
    w.tensor("i", torch.tensor([[0, 2, 0, 1], [1, 2, 0, 0]]))
    for reduce in ("add", "multiply"):
        for a in DTYPES:
            w.case("scatter.reduce", "%s[3,4], 0, $i, %s[2,4], reduce='%s'" % (a, a, reduce))
            w.case("scatter.value_reduce", "%s[3,4], 1, $i, 3, reduce='%s'" % (a, reduce))
        w.case("scatter_.reduce", "f32[3,4], 0, $i, f32[2,4], reduce='%s'" % reduce, "same")
        w.case("scatter_.value_reduce", "f32[3,4], 0, $i, 2.5, reduce='%s'" % reduce, "same")
        w.case("scatter.reduce_out", "f32[3,4], 0, $i, f32[2,4], reduce='%s', out=f32[0]" % reduce)
        w.case("scatter.value_reduce_out", "f32[3,4], 0, $i, 2, reduce='%s', out=f32[3,4]" % reduce)
    for args in ("f32[3,4], 0, $i, f32[2,4], reduce='sum'", "f32[3,4], 0, $i, f64[2,4], reduce='add'", "f32[3,4], 0, i64[1,9]=0, f32[1,9], reduce='add'", "f32[3], 0, i64[0], f32[0], reduce='add'"):
        w.case("scatter.reduce", args)
    for args in ("u8[3], 0, i64[2]=0, 300, reduce='add'", "f32[3], 0, i64[2]=0, 1, reduce='prod'", "i64[3], 0, i64[2]=0, 2.5, reduce='add'"):
        w.case("scatter.value_reduce", args)
    w.case("scatter.value_reduce", "f32[3], 0, i64[2]=3, 1, reduce='add'", "cpu")


def layers(w):
    w.comment("normalisation, pooling, losses and norms into tensors that are given")
    for args in ("f32[2,3], [3], f32[3], 1e-5", "f32[2,3,4], [3,4], None, None", "f64[4,3].t, [3], f64[3], 1e-3"):
        w.case("_fused_rms_norm", args, CLOSE)
    stats = "f32[4,3,2], f32[3], f32[3], f32[3], f32[3]=1, %s, 0.1, 1e-5, out=f32[0], save_mean=f32[0], save_invstd=f32[0]"
    w.case("_native_batch_norm_legit.out", stats % "True", "rtol=4e-6 atol=3e-5")
    w.tensor("places", torch.tensor([[[0, 2], [6, 8]]]))
    w.case("max_pool2d_with_indices_backward.grad_input", "f32[1,2,2], f32[1,4,4], [2,2], [], [0], [1], False, $places, grad_input=f32[0]")
    w.tensor("classes", torch.tensor([[[0, 1], [2, 0]]]))
    w.case("nll_loss2d_backward.grad_input", "f32[], f32[1,3,2,2], $classes, None, 1, -100, f32[]=4, grad_input=f32[0]", CLOSE)
    for args in ("f32[2,3], 2, [1], False, out=f32[0]", "f32[2,3], 3, [0], True, out=f32[1,3]", "f32[2,3], None, [1], False, out=f32[2]"):
        w.case("norm.out", args, CLOSE)


PARTS = (comparing, magnitudes, functional, converting, numbers_in_tensors, pieces, sizes, random, padding, scattering, layers)

if __name__ == "__main__":
    with Writer("overloads") as writer:
        for part in PARTS:
            part(writer)
