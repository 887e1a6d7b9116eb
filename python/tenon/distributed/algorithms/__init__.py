# SPDX-License-Identifier: MIT
"""Algorithms over several processes, of which there is one."""
