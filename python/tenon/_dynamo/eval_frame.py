# SPDX-License-Identifier: MIT
"""OptimizedModule, for isinstance: what tenon.compile gives for a module."""

from tenon._compile import OptimizedModule

__all__ = ["OptimizedModule"]
