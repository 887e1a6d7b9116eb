# SPDX-License-Identifier: MIT
"""Batches from samples: default_collate stacks, default_convert only turns arrays into tensors."""

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
import copy
import re

import tenon

__all__ = ["collate", "default_collate", "default_convert"]

np_str_obj_array_pattern = _TEXT_DTYPE = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}")


def _is_numpy(value):
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_", "bytes_")


def default_convert(data):
    """Arrays as tensors, inside containers too; all else as it is."""
    if isinstance(data, tenon.Tensor):
        return data
    if _is_numpy(data):
        if type(data).__name__ == "ndarray" and _TEXT_DTYPE.search(data.dtype.str) is not None:
            return data
        return tenon.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def _like_mapping(example, values):
    """The values in a mapping of the example's class where that can be made."""
    try:
        if isinstance(example, MutableMapping):
            made = copy.copy(example)
            made.update(values)
            return made
        return type(example)(values)
    except TypeError:
        return dict(values)


def _like_sequence(example, values):
    try:
        if isinstance(example, MutableSequence):
            made = copy.copy(example)
            for i, value in enumerate(values):
                made[i] = value
            return made
        return type(example)(values)
    except TypeError:
        return list(values)


def collate(batch, *, collate_fn_map=None):
    """One batch of the samples. collate_fn_map adds functions for types of one's own."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((collate_fn_map[one] for one in collate_fn_map if isinstance(first, one)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
                                     for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        size = len(first)
        if not all(len(sample) == size for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return tenon.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if _TEXT_DTYPE.search(batch[0].dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([tenon.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return tenon.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return tenon.tensor(batch, dtype=tenon.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return tenon.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    tenon.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Stack tensors, arrays and numbers; go into lists, tuples and dicts; leave strings in a list."""
    first = batch[0]
    if isinstance(first, tenon.Tensor):
        return tenon.stack(batch, 0)
    return collate(batch, collate_fn_map=_with_numpy(batch))


def _with_numpy(batch):
    """The table, with NumPy's types once NumPy is in use."""
    import sys
    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.ndarray not in default_collate_fn_map:
        default_collate_fn_map[numpy.ndarray] = collate_numpy_array_fn
        default_collate_fn_map[(numpy.bool_, numpy.number, numpy.object_)] = collate_numpy_scalar_fn
    return default_collate_fn_map
