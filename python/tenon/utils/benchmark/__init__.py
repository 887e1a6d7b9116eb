# SPDX-License-Identifier: MIT
"""Measure statements: Timer, Measurement, Compare."""

from tenon.utils.benchmark.timer import Compare, Language, Measurement, Timer, timer

__all__ = ["Compare", "Language", "Measurement", "Timer", "timer"]
