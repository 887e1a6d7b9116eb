# SPDX-License-Identifier: MIT
"""Tensors over other libraries' memory, and theirs over ours."""

import enum

from tenon import _C
from tenon._C import from_dlpack  # noqa: F401


def to_dlpack(tensor):
    """A capsule over the memory of a tensor. It can be taken once."""
    with _C.DisableTorchFunction():
        return tensor.__dlpack__()


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, by their numbers in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
