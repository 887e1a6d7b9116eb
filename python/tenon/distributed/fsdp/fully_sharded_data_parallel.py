# SPDX-License-Identifier: MIT
"""The path where some scripts look for what tenon.distributed.fsdp has."""

from tenon.distributed.fsdp import *  # noqa: F401,F403
