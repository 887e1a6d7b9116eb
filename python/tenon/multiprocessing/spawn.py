# SPDX-License-Identifier: MIT
"""The path where some scripts look for spawn and its exceptions."""

from tenon.multiprocessing import (ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException,
                                   SpawnContext, spawn, start_processes)

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]
