# SPDX-License-Identifier: MIT
"""Looking rows up with a sparse gradient: nn.functional.embedding(sparse=True)."""
import tenon
from tenon.autograd import Function

from ._coo import SparseTensor


class Rows(Function):
    """weight[ids]; the gradient of the weight has a row for each that was looked up."""

    @staticmethod
    def forward(ctx, weight, ids, padding_idx):
        ctx.save_for_backward(ids)
        ctx.size, ctx.padding_idx = tuple(weight.shape), padding_idx
        return tenon.embedding(weight, ids, padding_idx)

    @staticmethod
    def backward(ctx, grad):
        # A copy: the caller may fill the tensor with the next batch while the gradient is still in use.
        ids = ctx.saved_tensors[0].reshape(-1).to(tenon.int64, copy=True)
        if grad.numel() == 0:
            ids = ids[:0]
        rows = grad.reshape(ids.numel(), ctx.size[1])
        if ctx.padding_idx >= 0:
            keep = ids != ctx.padding_idx
            ids, rows = ids[keep], rows[keep]
        return SparseTensor._of(ids.unsqueeze(0), rows, ctx.size, False), None, None
