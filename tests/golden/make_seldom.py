#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls that are seldom made, in layouts and sizes that are seldom met. Each comment names the promise of the cases under it."""

from literal import Writer

CLOSE = "rtol=2e-5 atol=2e-5"


def gradients(w):
    w.comment("the layout of a gradient is that of self, not that of what comes from above")
    for args in ("f32[2,3].t, f32[2,3], f32[1,3]", "f32[2,3], f32[2,3].t, f32[1,3]"):
        w.case("_prelu_kernel_backward", args, CLOSE)
    for args in ("f32[2,3].t, f32[2,3]=0.3, f32[2,3]=0.5, f32[3], 0", "f32[2,3], f32[2,3].t=0.3, f32[2,3]=0.5, f32[3], 0"):
        w.case("binary_cross_entropy_backward", args, CLOSE)


def matrices(w):
    w.comment("what is said to be hermitian is square; a norm is not computed in a narrower dtype")
    w.case("linalg_pinv", "f32[4,3], 1e-6, hermitian=True")
    w.case("linalg_matrix_rank", "f32[4,3], 1e-4, hermitian=True")
    w.case("linalg_matrix_norm", "f32[3,0], 2")
    for dtype in ("float16", "int64", "complex128"):
        w.case("linalg_matrix_norm", "f64[2,3,4], 1, dtype=%s" % dtype)
    w.case("addr", "f32[2,3], f32[2], f32[3], alpha=True")
    w.case("addr", "f32[2,3], f32[2], f32[3], beta=True")
    w.case("chain_matmul", "[f32[]]")
    w.case("linalg_multi_dot", "[f32[2,0], f32[3,4], f32[4,5]]")
    w.case("linalg_multi_dot", "[f32[0], f32[3,4], f32[4]]")
    w.case("linalg_eigvals", "f32[0,3]")
    for args in ("f32[1,3,3], i32[3]=3, f32[3,2]", "f32[3,3], i32[3]=3, f32[]", "f32[3,3], i32[3]=3, f32[0,2]"):
        w.case("linalg_lu_solve", args)
    w.case("block_diag", "[f32[2,3], f32[2], f64[]]")
    w.case("block_diag", "[%s]" % ", ".join("f32[%d,%d]" % (1 + i % 3, i % 4) for i in range(70)))


def places(w):
    w.comment("results have an order of their own: that of the written tensor is not kept")
    w.case("index_copy", "f32[3,4].t, 0, i64[1]=1, f32[1,4]")
    w.case("histogram.bins_tensor", "f32[7], f32[3].strided")
    w.case("as_strided_scatter", "f32[6].expanded, f32[2,2], [2,2], [3,1]")
    w.comment("a number has no dimensions")
    w.case("unique_consecutive", "i64[], True, True, 0", "cpu")
    w.case("sym_size.int", "f32[], -1")
    w.case("sym_stride.int", "f32[], -1")


def signals(w):
    w.comment("stft and istft: messages begin with the call; a point that no window covers is refused")
    for args in ("f32[20], 0, return_complex=True", "f32[20], 3, return_complex=True", "i64[20], 8, return_complex=True",
                 "f64[20], 8, 2, 9, return_complex=True", "f64[2,20], 6, 3, 1, f64[4]=0.5, return_complex=True", "f32[2,3,4], 2, return_complex=True"):
        w.case("stft", args)
    for args in ("c64[5,0], 8, 2, 8, f32[8]=0.5", "c64[5,6], 8, 0, 8, f32[8]=0.5", "c64[5,6], 8, 2, 1, f32[8]=0.5", "c64[5,6], 16", "c64[5,6], 8, 2, 8, c64[8]=1", "c64[5,6], 8, 2, return_complex=True"):
        w.case("istft", args)
    w.case("istft", "c64[5,6], 8, 2, 8, f32[8]=0", "cpu")
    for args in ("c64[8,6], 8, 2, 8, f32[8]=0.5, return_complex=True", "c128[2,8,6], 8, 4, 6, f64[6]=0.5, return_complex=True, onesided=False, length=20",
                 "c64[8,6], 8, 2, 8, c64[8]=0.5, True, True, return_complex=True", "c64[5,6], 8, 2, 8, f32[8]=0.5"):
        w.case("istft", args, CLOSE)


def dtypes(w):
    w.comment("dtypes that an operator does not take are named")
    for op, args in (("_fft_r2c", "f16[6], [0], 0, True"), ("_fft_r2c", "i64[6], [0], 0, True"), ("_fft_c2c", "f32[6], [0], 0, True"),
                     ("_fft_c2r", "f64[4], [0], 0, 6"), ("_cdist_backward", "f64[3,2], f32[3,4], f32[2,4], 2, f32[3,2]=2"),
                     ("_pdist_backward", "f32[6], f32[4,3], 2, f64[6]=2"), ("embedding_bag", "i64[4,3], i64[6]=2, i64[1]=0"),
                     ("embedding_bag", "c64[4,3], i64[6]=2, i64[1]=0"), ("special_multigammaln", "bool[2,3]=2.5, 3"),
                     ("_foreach_norm.Scalar", "[f32[2,3], f32[4]], ord=True")):
        w.case(op, args)
    for args in ("f32[2,4,6,6], f64[3,4,3,3]", "f32[2,4,6,6], f64[3,4,3,3], f64[3]", "f32[2,4,6,6], f32[3,4,3,3], f16[3]", "f64[2,4,6,6], f32[3,4,3,3], f32[3]",
                 "f64[2,4,6,6], f32[3,4,3,3]", "i64[2,4,6,6], f32[3,4,3,3], f32[3]", "bf16[2,4,6,6], f32[3,4,3,3]"):
        w.case("conv2d", args)
    w.case("conv_transpose2d.input", "f32[2,4,6,6], f32[4,3,3,3], f64[3]")
    w.case("soft_margin_loss", "c64[2,3], c64[2,3]", CLOSE)
    w.case("soft_margin_loss", "c64[2,3].t, f64[3], 0", CLOSE)


if __name__ == "__main__":
    with Writer("seldom") as writer:
        for part in (gradients, matrices, places, signals, dtypes):
            part(writer)
