# SPDX-License-Identifier: MIT
"""Inputs in parts for devices, and results together again. Without a GPU there is one part."""

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs, target_gpus, dim=0):
    """The inputs, once for each device: tensors cut along a dimension, other objects as they are."""
    import tenon
    n = len(target_gpus)

    def parts(value):
        if isinstance(value, tenon.Tensor):
            cut = value.chunk(n, dim)
            return list(cut)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*one) for one in zip(*map(parts, value))]
        if isinstance(value, (tuple, list)) and len(value) > 0:
            return [type(value)(one) for one in zip(*map(parts, value))]
        if isinstance(value, dict) and len(value) > 0:
            return [type(value)(one) for one in zip(*map(parts, value.items()))]
        return [value for _ in range(n)]

    return parts(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(inputs), len(kwargs))
    inputs += [()] * (n - len(inputs))
    kwargs += [{}] * (n - len(kwargs))
    return tuple(inputs), tuple(kwargs)


def gather(outputs, target_device, dim=0):
    """One value from the values of the devices."""
    import tenon
    first = outputs[0]
    if isinstance(first, tenon.Tensor):
        if all(one.dim() == 0 for one in outputs):
            return tenon.stack(list(outputs))
        return tenon.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([one[key] for one in outputs], target_device, dim)) for key in first)
    return type(first)(gather(list(one), target_device, dim) for one in zip(*outputs))
