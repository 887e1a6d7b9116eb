# SPDX-License-Identifier: MIT
"""Logs that TensorBoard shows."""

from tenon.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
