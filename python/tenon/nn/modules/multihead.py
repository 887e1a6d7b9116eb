# SPDX-License-Identifier: MIT
"""`MultiheadAttention`."""

import tenon
import tenon.nn.functional as F
from tenon.nn import init
from tenon.nn.modules.linear import NonDynamicallyQuantizableLinear
from tenon.nn.modules.module import Module
from tenon.nn.parameter import Parameter

_PROJECTIONS = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


def _in_parts(given):
    """Whether it is a nested tensor of the strided layout: its parts are attended one by one."""
    return given.is_nested and given.layout is tenon.strided


class MultiheadAttention(Module):
    """Attention of `num_heads` heads with projections: query (L, N, E), key (S, N, kdim), value (S, N, vdim) to (L, N, E).

    With `batch_first` the batch stands first; inputs may have no batch at all, or be nested of
    the strided layout, without masks.
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(tenon.empty((3 * embed_dim, embed_dim), **made))
            for name in _PROJECTIONS:
                self.register_parameter(name, None)
        else:
            for name, width in zip(_PROJECTIONS, (embed_dim, self.kdim, self.vdim)):
                setattr(self, name, Parameter(tenon.empty((embed_dim, width), **made)))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(tenon.empty(3 * embed_dim, **made))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        if add_bias_kv:
            self.bias_k = Parameter(tenon.empty((1, 1, embed_dim), **made))
            self.bias_v = Parameter(tenon.empty((1, 1, embed_dim), **made))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        weights = [self.in_proj_weight] if self._qkv_same_embed_dim else [getattr(self, n) for n in _PROJECTIONS]
        for w in weights:
            init.xavier_uniform_(w)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for b in (self.bias_k, self.bias_v):
            if b is not None:
                init.xavier_normal_(b)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """(output, weights): the weights are None unless `need_weights`.

        `key_padding_mask` (N, S) and `attn_mask` (L, S) or (N * heads, L, S) are True, or -inf, where attention may not look.
        """
        if _in_parts(query) or _in_parts(key) or _in_parts(value):
            self._check_parts(query, key, value, key_padding_mask, attn_mask)
            return self._attend_parts(query, key, value, need_weights, average_attn_weights, is_causal)
        batched = query.dim() == 3
        mask_type = F._none_or_dtype(attn_mask)
        key_padding_mask = F._canonical_mask(key_padding_mask, "key_padding_mask", mask_type, "attn_mask", query.dtype)
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if self.batch_first and batched:
            # Tensors that are one object stay one object, so that their projection is one product.
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query = query.transpose(1, 0)
                    key = value = key.transpose(1, 0)
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        apart = {"use_separate_proj_weight": True} if not self._qkv_same_embed_dim else {}
        if apart:
            apart.update({name: getattr(self, name) for name in _PROJECTIONS})
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **apart,
        )
        if self.batch_first and batched:
            out = out.transpose(1, 0)
        return out, weights

    def _check_parts(self, query, key, value, key_padding_mask, attn_mask):
        """Raises unless the three are nested alike and nothing is asked that their parts have no place for."""
        if not (_in_parts(query) and _in_parts(key) and _in_parts(value)):
            why = "non-self attention was used (query, key, and value are not the same Tensor)"
        elif not self.batch_first:
            why = "batch_first was not True"
        elif key_padding_mask is not None or attn_mask is not None:
            why = "supplying src_key_padding_mask or src_mask is not supported with NestedTensor input"
        elif not len(query) == len(key) == len(value):
            why = f"query, key and value have {len(query)}, {len(key)} and {len(value)} parts"
        else:
            return
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path. "
            f"The fast path was not hit because {why}"
        )

    def _attend_parts(self, query, key, value, need_weights, average_attn_weights, is_causal):
        """Attention of nested tensors: each part looks at its own alone; weights are padded with zeros."""
        asked = {"need_weights": need_weights, "average_attn_weights": average_attn_weights, "is_causal": is_causal}
        made = [
            self.forward(q, k, v, **asked)
            for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
        ]
        out = tenon.nested.as_nested_tensor([part for part, _ in made])
        if not need_weights:
            return out, None
        weights = tenon.nested.as_nested_tensor([weight for _, weight in made])
        return out, weights.to_padded_tensor(0.0)

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """The two masks as one (N, heads, L, S), and the kind: 0 attention alone, 1 padding alone, 2 both."""
        mask_type, merged = None, None
        if key_padding_mask is not None:
            mask_type, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            mask_type = 2
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch, -1, length, length)
            else:
                merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
                merged = merged + padding
        return merged, mask_type


# Checkpoints name classes by their modules in PyTorch.
MultiheadAttention.__module__ = "tenon.nn.modules.activation"
