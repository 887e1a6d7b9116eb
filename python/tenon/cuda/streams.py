# SPDX-License-Identifier: MIT
"""Streams and events of tenon.cuda under their own module."""

from tenon.cuda import Event, ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream"]
