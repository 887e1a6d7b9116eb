# SPDX-License-Identifier: MIT
"""Looking rows up in tables: embedding and embedding_bag."""

import warnings

import tenon
from tenon.nn.functional._shared import op, overridable

one_hot = op("one_hot")


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    """Scale, in place, the rows that `input` names and whose norm is above `max_norm`."""
    with tenon.no_grad():
        tenon.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


@overridable
def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """The rows of `weight` (V, D) that `input` (*) names: (*, D). The row `padding_idx` gets no gradient."""
    if padding_idx is not None:
        if padding_idx > 0:
            if padding_idx >= weight.size(0):
                raise AssertionError("Padding_idx must be within num_embeddings")
        elif padding_idx < 0:
            if padding_idx < -weight.size(0):
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse and weight.requires_grad and tenon.is_grad_enabled():
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        from tenon.sparse._rows import Rows
        return Rows.apply(weight, input, padding_idx)
    return tenon.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _without_padding(input, offsets, padding_idx, per_sample_weights, include_last_offset):
    """The bags with the entries `padding_idx` taken out."""
    keep = input != padding_idx
    before = tenon.cat([tenon.zeros(1, dtype=tenon.int64, device=input.device), keep.cumsum(0)])
    weights = None if per_sample_weights is None else per_sample_weights[keep]
    return input[keep], before[offsets.to(tenon.int64)].to(offsets.dtype), weights


def _bag_modes(mode, scale_grad_by_freq, sparse):
    modes = {"sum": 0, "mean": 1, "max": 2}
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    return modes[mode]


def _rows_of_bags(weight, input, offsets, scale_grad_by_freq):
    """The rows that the bags name, with a sparse gradient, and the numbers of these rows."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    from tenon.sparse._rows import Rows
    try:
        rows = Rows.apply(weight, input, -1)
    except IndexError:
        tenon.embedding_bag(weight.detach(), input, offsets)  # says which one it is
        raise
    return rows, tenon.arange(input.numel(), dtype=input.dtype, device=input.device)


@overridable
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or largest of the rows of each bag: `input` is (B, N), or flat with the bags' starts in `offsets`."""
    if weight.dtype == tenon.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=3,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
            f"as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        end = input.numel() + bool(include_last_offset)
        offsets = tenon.arange(0, end, input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    number = _bag_modes(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx = padding_idx + rows if padding_idx < 0 else padding_idx
        if sparse:
            input, offsets, per_sample_weights = _without_padding(
                input, offsets, padding_idx, per_sample_weights, include_last_offset
            )
            padding_idx = None
    if sparse and weight.requires_grad and tenon.is_grad_enabled():
        weight, input = _rows_of_bags(weight, input, offsets, scale_grad_by_freq)
    return tenon.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]
