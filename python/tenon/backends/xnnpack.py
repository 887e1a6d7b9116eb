# SPDX-License-Identifier: MIT
"""XNNPACK: not used."""

enabled = False
