# SPDX-License-Identifier: MIT
"""The path where some scripts look for placements."""

from tenon.distributed.tensor import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
