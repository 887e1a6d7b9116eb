# SPDX-License-Identifier: MIT
"""Passes over graphs."""

from . import shape_prop
