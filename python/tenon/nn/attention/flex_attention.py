# SPDX-License-Identifier: MIT
"""Attention with a score function and a mask function of the user's, computed densely: the functions are called once with index
tensors that broadcast, so they must work element by element (or look tables up by index)."""

import math
from collections import namedtuple

import tenon

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "flex_attention", "create_block_mask", "create_mask", "or_masks", "and_masks", "noop_mask"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

AuxRequest = namedtuple("AuxRequest", ["lse", "max_scores"], defaults=(False, False))
AuxOutput = namedtuple("AuxOutput", ["lse", "max_scores"], defaults=(None, None))


def noop_mask(batch, head, token_q, token_kv):
    """Everything may look at everything."""
    return batch.new_ones(size=(), dtype=tenon.bool, device=batch.device)


def _indices(B, H, Q, KV, device):
    """Index tensors of the four dimensions, which broadcast to (B, H, Q, KV)."""
    out = []
    for dim, n in enumerate((B, H, Q, KV)):
        shape = [1, 1, 1, 1]
        shape[dim] = n
        out.append(tenon.arange(n, device=device).reshape(shape))
    return out


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


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The dense mask (B, H, Q_LEN, KV_LEN) of a mask function; for a score function what it adds to scores of zero."""
    B = 1 if B is None else B
    H = 1 if H is None else H
    b, h, q, kv = _indices(B, H, Q_LEN, KV_LEN, device)
    if getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4) == 5:  # a score function: its first argument is the score
        zeros = tenon.zeros(B, H, Q_LEN, KV_LEN, device=device)
        out = mod_fn(zeros, b, h, q, kv)
        return tenon.where(tenon.isneginf(out), False, True)
    return mod_fn(b, h, q, kv).expand(B, H, Q_LEN, KV_LEN)


class BlockMask:
    """A mask function with its sizes. `to_dense` gives which blocks have anything to attend to."""

    def __init__(self, mask_mod, B, H, seq_lengths, BLOCK_SIZE, device=None):
        self.mask_mod = mask_mod
        self.B = B
        self.H = H
        self.seq_lengths = tuple(seq_lengths)
        self.BLOCK_SIZE = BLOCK_SIZE
        self.device = device
        self._dense = None

    def dense_mask(self):
        """The mask element by element: (B, H, Q, KV), made once."""
        if self._dense is None:
            self._dense = create_mask(self.mask_mod, self.B, self.H, *self.seq_lengths, device=self.device)
        return self._dense

    @property
    def shape(self):
        """(B, H, Q, KV)."""
        return (self.B, self.H, *self.seq_lengths)

    def numel(self):
        """The number of elements of the mask."""
        return math.prod(self.shape)

    def to_dense(self):
        """1 for every block (B, H, Q blocks, KV blocks) where something is allowed."""
        q, kv = self.seq_lengths
        bq, bkv = self.BLOCK_SIZE
        padded = tenon.nn.functional.pad(self.dense_mask().to(tenon.uint8), (0, -kv % bkv, 0, -q % bq))
        blocks = padded.reshape(self.B, self.H, padded.size(2) // bq, bq, padded.size(3) // bkv, bkv)
        return blocks.amax((3, 5)).to(tenon.int32)

    def sparsity(self):
        """The share of blocks, in percent, that nothing attends to."""
        dense = self.to_dense()
        return 100 * (1 - float(dense.sum()) / dense.numel())

    def to(self, device):
        """The same mask on another device."""
        return BlockMask(self.mask_mod, self.B, self.H, self.seq_lengths, self.BLOCK_SIZE, device)

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"

    def __str__(self):
        return repr(self)


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False):
    """A `BlockMask` of a mask function `mask_mod(b, h, q_idx, kv_idx)`."""
    if not callable(mask_mod):
        raise AssertionError("create_block_mask requires a mask_mod function")
    if isinstance(BLOCK_SIZE, int):
        BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE)
    return BlockMask(mask_mod, 1 if B is None else B, 1 if H is None else H, (Q_LEN, KV_LEN), tuple(BLOCK_SIZE), device)


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
    if score_mod is not None:
        scores = score_mod(scores, *_indices(B, H, L, S, query.device)).to(query.dtype)
    if block_mask is not None:
        if tuple(block_mask.seq_lengths) != (L, S):
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={L} and kv_len={S}. As the block "
                "mask was created for a larger length than you're using it for, you can either 1. create a new block mask with "
                "the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
                "block_mask._adjust(q_len, kv_len)."
            )
        scores = scores.masked_fill(~block_mask.dense_mask().to(scores.device), float("-inf"))
    lse = scores.logsumexp(-1)
    weights = scores.softmax(-1)
    if block_mask is not None or score_mod is not None:
        weights = weights.masked_fill((lse == float("-inf")).unsqueeze(-1), 0.0)  # a row that may look nowhere gives zero
    out = weights @ value
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out
