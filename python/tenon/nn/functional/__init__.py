# SPDX-License-Identifier: MIT
"""Layers as functions: activations, convolutions, pooling, normalizations, attention, losses."""

import tenon
from tenon.nn import _reduction as _Reduction
from tenon.nn import grad  # noqa: F401
from tenon.nn.functional._shared import op as _op
from tenon.nn.functional._activation import *  # noqa: F403
from tenon.nn.functional._activation import _get_softmax_dim, _threshold
from tenon.nn.functional._attention import *  # noqa: F403
from tenon.nn.functional._attention import (
    _canonical_mask,
    _check_key_padding_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)
from tenon.nn.functional._dropout import *  # noqa: F403
from tenon.nn.functional._loss import *  # noqa: F403
from tenon.nn.functional._norm import *  # noqa: F403
from tenon.nn.functional._norm import _verify_batch_size, _verify_spatial_size
from tenon.nn.functional._pooling import *  # noqa: F403
from tenon.nn.functional._pooling import _unpool_output_size
from tenon.nn.functional._sparse import *  # noqa: F403
from tenon.nn.functional._sparse import _no_grad_embedding_renorm_
from tenon.nn.functional._vision import *  # noqa: F403
from tenon.nn.modules.utils import _list_with_default, _pair, _single, _triple

Tensor = tenon.Tensor

for _name in (
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "bilinear cosine_similarity pairwise_distance pdist"
).split():
    globals()[_name] = _op(_name)
del _name


has_torch_function = tenon._C._has_torch_function
has_torch_function_unary = tenon._C._has_torch_function_unary
has_torch_function_variadic = tenon._C._has_torch_function_variadic


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the argument or mode that overrides `public_api` answer the call."""
    return tenon._C._override_call(public_api, args, kwargs, tuple(relevant_args))


conv_tbc = tenon.conv_tbc


del give_way, one_overridden, op, overridable, overridden, reduce_by, resolve, get_enum, legacy_get_string  # noqa: F821

# Where PyTorch has them: checkpoints name functions (the activation of a Transformer layer) by their modules.
for _function in list(globals().values()):
    if type(_function) is type(conv_tbc) and ".nn.functional._" in _function.__module__:
        _function.__module__ = _function.__module__.partition(".functional._")[0] + ".functional"
del _function
