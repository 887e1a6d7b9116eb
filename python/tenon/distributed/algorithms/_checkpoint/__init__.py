# SPDX-License-Identifier: MIT
"""Checkpoints of activations by wrapping modules."""
