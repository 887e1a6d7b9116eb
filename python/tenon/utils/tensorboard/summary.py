# SPDX-License-Identifier: MIT
"""Summaries as bytes, for those who hand them to a writer's `file_writer.add_summary` themselves."""

import tenon
from tenon.utils.tensorboard import record

__all__ = ["hparams", "scalar", "text"]


def scalar(tag, tensor, collections=None, new_style=False, double_precision=False):
    return record.scalar(tag, float(tensor))


def text(tag, text):
    return record.text(tag, text)


def _value(value):
    """A google.protobuf.Value, and the number of its type in the plugin."""
    if isinstance(value, tenon.Tensor):
        value = value.item()
    if isinstance(value, (int, float)):  # a bool too, as PyTorch writes it
        return record.double(2, float(value)), 3
    if isinstance(value, str):
        return record.chunk(3, value), 1
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """Three summaries for the plugin of hyperparameters: what there is, what this run has, and that it ended."""
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError("parameter: %s should be a dictionary, nothing logged." % name)
    domains = hparam_domain_discrete or {}
    for name, values in domains.items():
        if name not in hparam_dict or not isinstance(values, list) or not all(
                isinstance(value, type(hparam_dict[name])) for value in values):
            raise TypeError("parameter: hparam_domain_discrete[%s] should be a list of same type as hparam_dict[%s]."
                            % (name, name))
    own = infos = b""
    for name, value in hparam_dict.items():
        if value is None:
            continue
        message, kind = _value(value)
        own += record.chunk(1, record.chunk(1, name) + record.chunk(2, message))
        info = record.chunk(1, name) + record.integer(4, kind)
        if name in domains:
            info += record.chunk(5, b"".join(record.chunk(1, _value(value)[0]) for value in domains[name]))
        infos += record.chunk(4, info)
    metrics = b"".join(record.chunk(5, record.chunk(1, record.chunk(2, name))) for name in metric_dict)

    def made(tag, field, message):
        return record.value("_hparams_/" + tag, b"", "hparams", record.chunk(field, message))

    return (made("experiment", 2, infos + metrics), made("session_start_info", 3, own),
            made("session_end_info", 4, record.integer(1, 1)))
