# SPDX-License-Identifier: MIT
"""Switches for warnings about programs from before PyTorch 1.0. They are kept, and nothing warns."""


class _Warning:
    enabled = False


broadcast_warning = _Warning()
keepdim_warning = _Warning()
