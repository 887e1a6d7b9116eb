# SPDX-License-Identifier: MIT
"""The options of fully sharded data parallelism, where PyTorch keeps them."""

from tenon.distributed.fsdp import (BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig,
                                    LocalStateDictConfig, MixedPrecision, ShardedOptimStateDictConfig,
                                    ShardedStateDictConfig, ShardingStrategy, StateDictType)

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalStateDictConfig",
           "MixedPrecision", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictType"]
