# SPDX-License-Identifier: MIT
"""Fake tensors, at torch's import path."""

from .fake_tensor import (DynamicOutputShapeException, FakeTensor, FakeTensorMode,  # noqa: F401
                          UnsupportedFakeTensorException)

__all__ = ["FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException"]
