# SPDX-License-Identifier: MIT
"""Multi-head attention as one function, with the checks and mask rules of `MultiheadAttention`."""

import math
import warnings

import tenon
from tenon.nn.functional._shared import op, overridable
from tenon.nn.functional._dropout import dropout

scaled_dot_product_attention = op("scaled_dot_product_attention")
linear = op("linear")


def _in_projection_packed(q, k, v, w, b=None):
    """Queries, keys and values through the three parts of one matrix (3E, E); one product where they are the same tensor."""
    dim = q.size(-1)
    if k is v:
        if q is k:
            return list(linear(q, w, b).chunk(3, dim=-1))
        w_q, w_kv = w.split([dim, dim * 2])
        b_q, b_kv = (None, None) if b is None else b.split([dim, dim * 2])
        return [linear(q, w_q, b_q), *linear(k, w_kv, b_kv).chunk(2, dim=-1)]
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, w_x, b_x) for x, w_x, b_x in zip((q, k, v), w.chunk(3), biases)]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Queries, keys and values each through its own matrix; all come out with the width of the queries."""
    e = q.size(-1)
    for name, w, wanted in (("query", w_q, (e, e)), ("key", w_k, (e, k.size(-1))), ("value", w_v, (e, v.size(-1)))):
        if tuple(w.shape) != wanted:
            raise AssertionError(f"expecting {name} weights shape of {wanted}, but got {w.shape}")
    for name, b in (("query", b_q), ("key", b_k), ("value", b_v)):
        if b is not None and tuple(b.shape) != (e,):
            raise AssertionError(f"expecting {name} bias shape of {(e,)}, but got {b.shape}")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the call is batched; all three inputs and the masks must fit that."""
    batched = query.dim() == 3
    if not batched and query.dim() != 2:
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    kind, dims, mask_dims = ("batched", 3, 2) if batched else ("unbatched", 2, 1)
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != mask_dims:
        raise AssertionError(
            f"For {kind} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or {mask_dims}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                "tensor instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.dim() == 3 and tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return batched


def _none_or_dtype(input):
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask to add to the scores: a boolean one becomes -inf where it is True."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != tenon.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=3
        )
    if not is_float:
        mask = tenon.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def _check_key_padding_mask(key_padding_mask, src_len, bsz):
    for dim, wanted in enumerate((bsz, src_len)):
        if key_padding_mask.shape[dim] != wanted:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {key_padding_mask.shape[dim]}"
            )


def _widen(mask, count=1):
    """Room in a mask for keys that are appended: they are never masked."""
    return None if mask is None else tenon.constant_pad_nd(mask, (0, count))


def _heads(x, length, rows, head_dim):
    return x.reshape(length, rows, head_dim).transpose(0, 1)


def _static(x, name, rows, head_dim):
    for dim, wanted, what in ((0, rows, 0), (2, head_dim, 2)):
        if x.size(dim) != wanted:
            raise AssertionError(f"expecting {name}.size({what}) of {wanted}, but got {x.size(dim)}")
    return x


@overridable
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention with projections. query (L, N, E), key (S, N, Ek), value (S, N, Ev), or all without N.

    Gives (L, N, E) and, with `need_weights`, the weights (N, L, S), or (N, heads, L, S) when they are not averaged.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_q = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_q else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the mask is the causal one, which attention makes itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        for name, w in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if w is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        wanted = (tgt_len, src_len) if attn_mask.dim() == 2 else (bsz * num_heads, tgt_len, src_len)
        if attn_mask.dim() not in (2, 3):
            raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {wanted}."
            )
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)

    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = tenon.cat([k, bias_k.repeat(1, bsz, 1)])
        v = tenon.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError(f"bias_{'v' if bias_k is not None else 'k'} is None but the other bias is not")

    rows = bsz * num_heads
    q = _heads(q, tgt_len, rows, head_dim)
    k = _heads(k, k.shape[0], rows, head_dim) if static_k is None else _static(static_k, "static_k", rows, head_dim)
    v = _heads(v, v.shape[0], rows, head_dim) if static_v is None else _static(static_v, "static_v", rows, head_dim)
    if add_zero_attn:
        k = tenon.cat([k, tenon.zeros((rows, 1, head_dim), dtype=k.dtype, device=k.device)], dim=1)
        v = tenon.cat([v, tenon.zeros((rows, 1, head_dim), dtype=v.dtype, device=v.device)], dim=1)
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        _check_key_padding_mask(key_padding_mask, src_len, bsz)
        padding = key_padding_mask.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1).reshape(rows, 1, src_len)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        scaled = q * math.sqrt(1.0 / head_dim)
        keys = k.transpose(-2, -1)
        scores = tenon.bmm(scaled, keys) if attn_mask is None else tenon.baddbmm(attn_mask, scaled, keys)
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = dropout(weights, p=dropout_p)
        out = tenon.bmm(weights, v).transpose(0, 1).reshape(tgt_len * bsz, embed_dim)
        out = linear(out, out_proj_weight, out_proj_bias).view(tgt_len, bsz, out_proj_weight.size(0))
        weights = weights.view(bsz, num_heads, tgt_len, src_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))

    if attn_mask is not None:
        one = attn_mask.size(0) == 1 and attn_mask.dim() == 3
        attn_mask = attn_mask.unsqueeze(0) if one else attn_mask.view(bsz, num_heads, attn_mask.size(1), src_len)
    q = q.view(bsz, num_heads, tgt_len, head_dim)
    k = k.view(bsz, num_heads, src_len, head_dim)
    v = v.view(bsz, num_heads, src_len, head_dim)
    out = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    out = out.permute(2, 0, 1, 3).reshape(bsz * tgt_len, embed_dim)
    out = linear(out, out_proj_weight, out_proj_bias).view(tgt_len, bsz, out_proj_weight.size(0))
    return (out, None) if batched else (out.squeeze(1), None)
