# SPDX-License-Identifier: MIT
"""The names of calls to other processes, where PyTorch keeps them."""

from tenon.distributed.rpc import PyRRef, RRef

__all__ = ["PyRRef", "RRef"]
