# SPDX-License-Identifier: MIT
"""The memory functions of tenon.cuda under their own module."""

from tenon.cuda import (empty_cache, max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated,
                        memory_reserved, memory_snapshot, memory_stats, memory_summary, reset_accumulated_memory_stats,
                        reset_max_memory_allocated, reset_peak_memory_stats, set_per_process_memory_fraction)

__all__ = ["empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
           "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "reset_accumulated_memory_stats",
           "reset_max_memory_allocated", "reset_peak_memory_stats", "set_per_process_memory_fraction"]
