# SPDX-License-Identifier: MIT
"""How optimizers put tensors into groups of one device and dtype."""

import tenon

__all__ = []


def _get_foreach_kernels_supported_devices():
    return ["cuda", "xpu", "mtia", tenon._C._get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices():
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", tenon._C._get_privateuse1_backend_name()]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, indices)}: the first list says where an index belongs, a list without elements and
    elements that are None stay as they are."""
    groups = {}
    for i, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, tensors in zip(lists, tensorlistlist):
            if tensors:
                into.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device):
    return device.type in _get_foreach_kernels_supported_devices() + ["cpu"]


def _has_foreach_support(tensors, device):
    return _device_has_foreach_support(device) and all(t is None or type(t) in (tenon.Tensor, tenon.nn.Parameter)
                                                      for t in tensors)
