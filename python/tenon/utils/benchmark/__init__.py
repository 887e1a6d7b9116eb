# SPDX-License-Identifier: MIT
"""Measure statements: Timer, Measurement, Compare."""

from tenon.utils.benchmark.timer import Compare, Measurement, Timer, timer

__all__ = ["Compare", "Measurement", "Timer", "timer"]
