# SPDX-License-Identifier: MIT
"""Where packages look for the parts of ``func``."""
