#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of indexing, joining, padding, views, pooling, and of their backward operators."""

import torch

from literal import Writer

NEAR = {"f32": "rtol=4e-6 atol=4e-6", "f64": "rtol=1e-12 atol=1e-13"}
LOOSE = NEAR["f32"] + " strides=no"


def index(w):
    w.comment("index and index_put")
    for args in ("f32[6,4].grad, [$rows]", "f32[6,4].grad, [None, $columns]", "f32[6,4].grad, [$rows, $columns]",
                 "f32[6,7,8].grad, [i64[2,1], None, i64[2]]", "f32[3,4].t.grad, [$mask]", "f32[6,4].grad, [i64[0]]"):
        w.grad("index.Tensor", args, LOOSE + (" cpu" if "mask" in args else ""))
    for accumulate in ("False", "True"):
        for op in ("index_put", "index_put_", "_index_put_impl_"):
            w.grad(op, "f32[6,4].grad, [$rows], f32[3,4].grad, " + accumulate, LOOSE)
            w.grad(op, "f32[6,4].grad, [$rows], f32[4].grad, " + accumulate, LOOSE)
        w.grad("index_put", "f32[6,4], [$rows], f32[].grad, " + accumulate, LOOSE)
        w.grad("index_put", "f32[6,4].grad, [$rows], f32[4], " + accumulate, LOOSE)
        w.grad("index_put_", "f32[3,4].grad, [$mask], f32[].grad, " + accumulate, LOOSE + " cpu")
    w.grad("take", "f32[3,4].grad, $places", LOOSE)
    w.grad("take", "f32[3,4].t.grad, $places", LOOSE)

    w.comment("along a dimension")
    for args in ("f32[6,4].grad, 0, $rows", "f32[4,6].grad, -1, $rows", "f32[].grad, 0, i64[1]=0", "f32[6,4].grad, 0, i64[]=1",
                 "f32[6,4].grad, 1, i64[0]"):
        w.grad("index_select", args, LOOSE)
    for rest in ("", ", alpha=2.5"):
        for op in ("index_add", "index_add_"):
            w.grad(op, "f32[6,4].grad, 0, $rows, f32[3,4].grad" + rest, LOOSE)
            w.grad(op, "f32[4,6].grad, 1, $rows, f32[4,3].grad" + rest, LOOSE)
        w.grad("index_add", "f32[].grad, 0, i64[1]=0, f32[].grad" + rest, LOOSE)
    w.grad("gather", "f32[3,4].grad, 0, i64[2,4]=2", LOOSE)
    w.grad("gather", "f32[3,4].t.grad, 1, $within", LOOSE)
    w.grad("gather", "f32[].grad, 0, i64[]=0", LOOSE)
    for op in ("scatter.src", "scatter_.src"):
        w.grad(op, "f32[4,4].grad, 1, $within, f32[3,2].grad", LOOSE)
    w.grad("scatter.src", "f32[3,4].grad, 0, i64[1,4]=2, f32[2,4].grad", LOOSE)
    for op in ("scatter.value", "scatter_.value"):
        w.grad(op, "f32[4,4].grad, 1, $within, 7", LOOSE)
    for op in ("scatter_add", "scatter_add_"):
        w.grad(op, "f32[4,4].grad, 1, $within, f32[3,2].grad", LOOSE)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in ("True", "False"):
            w.grad("scatter_reduce.two", "$self.grad, 0, $heap, $src.grad, '%s', include_self=%s" % (reduce, include), LOOSE)
            w.grad("scatter_reduce.two", "$self.grad, 0, $heap, $zeros.grad, '%s', include_self=%s" % (reduce, include), LOOSE)
    w.grad("scatter_reduce_.two", "$self.grad, 0, $heap, $src.grad, 'mean'", LOOSE)
    w.grad("take_along_dim", "f32[3,4].grad, i64[1,2]=1, 1", LOOSE)

    w.comment("masks and embedding")
    w.grad("masked_select", "f32[3,4].grad, $table", LOOSE + " cpu")
    w.grad("masked_select", "f32[4].grad, $table", LOOSE + " cpu")
    w.grad("masked_select", "f32[3,1].grad, bool[4]", LOOSE + " cpu")
    w.grad("masked_scatter", "f32[3,4].grad, $table, f32[3,4].grad", LOOSE + " cpu")
    w.grad("masked_scatter", "f32[3,4].grad, bool[4], f32[7].grad", LOOSE + " cpu")
    w.grad("masked_scatter_", "f32[3,4].grad, $table, f32[20].grad", LOOSE + " cpu")
    for rest in ("", ", 1", ", -1, True", ", 1, True"):
        w.grad("embedding", "f32[6,4].grad, $words" + rest, LOOSE)
    for rest in ("-1, False", "1, False"):  # by frequency the reference forgets the frequencies: docs/differences.md
        w.grad("embedding_dense_backward", "f32[2,3,4].grad, $words, 6, " + rest, LOOSE)


def join(w):
    w.comment("joining, padding, repeating, moving")
    for args in ("[f32[2,3].grad, f32[1,3].grad]", "[f32[2,3].grad, f32[2,1], f32[2,2].grad], -1", "[f32[2].grad, f32[0].grad]",
                 "[f32[0].grad, f32[2,3].grad], 1", "[f32[2].grad, f64[3].grad]", "[f32[2,3].t.grad, f32[1,3].grad], 0"):
        w.grad("cat", args, LOOSE)
    for args in ("[f32[2,3].grad, f32[2,3].grad]", "[f32[2,3].grad, f32[2,3], f32[2,3].grad], -1", "[f32[].grad, f32[].grad]"):
        w.grad("stack", args, LOOSE)
    w.grad("hstack", "[f32[2].grad, f32[3].grad]", LOOSE)
    for pad in ("[1,2]", "[1,-1,0,2]", "[]"):
        w.grad("constant_pad_nd", "f32[2,3].grad, %s, 7" % pad, LOOSE)
    for repeats in ("[2,3]", "[2,1,3]", "[1,1]", "[0,2]", "[2,1,1,1]"):
        w.grad("repeat", "f32[2,3].grad, " + repeats, LOOSE)
    w.grad("repeat", "f32[].grad, [2,2]", LOOSE)
    w.grad("tile", "f32[2,3].grad, [2]", LOOSE)
    w.grad("repeat_interleave.self_int", "f32[2,3].grad, 2, 1", LOOSE)
    w.grad("repeat_interleave.self_Tensor", "f32[3,2].grad, i64[3]=2, 0, output_size=6", LOOSE)
    for args in ("[2], [0]", "[1,-1], [0,1]", "[5]", "[1,2], [1,1]"):
        w.grad("roll", "f32[3,4].grad, " + args, LOOSE)
    w.grad("flip", "f32[3,4].grad, [0,-1]", LOOSE)
    for op in ("tril", "triu", "tril_", "triu_"):
        w.grad(op, "f32[3,4].grad, 1", LOOSE)
    for kind in ("reflection", "replication"):
        for d, x, pad, y in ((1, "f32[2,3,5]", "[2,1]", "f32[2,3,8]"), (2, "f32[2,3,4,5]", "[2,1,1,2]", "f32[2,3,7,8]"),
                             (3, "f32[1,2,3,3,3]", "[1,1,2,0,1,1]", "f32[1,2,5,5,5]")):
            op = "%s_pad%dd" % (kind, d)
            w.grad(op, "%s.grad, %s" % (x, pad), LOOSE)
            w.grad(op + "_backward", "%s.grad, %s.grad, %s" % (y, x, pad), LOOSE)


def views(w):
    w.comment("views")
    for op, args in (("view", "[6]"), ("reshape", "[3,2]"), ("_unsafe_view", "[6]"), ("t", ""), ("transpose.int", "0, 1"),
                     ("permute", "[1,0]"), ("expand", "[4,2,3]"), ("unsqueeze", "1"), ("unsqueeze", "-1"), ("select.int", "1, -1"),
                     ("slice.Tensor", "1, 1"), ("slice.Tensor", "1, -5, 100, 2"), ("slice.Tensor", "0, 5, 2"),
                     ("split.Tensor", "2, 1"), ("split_with_sizes", "[1,0,2], 1"), ("unbind.int", "1"), ("chunk", "2, 1"),
                     ("narrow", "1, 1, 2"), ("flatten.using_ints", ""), ("diagonal", ""), ("diagonal", "1"), ("diagonal", "-1, 1, 0"),
                     ("unfold", "1, 2, 1"), ("unfold", "0, 2, 2"), ("alias", ""), ("mT", ""), ("unsafe_split.Tensor", "2, 1"),
                     ("unsafe_split_with_sizes", "[1,2], 1"), ("diag", ""), ("trace", ""), ("rot90", ""), ("rot90", "2"),
                     ("rot90", "-1"), ("diag_embed", ""), ("diag_embed", "1, 0, 2"), ("detach", ""), ("movedim.int", "0, 1")):
        w.grad(op, "f32[2,3].grad" + (", " + args if args else ""), LOOSE)
    for op in ("squeeze", "squeeze.dim", "squeeze.dims"):
        w.grad(op, "f32[1,3,1].grad" + {"squeeze": "", "squeeze.dim": ", -1", "squeeze.dims": ", [0,1]"}[op], LOOSE)
    for args in ("f32[4].grad, [2,2], [1,1], 1", "f32[3,4].grad, [2,3], [4,1]", "f32[4,3].t.grad, [2,2], [1,2]",
                 "f32[6].grad, [3,2], [0,1]"):
        w.grad("as_strided", args, LOOSE)
    w.grad("unfold", "f32[9].grad, 0, 4, 2", LOOSE)
    w.grad("unfold", "f32[].grad, 0, 1, 1", LOOSE)
    w.grad("split.Tensor", "f32[5].grad, 2", LOOSE + " seeds=1")
    w.grad("unbind.int", "f32[3,2].grad", LOOSE + " seeds=0,2")

    w.comment("gradients of gradients of views, writing views")
    w.grad("select_backward", "f32[4].grad, [3,4], 0, 1", LOOSE)
    w.grad("slice_backward", "f32[2,4].grad, [5,4], 0, 1, 5, 2", LOOSE)
    w.grad("diagonal_backward", "f32[3].grad, [3,4], 0, 0, 1", LOOSE)
    w.grad("unfold_backward", "f32[3,4,3].grad, [7,4], 0, 3, 2", LOOSE)
    w.grad("select_scatter", "f32[3,4].grad, f32[4].grad, 0, 1", LOOSE)
    w.grad("slice_scatter", "f32[3,4].grad, f32[2,4].grad, 0, 0, 2", LOOSE)
    w.grad("slice_scatter", "f32[3,4].grad, f32[3,2].grad, 1, None, None, 2", LOOSE)
    w.grad("diagonal_scatter", "f32[3,4].grad, f32[3].grad", LOOSE)
    for op, args in (("t_", ""), ("transpose_", ", 0, 1"), ("squeeze_", ""), ("unsqueeze_", ", 0"),
                     ("as_strided_", ", [3,2], [1,3]")):
        w.grad(op, "f32[2,3].grad" + args, LOOSE)


def pool(w):
    w.comment("pooling")
    for args in ("[2]", "[3,2], [2,1], [1,0]", "[2], [2], [0], [1], True", "[2], [1], [0], [2]"):
        w.grad("max_pool2d_with_indices", "f32[2,2,5,5].grad, " + args, LOOSE)
    w.grad("max_pool2d", "f32[2,5,5].grad, [2]", LOOSE)
    w.grad("max_pool1d", "f32[2,2,6].grad, [2]", LOOSE)
    w.grad("max_pool2d_with_indices_backward",
           "f32[1,2,2,2].grad, f32[1,2,5,5].grad, [2,2], [], [0], [1], False, $peaks", LOOSE)
    for args in ("[2]", "[3], [2], [1], True, False", "[3,2], [2,1], [1,0], False, True, 3"):
        w.grad("avg_pool2d", "f32[2,2,5,5].grad, " + args, LOOSE)
    w.grad("avg_pool1d", "f32[2,2,6].grad, [3], [2], [1]", LOOSE)
    w.grad("avg_pool2d_backward", "f32[1,2,2,2].grad, f32[1,2,5,5].grad, [2,2], [], [0], False, True, None", LOOSE)
    w.grad("_adaptive_avg_pool2d", "f32[2,2,5,6].grad, [2,3]", LOOSE)
    w.grad("_adaptive_avg_pool2d_backward", "f32[2,2,2,3].grad, f32[2,2,5,6].grad", LOOSE)
    w.grad("adaptive_avg_pool2d", "f32[2,2,5,6].grad, [1,1]", LOOSE)
    for args in ("[2]", "[2], [1], [1]"):
        w.grad("max_pool3d_with_indices", "f32[1,2,3,4,4].grad, " + args, LOOSE)
        w.grad("avg_pool3d", "f32[1,2,3,4,4].grad, " + args, LOOSE)
    w.grad("max_pool3d_with_indices_backward",
           "f32[1,1,1,2,2].grad, f32[1,1,2,4,4].grad, [2], [], [0], [1], False, i64[1,1,1,2,2]=21", LOOSE)
    w.grad("avg_pool3d_backward", "f32[1,1,1,2,2].grad, f32[1,1,2,4,4].grad, [2], [], [0], False, True, None", LOOSE)
    w.grad("_adaptive_avg_pool3d", "f32[1,2,3,5,4].grad, [2,2,3]", LOOSE)
    w.grad("_adaptive_avg_pool3d_backward", "f32[1,2,2,2,3].grad, f32[1,2,3,5,4].grad", LOOSE)
    w.grad("adaptive_max_pool2d", "f32[2,2,5,6].grad, [2,3]", LOOSE)
    w.grad("adaptive_max_pool2d_backward", "f32[1,2,2,2].grad, f32[1,2,5,5].grad, $peaks", LOOSE)
    w.grad("adaptive_max_pool3d", "f32[1,2,3,5,4].grad, [2,2,3]", LOOSE)


def main():
    with Writer("grad_index") as w:
        w.tensor("rows", torch.tensor([4, 1, 4]))
        w.tensor("columns", torch.tensor([-1, 0, 2]))
        w.tensor("mask", torch.tensor([True, False, True]))
        w.tensor("table", torch.tensor([[True, False, False, True], [False, True, True, True], [False, False, True, False]]))
        w.tensor("places", torch.tensor([[3, -1], [3, 7]]))
        w.tensor("within", torch.tensor([[2, 0], [1, 1], [2, 0]]))
        w.tensor("words", torch.tensor([[1, 4, 4], [0, 1, 4]]))
        w.tensor("heap", torch.tensor([[0, 1, 2], [0, 0, 2], [1, 1, 2], [0, 2, 2]]))
        w.tensor("self", torch.tensor([[1.0, 2, 3], [-1, 2, 0], [4, 0, 2]]))
        w.tensor("src", torch.tensor([[1.0, 2, 3], [-1, 2, 5], [4, 3, 2], [0.5, 3, 3]]))
        w.tensor("zeros", torch.tensor([[1.0, 0, 3], [0, 2, 5], [4, 3, 0], [0.5, 3, 0]]))
        w.tensor("peaks", torch.tensor([[[0, 7], [12, 18]], [[6, 8], [16, 13]]]).reshape(1, 2, 2, 2))
        index(w)
        join(w)
        views(w)
        pool(w)


main()
