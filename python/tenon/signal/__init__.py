# SPDX-License-Identifier: MIT
"""Signal processing: the window functions."""

from tenon.signal import windows

__all__ = ["windows"]
