# SPDX-License-Identifier: MIT
"""The names of calls to other processes, where PyTorch keeps them. No agent carries calls here, and what wants one says so."""

import functools

from tenon import _C
from tenon.distributed.rpc import PyRRef, RRef

__all__ = ["PyRRef", "RRef"]

_is_current_rpc_agent_set = _C._distributed_rpc._is_current_rpc_agent_set


def _require_initialized(func):
    """What functions are decorated with that packages define around calls."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if not _is_current_rpc_agent_set():
            raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
        return func(*args, **kwargs)
    return wrapper
