# SPDX-License-Identifier: MIT
"""The tracer's names, where PyTorch keeps them."""

from tenon.jit import TracerWarning, is_tracing, trace, trace_module

__all__ = ["TracerWarning", "is_tracing", "trace", "trace_module"]
