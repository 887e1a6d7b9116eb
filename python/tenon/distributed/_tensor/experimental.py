# SPDX-License-Identifier: MIT
"""The older path of tenon.distributed.tensor.experimental."""

from tenon.distributed.tensor.experimental import implicit_replication

__all__ = ["implicit_replication"]
