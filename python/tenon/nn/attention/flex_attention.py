# SPDX-License-Identifier: MIT
"""Attention with a score function and a mask function of the user's. Scores are computed densely; the functions see one element
at a time, as numbers without dimensions: they are mapped over batches, heads, queries and keys. A `BlockMask` lists the blocks
of the scores that are looked at, and which of them need the mask function."""

import math
from collections import namedtuple
from collections.abc import Callable
from enum import Enum

import tenon

__all__ = ["BlockMask", "flex_attention", "AuxOutput", "AuxRequest", "FlexKernelOptions", "create_block_mask", "create_mask",
           "or_masks", "and_masks", "noop_mask"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

_score_mod_signature = Callable[[tenon.Tensor] * 5, tenon.Tensor]
_mask_mod_signature = Callable[[tenon.Tensor] * 4, tenon.Tensor]

AuxRequest = namedtuple("AuxRequest", ["lse", "max_scores"], defaults=(False, False))
AuxOutput = namedtuple("AuxOutput", ["lse", "max_scores"], defaults=(None, None))


class _ModificationType(Enum):
    """What a function of the user's is."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


class FlexKernelOptions(dict):
    """Hints for kernels of accelerators, which change nothing here."""


def _identity(score, batch, head, token_q, token_kv):
    """The score as it is."""
    return score


def noop_mask(batch, head, token_q, token_kv):
    """Everything may look at everything."""
    return batch.new_ones(size=(), dtype=tenon.bool, device=batch.device)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    """The mask function of a slice, which would be asked about the wrong positions."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def _vmap_for_bhqkv(fn, prefix, suffix=(), out_dims=0, group_dim=False):
    """`fn` of single indices (batch, head, query, key), mapped over a vector of each. `prefix` and `suffix` are the `in_dims`
    of what comes before and after them; with `group_dim` the heads come as groups and heads in a group."""
    from tenon.func import vmap

    order = (3, 2, 1, 1, 0) if group_dim else (3, 2, 1, 0)
    for dim in order:
        fn = vmap(fn, in_dims=(*prefix, *(0 if i == dim else None for i in range(4)), *suffix), out_dims=out_dims)
    return fn


def _apply(fn, B, H, Q, KV, device, scores=None):
    """What `fn` gives for every element: (B, H, Q, KV)."""
    indices = [tenon.arange(n, device=device) for n in (B, H, Q, KV)]
    if scores is None:
        return _vmap_for_bhqkv(fn, ())(*indices)
    return _vmap_for_bhqkv(fn, (0,))(scores, *indices)


def or_masks(*mask_mods):
    """True where any of the masks is."""
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=tenon.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods):
    """True where all of the masks are."""
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=tenon.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _get_mod_type(fn):
    """A score function takes a score and four indices, a mask function the indices alone."""
    from inspect import Parameter, signature

    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in places and p.default is Parameter.empty for p in signature(fn).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return _ModificationType.SCORE_MOD if count == 5 else _ModificationType.MASK_MOD


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The dense mask (B, H, Q_LEN, KV_LEN) of a mask function; of a score function where it gives no minus infinity."""
    B = 1 if B is None else B
    H = 1 if H is None else H
    if _get_mod_type(mod_fn) is _ModificationType.SCORE_MOD:
        out = _apply(mod_fn, B, H, Q_LEN, KV_LEN, device, tenon.zeros(B, H, Q_LEN, KV_LEN, device=device))
        return ~tenon.isneginf(out)
    return _apply(mod_fn, B, H, Q_LEN, KV_LEN, device)


def _listed(dense):
    """How many blocks of each row are set, and the columns, those that are set first: the two halves of a list of blocks."""
    dense = dense.to(tenon.int32)
    counts = dense.sum(-1).to(tenon.int32)
    return counts, tenon.argsort(dense, dim=-1, descending=True, stable=True).to(tenon.int32)


def _unlisted(counts, indices, columns):
    """Which blocks a list names: 1 for those, 0 for others, (…, rows, columns)."""
    named = tenon.arange(indices.size(-1), device=indices.device) < counts.unsqueeze(-1)
    room = counts.new_zeros((*counts.shape, columns + 1))  # one more column, where places that are not used write
    where = tenon.where(named, indices, columns).long()
    room.scatter_(-1, where, tenon.ones_like(where, dtype=room.dtype))
    return room[..., :columns]


class BlockMask:
    """Which blocks of the scores are looked at. `kv_num_blocks` (B, H, rows) and `kv_indices` (B, H, rows, columns) list, for
    each block of queries, the blocks of keys where `mask_mod` decides; the `full_` ones those where everything may be looked
    at. The same by blocks of keys is in `q_num_blocks` and `q_indices`."""

    _TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
                "full_q_num_blocks", "full_q_indices")

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices,
                 full_q_num_blocks, full_q_indices, BLOCK_SIZE, mask_mod):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                       BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, seq_lengths=None, compute_q_blocks=True):
        """A mask from its lists of blocks of keys; those by blocks of keys follow from them."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        other = [None] * 4
        if compute_q_blocks:
            other[:2] = _listed(_unlisted(kv_num_blocks, kv_indices, columns).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                other[2:] = _listed(_unlisted(full_kv_num_blocks, full_kv_indices, columns).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (rows * BLOCK_SIZE[0], columns * BLOCK_SIZE[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *other, BLOCK_SIZE,
                   noop_mask if mask_mod is None else mask_mod)

    def as_tuple(self, flatten=True):
        """What the constructor takes; with `flatten` pairs of numbers are two items."""
        tensors = tuple(getattr(self, name) for name in self._TENSORS)
        if flatten:
            return (*self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod)

    @property
    def shape(self):
        """(B, H, Q, KV)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of elements of the mask."""
        return math.prod(self.shape)

    def __getitem__(self, index):
        """The lists at an index of batches, heads and blocks of queries; an integer keeps its dimension, with one item. The
        slice has no mask function: give it one that knows the positions."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i + n if i < 0 else i, (i + n if i < 0 else i) + 1) if isinstance(i, int) else i
                      for i, n in zip(index, self.kv_num_blocks.shape))

        def at(name):
            tensor = getattr(self, name)
            return None if tensor is None else tensor[index]

        return BlockMask.from_kv_blocks(*map(at, self._TENSORS[:4]), BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced_mask_mod_error,
                                        seq_lengths=self.seq_lengths, compute_q_blocks=self.q_indices is not None)

    def _adjust(self, new_q_len, new_kv_len):
        """The blocks of the first queries and keys, up to whole blocks."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        lists = []
        for counts, indices in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            if counts is None:
                lists += [None, None]
            else:
                lists += _listed(_unlisted(counts, indices, indices.size(-1))[..., :rows, :columns])
        return BlockMask.from_kv_blocks(*lists, self.BLOCK_SIZE, self.mask_mod)

    def to_dense(self):
        """1 for every block (B, H, Q blocks, KV blocks) that is looked at."""
        dense = _unlisted(self.kv_num_blocks, self.kv_indices, self.kv_indices.size(-1))
        if self.full_kv_num_blocks is not None:
            dense = dense | _unlisted(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.size(-1))
        return dense

    def _elements(self, B, H, device):
        """The mask element by element, (B or 1, H or 1, Q, KV)."""
        q, kv = self.seq_lengths

        def spread(counts, indices):
            blocks = _unlisted(counts, indices, indices.size(-1)).to(device=device, dtype=tenon.bool)
            return blocks.repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)[..., :q, :kv]

        if self.mask_mod is noop_mask:
            mask = spread(self.kv_num_blocks, self.kv_indices)
        else:
            mask = _apply(self.mask_mod, B, H, q, kv, device).to(tenon.bool) & spread(self.kv_num_blocks, self.kv_indices)
        return mask if self.full_kv_num_blocks is None else mask | spread(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self):
        """The share of the scores, in percent, that is not looked at, counted in blocks."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device):
        """The same mask on another device."""
        moved = (None if t is None else t.to(device) for t in (getattr(self, name) for name in self._TENSORS))
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4):
        """A picture of each head's blocks, `limit` of them: full where all is looked at, light where some is. `grid_size` is
        the most rows and columns that are drawn; -1 draws every block."""
        dense = self.to_dense().reshape(-1, *self.kv_indices.shape[-2:])
        rows, columns = dense.shape[-2:]
        sizes = (rows, columns) if grid_size == -1 else (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // size)) for n, size in zip((rows, columns), sizes)]
        heads = self.kv_indices.shape[:-2]
        text = ""
        for i in range(dense.size(0)):
            if i == limit:
                return text + ("...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                               "You can also index (BlockMask[batch, head]) to choose a specific batch or head\n")
            place = []
            for n in reversed(heads):
                i, at = divmod(i, n)
                place.insert(0, at)
            text += f"{tuple(place)}\n"
            picture = dense[sum(p * math.prod(heads[d + 1:]) for d, p in enumerate(place))]
            for r in range(0, rows, steps[0]):
                for c in range(0, columns, steps[1]):
                    share = picture[r:r + steps[0], c:c + steps[1]].float().mean().item()
                    text += "  " if share == 0 else "██" if share == 1 else "░░"
                text += "\n"
            text += "\n"
        return text.rstrip("\n") + "\n"

    def __repr__(self):
        lines = [f"    {name}={None if t is None else t.shape},\n" for name in self._TENSORS for t in (getattr(self, name),)]
        return (f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
                f"    sparsity={self.sparsity():.2f}%,\n"
                f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)")

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False):
    """The `BlockMask` of a mask function `mask_mod(b, h, q_idx, kv_idx)`."""
    if not callable(mask_mod) or _get_mod_type(mask_mod) is not _ModificationType.MASK_MOD:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    bq, bkv = BLOCK_SIZE
    mask = tenon.nn.functional.pad(mask.to(tenon.int32), (0, -KV_LEN % bkv, 0, -Q_LEN % bq))
    shape = mask.shape
    counts = mask.reshape(*shape[:2], shape[2] // bq, bq, shape[3] // bkv, bkv).sum((3, 5))
    full = counts == bq * bkv
    return BlockMask.from_kv_blocks(*_listed((counts > 0) & ~full), *_listed(full), BLOCK_SIZE, mask_mod, (Q_LEN, KV_LEN))


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(query @ key.T * scale)) @ value for (B, H, L, E), (B, Hkv, S, E) and (B, Hkv, S, Ev)."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4:
            raise NotImplementedError(f"NYI: query, key, and value must be 4D tensors, got {name} with {x.dim()} dimensions")
    B, H, L, E = query.shape
    groups = key.size(1)
    if groups != H:
        if not enable_gqa:
            raise ValueError(
                f"Expect query and key/value to have the same number of heads but got Hq={H} and Hkv={groups}. Try setting "
                "enable_gqa=True for GQA."
            )
        if H % groups != 0:
            raise ValueError(
                f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={H} and Hkv={groups}."
            )
        key = key.repeat_interleave(H // groups, dim=1)
        value = value.repeat_interleave(H // groups, dim=1)
    S = key.size(2)
    scores = query @ key.transpose(-2, -1) * (1.0 / math.sqrt(E) if scale is None else scale)
    if score_mod is not None and score_mod is not _identity:
        scores = _apply(score_mod, B, H, L, S, query.device, scores.expand(B, H, L, S)).to(query.dtype)
    if block_mask is not None:
        q_len, kv_len = block_mask.seq_lengths
        if (q_len, kv_len) != (L, S):
            text = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={L} and kv_len={S}. "
            if L > q_len or S > kv_len:
                raise ValueError(text + "As the block mask was created for a smaller length than you're using it for, you likely "
                                 "need to create a new block mask.")
            raise ValueError(
                text + "As the block mask was created for a larger length than you're using it for, you can either 1. create a "
                "new block mask with the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
                "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, which does "
                "not work for all mask_mods!"
            )
        scores = scores.masked_fill(~block_mask._elements(B, H, scores.device), float("-inf"))
    lse = scores.logsumexp(-1)
    weights = scores.softmax(-1)
    if block_mask is not None or score_mod is not None:
        weights = weights.masked_fill((lse == float("-inf")).unsqueeze(-1), 0.0)  # a row that may look nowhere gives zero
    out = weights @ value
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out
