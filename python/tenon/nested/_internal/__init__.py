# SPDX-License-Identifier: MIT
"""Where PyTorch keeps the class of nested tensors."""
