# SPDX-License-Identifier: MIT
"""Where datasets that are made of others would be: the classes to ask for are there, the pipes are not."""

from . import datapipe

__all__ = ["datapipe"]
