# SPDX-License-Identifier: MIT
"""The path where some scripts look for what tenon.profiler has."""

from tenon.profiler import *  # noqa: F401,F403
