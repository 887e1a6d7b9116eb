# SPDX-License-Identifier: MIT
"""The older names of what tenon.library does; packages that build on torch import this module."""

from tenon.library import impl_abstract

__all__ = ["impl_abstract"]
