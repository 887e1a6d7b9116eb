# SPDX-License-Identifier: MIT
"""Nested tensors: a batch of tensors of one dimension of different lengths. Loaded when the first is made.

In the jagged layout the batch lies in one tensor of values, with offsets where each begins (_internal/nested_tensor.py). In the strided
layout, the default as in PyTorch, it is a list (_list.py)."""
import tenon

from ._internal.nested_tensor import NestedTensor, ragged_of
from ._list import ListTensor

__all__ = ["to_padded_tensor", "as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select"]


def _components(tensor_list, dtype, device):
    if not isinstance(tensor_list, (list, tuple, tenon.Tensor)):
        raise TypeError("nested_tensor(): Expected first argument to be a list of tensors")
    parts = list(tensor_list.unbind(0) if isinstance(tensor_list, tenon.Tensor) else tensor_list)
    parts = [p if isinstance(p, tenon.Tensor) else tenon.tensor(p, dtype=dtype) for p in parts]
    return [p.to(device=device or p.device, dtype=dtype or p.dtype) for p in parts]


def _make(parts, layout):
    if layout in (None, tenon.strided):
        return ListTensor._of(parts)
    if layout is not tenon.jagged:
        raise RuntimeError("Specified layout is unsupported: %s" % layout)
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = parts[0]
    for p in parts:
        if p.dim() != first.dim():
            raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
        if p.device != first.device or p.dtype != first.dtype:
            raise RuntimeError("When constructing a nested tensor, all tensors in list must be on the same device and of the "
                               "same dtype")
    ragged = [d for d in range(first.dim()) if any(p.shape[d] != first.shape[d] for p in parts)]
    if len(ragged) > 1:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged "
                           "layout only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with "
                           "ragged * dim.")
    at = ragged[0] if ragged else 0
    lengths = [p.shape[at] for p in parts]
    offsets = tenon.tensor([0] + lengths, device=first.device).cumsum(0)
    return NestedTensor._of(tenon.cat(parts, at), offsets, None, at + 1, ragged_of(lengths))


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor with a copy of the given ones; it is a leaf."""
    with tenon.no_grad():
        made = _make([p.detach().clone() for p in _components(tensor_list, dtype, device)], layout)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of the given ones; gradients go to them."""
    if getattr(ts, "is_nested", False):
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    return _make(_components(ts, dtype, device), layout)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A view of `values` as a batch: one begins at each offset, and is as long as `lengths` says, or up to the next."""
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = tenon.nn.functional.pad(lengths.cumsum(0), (1, 0))
        lengths = None
    at = 1 if jagged_dim is None else jagged_dim
    ends = (offsets.diff() if lengths is None else lengths).tolist()
    return NestedTensor._of(values, offsets, lengths, at, ragged_of(ends))


def narrow(tensor, dim, start, length, layout=tenon.strided):
    """From element i of `tensor` the `length[i]` entries from `start[i]` on."""
    if dim != 1:
        raise RuntimeError("layout=torch.jagged: dim must be 1" if layout is tenon.jagged else "narrow: dim must be 1")
    batch, room = tensor.shape[:2]
    start, length = (x.expand(batch) if isinstance(x, tenon.Tensor) else tenon.full((batch,), x) for x in (start, length))
    if layout is not tenon.jagged:
        return ListTensor._of([t.narrow(0, int(s), int(n)) for t, s, n in zip(tensor, start, length)])
    begin = tenon.arange(batch) * room + start
    offsets = tenon.cat([begin, tenon.tensor([batch * room])])
    return NestedTensor._of(tensor.flatten(0, 1), offsets, length, 1, ragged_of(length.tolist()))


def masked_select(tensor, mask):
    """The elements of each row that a mask of (batch, length, …) takes."""
    if mask.layout is not tenon.strided:
        raise RuntimeError("torch.nested.masked_select requires a strided mask, given %s" % mask.layout)
    if tensor.layout is not tenon.strided:
        raise RuntimeError("torch.nested.masked_select requires a strided tensor, given %s" % tensor.layout)
    values = tensor.masked_select(mask)
    lengths = mask.expand(tensor.shape).flatten(1).sum(1)
    return nested_tensor_from_jagged(values, tenon.nn.functional.pad(lengths.cumsum(0), (1, 0)))


def to_padded_tensor(input, padding, output_size=None):
    """All of one length: `padding` where there is nothing."""
    return input.to_padded_tensor(padding, output_size)
