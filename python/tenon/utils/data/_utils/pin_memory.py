# SPDX-License-Identifier: MIT
"""Batches in pinned memory: with no accelerator, batches as they are."""

__all__ = ["pin_memory"]


def pin_memory(data, device=None):
    return data
