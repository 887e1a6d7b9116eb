# SPDX-License-Identifier: MIT
"""OptimizedModule, for isinstance: what tenon.compile gives for a module."""

from tenon._compile import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported"]


def is_dynamo_supported():
    """Whether functions are captured: they run as they are written."""
    return False


def is_inductor_supported():
    return False
