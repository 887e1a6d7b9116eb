# SPDX-License-Identifier: MIT
"""Batches of sequences of different lengths: padded, and packed (all first steps, then all second steps, and so on)."""

from collections import namedtuple
from collections.abc import Iterable

import tenon

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]

_Fields = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
_Fields.__new__.__defaults__ = (None, None, None)


class PackedSequence(_Fields):
    """The rows of all steps, how many sequences each step still has, and the order the sequences were sorted into."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
                    "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                    "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
                )
        elif isinstance(data, (tuple, list)) and len(data) == 2:
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __reduce__(self):
        return (PackedSequence, tuple(self))

    def to(self, *args, **kwargs):
        """The same with `data` moved or cast, and the indices moved with it; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        keep = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        order, reverse = (
            None if x is None else x.to(data.device, **keep) for x in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, reverse)

    def cuda(self, *args, **kwargs):
        """On a CUDA device."""
        if "device" not in kwargs and not args:
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        """On the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self):
        """With float64 data."""
        return self.to(dtype=tenon.double)

    def float(self):
        """With float32 data."""
        return self.to(dtype=tenon.float)

    def half(self):
        """With float16 data."""
        return self.to(dtype=tenon.half)

    def long(self):
        """With int64 data."""
        return self.to(dtype=tenon.long)

    def int(self):
        """With int32 data."""
        return self.to(dtype=tenon.int)

    def short(self):
        """With int16 data."""
        return self.to(dtype=tenon.short)

    def char(self):
        """With int8 data."""
        return self.to(dtype=tenon.int8)

    def byte(self):
        """With uint8 data."""
        return self.to(dtype=tenon.uint8)

    def pin_memory(self):
        """With data in pinned memory."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    @property
    def is_cuda(self):
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes this one; None for None."""
    if permutation is None:
        return None
    output = tenon.empty_like(permutation)
    output.scatter_(0, permutation, tenon.arange(0, permutation.numel(), device=permutation.device))
    return output


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack (L, N, *) whose sequences have the given lengths; they must be sorted, longest first, if `enforce_sorted`."""
    if not isinstance(lengths, tenon.Tensor):
        lengths = tenon.as_tensor(lengths, dtype=tenon.int64, device="cpu")
    else:
        lengths = lengths.to(dtype=tenon.int64)
    if enforce_sorted:
        order = None
    else:
        lengths, order = tenon.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = tenon._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded (L, N, *) of a packed sequence, and the lengths, in the order before sorting."""
    longest = sequence.batch_sizes.size(0)
    if total_length is None:
        total_length = longest
    elif total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got total_length="
            f"{total_length} and max sequence length being {longest}"
        )
    padded, lengths = tenon._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length
    )
    reverse = sequence.unsorted_indices
    if reverse is not None:
        return padded.index_select(0 if batch_first else 1, reverse), lengths[reverse.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences (L_i, *) stacked into (L, N, *), padded to the longest on one side."""
    if isinstance(sequences, tenon.Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: " + str(type(sequences))
        )
    sequences = tuple(sequences)
    for i, s in enumerate(sequences):
        if not isinstance(s, tenon.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(s).__name__}")
    for at, name, value, kinds, wanted in ((2, "batch_first", batch_first, bool, "bool"),
                                           (3, "padding_value", padding_value, (int, float), "float"),
                                           (4, "padding_side", padding_side, str, "str")):
        if not isinstance(value, kinds):
            raise TypeError(
                f"pad_sequence(): argument '{name}' (position {at}) must be {wanted}, not {type(value).__name__}"
            )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    first = sequences[0]
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    rest = tuple(first.size()[1:])
    out = tenon.full(shape + rest, padding_value, dtype=first.dtype, device=first.device)
    for i, s in enumerate(sequences):
        begin = longest - s.size(0) if padding_side == "left" else 0
        row = out[i] if batch_first else out[:, i]
        row[begin : begin + s.size(0)].copy_(s)
    return out


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch, each with its own length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    places = tenon.arange(padded_sequences.shape[1], device=padded_sequences.device)
    return [seq[places < n] for seq, n in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences (L_i, *)."""
    lengths = tenon.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences of a packed one, in the order before sorting."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
