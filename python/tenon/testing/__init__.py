# SPDX-License-Identifier: MIT
"""Helpers for tests: assert_close, make_tensor."""

from tenon.testing._comparison import assert_allclose, assert_close
from tenon.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
