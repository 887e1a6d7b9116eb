# SPDX-License-Identifier: MIT
"""The autograd functions that modules need."""

from tenon.autograd.function import Function

__all__ = ["BackwardHookFunction"]


class BackwardHookFunction(Function):
    """The identity: a node in the graph that a module's backward hooks hang on."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args
