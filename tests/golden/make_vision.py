#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows as columns, sampling at places that a grid says, rearranging channels; distances between all rows; bags of
embeddings; Fourier transforms."""

import torch

from literal import Writer

CLOSE = "rtol=1e-5 atol=1e-5"
LOOSE = {"f16": "rtol=3e-3 atol=3e-3", "bf16": "rtol=2e-2 atol=2e-2", "f32": CLOSE, "f64": "rtol=1e-12 atol=1e-12"}


def columns(w):
    w.comment("im2col, col2im")
    for a in ("f32", "f64", "bf16", "c64", "bool", "i64"):
        w.case("im2col", a + "[1,2,4,5], [2,3], [1,1], [0,0], [1,1]")
        w.case("col2im", a + "[1,12,9], [4,5], [2,3], [1,1], [0,0], [1,1]", LOOSE.get(a, CLOSE))
    for args in ("f32[2,4,5], [2,2], [1,1], [1,1], [2,2]", "f32[2,3,5,5].t, [3,3], [2,1], [1,2], [1,2]", "f32[0,2,4,4], [2,2], [1,1], [0,0], [1,1]", "f32[1,2,4,4].cl, [2,2], [1,1], [0,0], [2,2]", "f32[1,2,4,4], [2], [1], [0], [1]",
                 "f32[1,2,2,2], [3,3], [1,1], [0,0], [1,1]", "f32[1,2,4,4], [0,2], [1,1], [0,0], [1,1]", "f32[1,2,4,4], [2,2], [0,1], [0,0], [1,1]", "f32[1,2,4,4], [2,2], [1,1], [-1,0], [1,1]",
                 "f32[1,2,4,4], [2,2], [1,1], [0,0], [0,1]", "f32[1,2,4,4], [2,2,2], [1,1], [0,0], [1,1]", "f32[2,0,4,4], [2,2], [1,1], [0,0], [1,1]"):
        w.case("im2col", args)
    for args in ("f32[8,9], [4,4], [2,2], [1,1], [0,0], [1,1]", "f32[2,8,4], [3,3], [2,2], [1,1], [1,1], [2,2]", "f32[0,8,9], [4,4], [2,2], [1,1], [0,0], [1,1]", "f32[1,8,9], [4,4], [2], [1], [0], [1]", "f32[1,8,8], [4,4], [2,2], [1,1], [0,0], [1,1]",
                 "f32[1,7,9], [4,4], [2,2], [1,1], [0,0], [1,1]", "f32[9], [4,4], [2,2], [1,1], [0,0], [1,1]", "f32[1,8,9], [4,4], [0,2], [1,1], [0,0], [1,1]", "f32[1,8,9], [4,4], [2,2], [1,1], [0,0], [0,1]",
                 "f32[1,8,9], [4,4], [2,2], [0,1], [0,0], [1,1]", "f32[1,8,9], [4,4], [2,2], [1,1], [-1,0], [1,1]", "f32[1,8,9], [4,4,4], [2,2], [1,1], [0,0], [1,1]", "f32[1,8,9], [0,4], [2,2], [1,1], [0,0], [1,1]"):
        w.case("col2im", args, CLOSE)
    w.case("im2col.out", "f32[1,1,3,3], [2,2], [1,1], [0,0], [1,1], out=f32[0]")
    w.case("col2im.out", "f32[1,4,4], [3,3], [2,2], [1,1], [0,0], [1,1], out=f32[0]")


def sampling(w):
    w.comment("grid_sampler_2d and its gradient")
    torch.manual_seed(3)
    w.tensor("grid", (torch.rand(1, 3, 2, 2) * 2.6 - 1.3))
    w.tensor("grid64", (torch.rand(1, 3, 2, 2, dtype=torch.float64) * 2.6 - 1.3))
    w.tensor("odd", torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.2]]]]))
    for mode in (0, 1, 2):
        for pad in (0, 1, 2):
            for align in (False, True):
                rest = "%d, %d, %s" % (mode, pad, align)
                w.case("grid_sampler_2d", "f32[1,2,3,4], $grid, " + rest, CLOSE)
                w.case("grid_sampler_2d_backward", "f64[1,2,3,2], f64[1,2,3,4], $grid64, %s, [True,True]" % rest, LOOSE["f64"])
    w.case("grid_sampler_2d", "f64[1,2,3,4], $grid64, 0, 0, False", LOOSE["f64"])
    w.case("grid_sampler", "f32[1,2,3,4], $grid, 0, 1, True", CLOSE)
    w.case("grid_sampler_2d", "f32[0,2,3,4], f32[0,3,2,2], 0, 0, False")
    w.case("grid_sampler_2d", "f32[1,2,3,4], f32[1,0,2,2], 0, 0, False")
    w.case("grid_sampler_2d_backward", "f32[1,2,3,2], f32[1,2,3,4], $grid, 0, 0, False, [False,True]", CLOSE + " strides=no")
    w.tensor("infinite", torch.full((1, 2, 3, 4), float("inf")))
    w.case("grid_sampler_2d_backward", "f32[1,2,3,2], $infinite, $grid, 1, 1, False, [True,True]", CLOSE + " strides=no")
    for args in ("f32[1,2,3,4], f32[2,3,2,2], 0, 0, False", "f32[1,2,3,4], f32[1,3,2,3], 0, 0, False", "f32[2,3,4], f32[1,3,2,2], 0, 0, False", "f32[1,2,0,4], f32[1,3,2,2], 0, 0, False", "f32[1,2,3,4], f64[1,3,2,2], 0, 0, False",
                 "i64[1,2,3,4], i64[1,3,2,2], 0, 0, False"):
        w.case("grid_sampler_2d", args)
    w.comment("grid_sampler_3d and its gradient")
    w.tensor("volume", (torch.rand(1, 2, 2, 3, 3) * 2.6 - 1.3))
    w.tensor("volume64", (torch.rand(1, 2, 2, 3, 3, dtype=torch.float64) * 2.6 - 1.3))
    w.tensor("lost", torch.tensor([[[[[float("nan"), 0.0, 0.1], [float("inf"), 0.2, -0.3]]]]]))
    for mode in (0, 1):
        for pad in (0, 1, 2):
            for align in (False, True):
                rest = "%d, %d, %s" % (mode, pad, align)
                w.case("grid_sampler_3d", "f32[1,2,3,4,2], $volume, " + rest, CLOSE)
                w.case("grid_sampler_3d_backward", "f64[1,2,2,2,3], f64[1,2,3,4,2], $volume64, %s, [True,True]" % rest, LOOSE["f64"])
    w.case("grid_sampler_3d", "f32[1,2,3,4,2], $lost, 0, 0, False", CLOSE)
    w.case("grid_sampler", "f32[1,2,3,4,2], $volume, 0, 1, True", CLOSE)
    w.case("grid_sampler_3d", "f32[0,2,3,4,2], f32[0,3,2,2,3], 0, 0, False")
    w.case("grid_sampler_3d", "f32[1,2,3,4,2], f32[1,0,2,2,3], 0, 0, False")
    for args in ("f32[1,2,3,4,2], f32[2,3,2,2,3], 0, 0, False", "f32[1,2,3,4,2], f32[1,3,2,2,2], 0, 0, False", "f32[1,2,3,4], f32[1,3,2,2], 0, 0, False",
                 "f32[1,2,0,4,2], f32[1,3,2,2,3], 0, 0, False", "f32[1,2,3,4,2], $volume, 2, 0, False"):
        w.case("grid_sampler_3d", args)
    w.comment("affine_grid_generator")
    for args in ("f64[2,3,4], [2,1,2,3,4], True", "f32[1,3,4], [1,1,3,2,2], False", "f32[1,2,3], [1,2,3,4], False", "f32[2,2,3], [2,1,2,2], True", "f32[1,2,3], [1,1,1,1], True"):
        w.case("affine_grid_generator", args, CLOSE)


def channels(w):
    w.comment("rearranging channels")
    for args in ("f32[1,8,2,3], 2", "f32[8,2,3], 2", "f32[2,1,9,1,1], 3", "f32[1,7,2,2], 2", "f32[2,2], 2", "f32[1,4,2,2], 0", "f32[0,4,2,2], 2"):
        w.case("pixel_shuffle", args)
    for args in ("f32[1,2,4,6], 2", "f32[2,4,6], 2", "f32[1,1,3,3], 3", "f32[1,2,3,4], 2", "f32[2,2], 2", "f32[1,2,4,4], 0", "f32[1,2,4,4], -1"):
        w.case("pixel_unshuffle", args)
    for args in ("f32[1,6,2,2], 3", "f32[2,4,3], 2", "f32[1,6,2,2], 4", "f32[2,4], 2", "f32[1,6,2,2], 0"):
        w.case("channel_shuffle", args)
    w.case("pixel_shuffle", "f32[1,4,2,2].cl, 2")
    w.case("channel_shuffle", "f32[1,6,2,2].cl, 2")
    w.case("pixel_unshuffle", "f32[2,2,4,6].cl, 2")


def distances(w):
    w.comment("distances between all rows")
    for p in ("0", "1", "2", "3", "0.5", "inf"):
        for a in ("f32", "f64"):
            w.case("cdist", "%s[3,4], %s[2,4].strided, %s" % (a, a, p), LOOSE[a])
            w.case("_cdist_forward", "%s[2,3,4], %s[2,2,4], %s, 2" % (a, a, p), LOOSE[a])
            w.case("_pdist_forward", "%s[4,3], %s" % (a, p), LOOSE[a])
        w.case("_cdist_backward", "f64[3,2], f64[3,4], f64[2,4].strided, %s, f64[3,2]=2" % p, LOOSE["f64"])
        w.case("_pdist_backward", "f64[6], f64[4,3], %s, f64[6]=2" % p, LOOSE["f64"])
        w.case("pdist", "f32[4,3], " + p, CLOSE)
    for args in ("f32[3,4], f32[2,4], 2.0, 0", "f32[3,4], f32[2,4], 2.0, 1", "f32[3,4], f32[2,4], 2.0, 2", "f32[30,4], f32[2,4]", "f32[1,3,4], f32[5,2,4]", "f32[0,4], f32[2,4]", "f32[3,0], f32[2,0]", "f32[3,4], f32[2,5]",
                 "f32[4], f32[2,4]", "f32[3,4], f32[2,4], -1.0", "f32[3,4], f32[2,4], 2.0, 5", "i64[3,4], i64[2,4]"):
        w.case("cdist", args, "rtol=1e-4 atol=2e-3")
    for args in ("f32[1,3]", "f32[0,3]", "f32[3,0]", "f32[3]", "f32[3,3], -1.0", "i64[3,3]"):
        w.case("pdist", args)


def bags(w):
    w.comment("bags of embeddings")
    w.tensor("i", torch.tensor([0, 2, 1, 3, 3, 1]))
    w.tensor("o", torch.tensor([0, 2, 2, 5]))
    w.tensor("last", torch.tensor([0, 2, 6]))
    w.tensor("late", torch.tensor([1, 2]))
    w.tensor("i32", torch.tensor([0, 2, 1], dtype=torch.int32))
    w.tensor("o32", torch.tensor([0, 1], dtype=torch.int32))
    for mode in (0, 1, 2):
        # The reference's sums of float32 and float16 leave out the second result.
        for a in ("f64",) if mode == 0 else ("f32", "f64", "f16"):
            w.case("_embedding_bag", "%s[4,3], $i, $o, False, %d" % (a, mode), LOOSE[a])
            w.case("_embedding_bag", "%s[4,3], $i, $last, False, %d, False, None, True" % (a, mode), LOOSE[a])
            w.case("_embedding_bag", "%s[4,3], $i, $o, False, %d, False, None, False, 3" % (a, mode), LOOSE[a])
            w.case("_embedding_bag", "%s[4,3], $i32, $o32, False, %d" % (a, mode), LOOSE[a])
            w.case("embedding_bag", "%s[4,3], $i, $o, False, %d" % (a, mode), LOOSE[a])
        w.case("_embedding_bag", "f32[4,3], i64[0], i64[0], False, %d" % mode, CLOSE)
    w.case("_embedding_bag", "f64[4,3], $i, $o, False, 0, False, f64[6]", CLOSE)
    w.case("_embedding_bag", "f32[4,3], $i, $o, False, 1, False, f32[6]", CLOSE)
    for args in ("f32[4,3], $i, $late", "f32[4,3], i64[2]=4, i64[1]=0", "f32[4,3], i64[2]=-1, i64[1]=0"):
        w.case("_embedding_bag", args, "cpu")
    for args in ("f32[4,3], f32[2], $o", "f32[4], $i, $o", "f32[4,3], $i, f32[2]"):
        w.case("_embedding_bag", args)
    w.tensor("of", torch.tensor([0, 0, 2, 2, 2, 3]))
    w.tensor("size", torch.tensor([2, 0, 3, 1]))
    w.tensor("from", torch.tensor([[0, 2, 0], [0, 0, 0], [1, 3, 3], [1, 1, 1]]))
    for a in ("f32", "f64", "f16", "bf16"):
        for mode in (0, 1):
            w.case("_embedding_bag_backward", "%s[4,3], $i, $o, $of, $size, $from, 5, False, %d, False, None" % (a, mode), LOOSE[a])
            w.case("_embedding_bag_dense_backward", "%s[4,3], $i, $of, $size, $from, 5, False, %d, None, 3" % (a, mode), LOOSE[a])
        w.case("_embedding_bag_dense_backward", "%s[4,3], $i, $of, $size, $from, 4, False, 0, %s[6]" % (a, a), LOOSE[a])
        w.case("_embedding_bag_dense_backward", "%s[4,3], $i, $of, $size, $from, 4, False, 2, None" % a, LOOSE[a])
        w.case("_embedding_bag_per_sample_weights_backward", "%s[4,3], %s[4,3], $i, $o, $of, 0" % (a, a), LOOSE[a])
        w.case("_embedding_bag_per_sample_weights_backward", "%s[4,3], %s[4,3], $i, $o, $of, 0, 1" % (a, a), LOOSE[a])
    w.case("_embedding_bag_backward", "f64[4,3], $i, $o, i64[0], $size, $from, 4, False, 0, False, None", LOOSE["f64"])
    w.case("_embedding_bag_per_sample_weights_backward", "f64[4,3], f64[4,3], $i, $o, i64[0], 0", LOOSE["f64"])
    w.case("_embedding_bag_dense_backward.out", "f64[4,3], $i, $of, $size, $from, 4, False, 1, None, out=f64[0]", LOOSE["f64"])
    w.case("_embedding_bag_per_sample_weights_backward.out", "f64[4,3], f64[4,3], $i, $o, $of, 0, out=f64[0]", LOOSE["f64"])
    w.case("_embedding_bag_backward", "f32[4,3], f32[6], $o, $of, $size, $from, 4, False, 0, False, None", "cpu")
    w.case("_embedding_bag_dense_backward", "i64[4,3], $i, $of, $size, $from, 4, False, 0, None", "cpu")
    w.case("_embedding_bag_per_sample_weights_backward", "f32[4,3], f32[4,3], $i, $o, $of, 1", "cpu")


def fourier(w):
    w.comment("Fourier transforms")
    for n in (1, 2, 3, 4, 5, 6, 8, 12, 17, 31):
        w.case("_fft_r2c", "f64[2,%d], [1], 0, True" % n, "rtol=1e-11 atol=1e-11")
        w.case("_fft_c2c", "c128[2,%d], [1], 0, True" % n, "rtol=1e-11 atol=1e-11")
        w.case("_fft_c2c", "c64[%d], [0], 2, False" % n, CLOSE)
        w.case("_fft_c2r", "c128[2,%d], [1], 2, %d" % (n // 2 + 1, n), "rtol=1e-11 atol=1e-11")
    for norm in (0, 1, 2):
        w.case("_fft_r2c", "f32[3,4,5], [0,2], %d, True" % norm, CLOSE + " strides=no")
        w.case("_fft_r2c", "f32[3,4].t, [0], %d, False" % norm, CLOSE + " strides=no")
        w.case("_fft_c2c", "c64[3,4,5].strided, [0,1,2], %d, True" % norm, CLOSE + " strides=no")
        w.case("_fft_c2r", "c64[3,4,3], [0,2], %d, 5" % norm, CLOSE + " strides=no")
    w.case("_fft_r2c.out", "f32[4], [0], 0, True, out=c64[0]", CLOSE)
    w.case("_fft_c2c.out", "c64[4], [0], 0, True, out=c64[4]", CLOSE)
    w.case("_fft_c2r.out", "c64[3], [0], 0, 4, out=f32[0]", CLOSE)


if __name__ == "__main__":
    with Writer("vision") as writer:
        for part in (columns, sampling, channels, distances, bags, fourier):
            part(writer)
