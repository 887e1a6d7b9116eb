# SPDX-License-Identifier: MIT
"""The older path of tenon.distributed.tensor."""

from tenon.distributed.tensor import (DTensor, DeviceMesh, Partial, Placement, Replicate, Shard, distribute_module,
                                      distribute_tensor, init_device_mesh)

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor", "init_device_mesh"]
