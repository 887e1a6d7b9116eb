# SPDX-License-Identifier: MIT
"""Quantized kernels: none."""

engine = "none"
supported_engines = []
