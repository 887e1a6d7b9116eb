# SPDX-License-Identifier: MIT
"""Helpers around modules: clipping gradients, parameters as one vector, reparametrization, fusing, sequences."""

from tenon.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tenon.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from tenon.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from tenon.nn.utils.init import skip_init
from tenon.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from tenon.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tenon.nn.utils.weight_norm import remove_weight_norm, weight_norm
from tenon._typing import Any as _Any

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grads_with_norm_",
    "clip_grad_value_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]


_MODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")


def __dir__():
    return sorted({*globals(), *_MODULES})


def __getattr__(name) -> _Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
