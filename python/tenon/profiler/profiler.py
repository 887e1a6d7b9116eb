# SPDX-License-Identifier: MIT
"""The path where some scripts look for what tenon.profiler has."""

from tenon.profiler import *  # noqa: F401,F403
from tenon.profiler import _default_schedule_fn  # noqa: F401
