#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/ops/tier_a.txt: what tests/ops/test_tier_a.c wants to exist, as PyTorch prints it.

The names are those that MLPs, convolutional networks, transformers and recurrent networks are trained with; the overloads,
in-place and out= variants and schemas of each come from PyTorch's own table, and so do the overloads of the core opset.
Left out: overloads over named dimensions, those that PyTorch itself has only for accelerators (but for that of rms_norm's gradient), and variants that it
generates for its own functionalization.

A line is a schema behind a word: `values` where a golden case must show the operator's values, `geometry` where sizes,
strides and dtype are all there is to compare: random numbers and memory that nobody has written; `dynamic` where sizes
depend on values, so that Meta has no answer."""

import os
import re

import torch

# Names stand for all their overloads, and for `name_`; `name.overload` for that one.
NAMES = """
empty.memory_format empty_strided empty_like new_empty new_empty_strided full full_like zeros zeros_like ones ones_like
new_zeros new_ones new_full arange linspace eye tril_indices scalar_tensor clone copy_ _to_copy to contiguous fill zero
lift_fresh detach alias set_.source_Storage_storage_offset resize_ _local_scalar_dense item

rand randn randint randperm uniform_ normal_ bernoulli native_dropout native_dropout_backward dropout multinomial

view _unsafe_view reshape _reshape_alias as_strided t transpose permute expand squeeze unsqueeze select slice narrow split
split_with_sizes chunk unsafe_chunk unbind flatten diagonal view_as expand_as movedim

add sub mul div rsub neg reciprocal abs sign exp log log1p expm1 sqrt rsqrt sin cos tanh sigmoid erf pow square clamp
clamp_min clamp_max maximum minimum floor ceil round trunc where masked_fill lerp addcmul addcdiv floor_divide remainder fmod

eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not
bitwise_xor equal any all

relu threshold_backward gelu gelu_backward silu silu_backward leaky_relu leaky_relu_backward elu elu_backward softplus
softplus_backward hardtanh hardtanh_backward hardswish hardswish_backward hardsigmoid hardsigmoid_backward
log_sigmoid_forward log_sigmoid_backward glu glu_backward mish selu sigmoid_backward tanh_backward softmax _softmax
_softmax_backward_data log_softmax _log_softmax _log_softmax_backward_data

sum mean var std var_mean prod amax amin max min argmax argmin logsumexp linalg_vector_norm norm cumsum topk sort argsort
median count_nonzero _unique2

index index_put _index_put_impl_ index_select index_add gather scatter scatter_add masked_select nonzero embedding
embedding_dense_backward one_hot tril triu roll flip repeat repeat_interleave

cat stack constant_pad_nd pad reflection_pad2d reflection_pad2d_backward replication_pad2d replication_pad2d_backward

mm addmm bmm baddbmm mv addmv dot outer matmul linear einsum bilinear

native_layer_norm native_layer_norm_backward layer_norm native_batch_norm native_batch_norm_backward batch_norm
_native_batch_norm_legit _native_batch_norm_legit_no_training native_group_norm native_group_norm_backward group_norm
instance_norm rms_norm _fused_rms_norm _fused_rms_norm_backward

convolution convolution_backward conv1d conv2d conv3d conv_transpose2d max_pool2d_with_indices
max_pool2d_with_indices_backward max_pool2d avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d
_adaptive_avg_pool2d_backward adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_backward upsample_nearest2d
upsample_nearest2d_backward upsample_bilinear2d upsample_bilinear2d_backward

scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu
_scaled_dot_product_flash_attention_for_cpu_backward _safe_softmax

lstm gru rnn_tanh lstm_cell gru_cell _pack_padded_sequence _pack_padded_sequence_backward _pad_packed_sequence

cross_entropy_loss nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward nll_loss_nd mse_loss
mse_loss_backward l1_loss smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward binary_cross_entropy
binary_cross_entropy_backward binary_cross_entropy_with_logits kl_div cosine_embedding_loss

_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_addcmul _foreach_addcdiv _foreach_lerp _foreach_sqrt
_foreach_neg _foreach_norm _foreach_zero _foreach_copy _fused_sgd_ _fused_adam_ _fused_adamw_
"""
# Random numbers, and memory that nobody has written.
NO_VALUES = ("bernoulli", "multinomial", "normal_", "rand", "uniform_", "empty", "new_empty", "resize_")
NAMED_DIMENSIONS = re.compile(r"dimname|names|(^|\.)named_", re.I)


def overloads():
    """Every overload of aten in PyTorch's table, by full name."""
    table = {}
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            name, _, overload = full[6:].partition(".")
            table[full[6:]] = getattr(getattr(torch.ops.aten, name), overload or "default")
    return table


def wanted(table):
    chosen = {}
    for name in NAMES.split():
        found = {full: op for full, op in table.items()
                 if full == name or full.split(".")[0] in (name, name + "_") and "." not in name}
        if not found:
            raise SystemExit("PyTorch has no operator " + name)
        chosen.update((full, op) for full, op in found.items()
                      if torch.Tag.generated not in op.tags and not NAMED_DIMENSIONS.search(full)
                      and runs_on_cpu(full))
    chosen.update((full, op) for full, op in table.items() if torch.Tag.core in op.tags)
    return chosen


def kind(full, op):
    if torch.Tag.dynamic_output_shape in op.tags:
        return "dynamic"
    return "geometry" if full.startswith(NO_VALUES) else "values"


def runs_on_cpu(full):
    """Or is wanted there all the same."""
    return full == "_fused_rms_norm_backward" or torch._C._dispatch_has_computed_kernel_for_dispatch_key("aten::" + full, "CPU")


def main():
    chosen = wanted(overloads())
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "tier_a.txt")
    with open(path, "w", encoding="ascii") as out:
        out.write("# Made by tests/golden/make_tier_a.py with PyTorch %s.\n" % torch.__version__.split("+")[0])
        for full in sorted(chosen):
            out.write("%s %s\n" % (kind(full, chosen[full]), chosen[full]._schema))


if __name__ == "__main__":
    main()
