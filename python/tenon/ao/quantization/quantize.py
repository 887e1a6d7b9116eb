# SPDX-License-Identifier: MIT
"""quantize_dynamic: a model whose linear layers have 8-bit weights."""

import copy

import tenon
from tenon import nn

from .qconfig import default_dynamic_qconfig, float16_dynamic_qconfig

__all__ = ["quantize_dynamic"]

_NEVER = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell, nn.EmbeddingBag, nn.Embedding)


def quantize_dynamic(model, qconfig_spec=None, dtype=tenon.qint8, mapping=None, inplace=False):
    """A copy of a model in which linear layers are quantized: all of them, or those that `qconfig_spec`, a set of classes and
    names or a dict from them to configurations, says."""
    configs = {tenon.qint8: default_dynamic_qconfig, tenon.float16: float16_dynamic_qconfig}
    if qconfig_spec is None or isinstance(qconfig_spec, (set, frozenset, list, tuple)):
        if dtype not in configs:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        names = (nn.Linear,) + _NEVER[:-2] if qconfig_spec is None else qconfig_spec
        qconfig_spec = {name: configs[dtype] for name in names}
    if mapping is None:
        from tenon.ao.nn.quantized import dynamic
        mapping = {nn.Linear: dynamic.Linear}
    model = model if inplace else copy.deepcopy(model)
    _convert(model, "", None, dict(qconfig_spec), mapping)
    return model


def _convert(module, prefix, config, spec, mapping):
    for name, child in list(module.named_children()):
        path = prefix + name
        chosen = spec.get(path, spec.get(type(child), config))
        made = mapping.get(type(child)) if chosen is not None else None
        if made is not None:
            child.qconfig = chosen
            setattr(module, name, made.from_float(child))
            continue
        if chosen is not None and isinstance(child, _NEVER):
            raise NotImplementedError("quantize_dynamic: %s %r cannot be quantized in Tenon; name the classes to quantize, as in "
                                      "quantize_dynamic(model, {torch.nn.Linear})" % (type(child).__name__, path))
        _convert(child, path + ".", chosen, spec, mapping)
