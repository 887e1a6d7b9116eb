# SPDX-License-Identifier: MIT
"""Fully sharded data parallelism. With one process nothing is sharded: the wrapper calls the module that it holds."""

from enum import Enum, auto
from contextlib import contextmanager

from tenon.nn import Module

__all__ = ["BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FullStateDictConfig", "FullOptimStateDictConfig", "FullyShardedDataParallel", "FSDPModule", "LocalStateDictConfig", "OptimStateKeyType",
           "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "register_fsdp_forward_method",
           "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "ShardingStrategy", "StateDictType", "fully_shard"]


class ShardingStrategy(Enum):
    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class _Options:
    """Options that are kept as they were given."""

    def __init__(self, *args, **options):
        self.__dict__.update(options)


class MixedPrecision(_Options):
    pass


class OffloadPolicy(_Options):
    """Where parameters lie while they are not used: where they are."""


class CPUOffloadPolicy(OffloadPolicy):
    """On the CPU, where they are."""


class MixedPrecisionPolicy(_Options):
    pass


class CPUOffload(_Options):
    pass


class FullStateDictConfig(_Options):
    pass


class LocalStateDictConfig(_Options):
    pass


class ShardedStateDictConfig(_Options):
    pass


class FullOptimStateDictConfig(_Options):
    pass


class ShardedOptimStateDictConfig(_Options):
    pass


class OptimStateKeyType(Enum):
    PARAM_NAME = auto()
    PARAM_ID = auto()


def register_fsdp_forward_method(module, method_name):
    """A method that runs as `forward` does: with one process, as it is."""


class FullOptimStateDictConfig(_Options):
    pass


class FullyShardedDataParallel(Module):
    """Holds a module and calls it."""

    def __init__(self, module, process_group=None, sharding_strategy=None, **options):
        super().__init__()
        self._fsdp_wrapped_module = module

    @property
    def module(self):
        return self._fsdp_wrapped_module

    def forward(self, *args, **kwargs):
        return self._fsdp_wrapped_module(*args, **kwargs)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        from tenon.nn.utils import clip_grad_norm_
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextmanager
    def no_sync(self):
        yield

    @staticmethod
    @contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        yield

    @staticmethod
    @contextmanager
    def summon_full_params(module, **options):
        yield

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        return optim.state_dict()


class FSDPModule:
    """For isinstance: `fully_shard` makes a module one on more than one process."""


def fully_shard(module, **options):
    """The module, as it is."""
    return module
