#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of gradients, for formulas that are not one operator with a gradient of its own."""

import torch

from literal import Writer

LOOSE = "rtol=2e-5 atol=2e-5 strides=no twice"
FINE = "rtol=1e-11 atol=1e-11 strides=no twice"

CASES = """
amax | $x.grad, [1]
amin | $x.grad
max | $x.grad
max.dim | $x.grad, 1
sort | $x.grad
topk | $x.grad, 2
cumsum | $x.grad, 1
cumprod | $x.grad, 1
cumprod | $zeros.grad, 1
cumprod | $zeros.grad, 0
prod | $x.grad
prod | $zeros.grad
prod.dim_int | $x.grad, 1
prod.dim_int | $zeros.grad, 1
logsumexp | $x.grad, [1]
logcumsumexp | $x.grad, 1
var.correction | $x.grad, [1]
std.correction | $x.grad, [0], correction=0
std.correction | $x.grad
var_mean.correction | $x.grad, [1]
linalg_vector_norm | $x.grad
linalg_vector_norm | $x.grad, 3, [1]
linalg_vector_norm | $x.grad, 1.5, [1]
linalg_vector_norm | $x.grad, 0.5, [1]
linalg_vector_norm | $x.grad, inf, [1]
linalg_vector_norm | $x.grad, 1
nansum | $x.grad, [1]
mm | $x.grad, f64[4,2].grad
addmm | f64[2].grad, $x.grad, f64[4,2].grad, beta=0.5, alpha=2
bmm | f64[2,3,4].grad, f64[2,4,2].grad
baddbmm | f64[2,3,2].grad, f64[2,3,4].grad, f64[2,4,2].grad, alpha=2
mv | $x.grad, f64[4].grad
addmv | f64[3].grad, $x.grad, f64[4].grad, alpha=2
addr | f64[3,4].grad, f64[3].grad, f64[4].grad
dot | f64[4].grad, f64[4].grad
matmul | f64[2,3,4].grad, f64[4,2].grad
linear | f64[2,3,4].grad, f64[5,4].grad, f64[5].grad
mul.Tensor | $x.grad, f64[4].grad
div.Tensor | $x.grad, f64[4].grad
tanh | $x.grad
sigmoid | $x.grad
index.Tensor | $x.grad, [$rows]
index_put | $x.grad, [$rows], f64[4].grad
index_put | $x.grad, [$rows], f64[4].grad, True
index_select | $x.grad, 0, $rows
index_add | $x.grad, 0, $rows, f64[3,4].grad, alpha=2
gather | $x.grad, 0, $all
scatter.src | $x.grad, 0, $all, f64[2,4].grad
scatter_add | $x.grad, 0, $all, f64[2,4].grad
scatter_reduce.two | $x.grad, 0, $all, f64[2,4].grad, 'prod'
scatter_reduce.two | $x.grad, 0, $all, f64[2,4].grad, 'mean'
scatter_reduce.two | $x.grad, 0, $all, f64[2,4].grad, 'amax'
take | $x.grad, $rows
embedding | $x.grad, $rows
embedding | $x.grad, $rows, 1
cat | [f64[3,4].grad, f64[1,4].grad]
stack | [f64[3].grad, f64[3].grad], 1
constant_pad_nd | $x.grad, [1,-1]
repeat | $x.grad, [2,1,3]
roll | $x.grad, [1], [1]
tril | $x.grad
reflection_pad1d | $x.grad, [1,2]
replication_pad1d | $x.grad, [1,2]
as_strided | $x.grad, [2,3], [2,1]
diagonal | $x.grad
unfold | $x.grad, 1, 2, 1
select.int | $x.grad, 1, 2
slice.Tensor | $x.grad, 1, 1, 4, 2
split.Tensor | $x.grad, 3, 1
expand | f64[3,1].grad, [2,3,4]
select_scatter | $x.grad, f64[4].grad, 0, 1
diag_embed | $x.grad
trace | $x.grad
max_pool2d | f64[1,2,4,4].grad, [2]
avg_pool2d | f64[1,2,4,4].grad, [2]
_adaptive_avg_pool2d | f64[1,2,5,4].grad, [2,3]
upsample_bilinear2d | f64[1,1,3,4].grad, [5,6], False
lstm_cell | f64[2,3].grad, [f64[2,2].grad, f64[2,2].grad], f64[8,3].grad, f64[8,2].grad
"""


def main():
    with Writer("grad_twice") as w:
        w.tensor("x", torch.tensor([[1.0, 3, -2.5, 0.5], [0.25, -4, 1.5, 4], [2, -1, 0.75, -3]], dtype=torch.float64))
        w.tensor("zeros", torch.tensor([[1.0, 0, -2.5, 0.5], [0, 4, 0, 4], [2, -1, 0.75, -3]], dtype=torch.float64))
        w.tensor("rows", torch.tensor([2, 0, 2]))
        w.tensor("all", torch.tensor([[0, 1, 2, 0], [0, 2, 1, 1]]))
        for line in CASES.strip().split("\n"):
            op, _, arguments = line.partition(" | ")
            w.grad(op, arguments, FINE)
        for x, weight, bias, rest in (("f32[1,4,6,5]", "f32[4,2,3,3]", "4", "[2,1], [0,1], [1,2], False, [0,0], 2"),
                                      ("f32[2,4,3,3]", "f32[4,3,2,2]", "3", "[2,2], [1,0], [1,1], True, [1,0], 1")):
            w.grad("convolution", "%s.grad, %s.grad, f32[%s].grad, %s" % (x, weight, bias, rest), LOOSE)


main()
