# SPDX-License-Identifier: MIT
"""Rules of autograd that programs meet: hooks, views, writes, functions, graphs, errors. A scenario runs on either library and
writes lines; golden/make_autograd.py keeps what PyTorch writes."""

import autograd_corners_cases  # noqa: F401
import autograd_functions_cases  # noqa: F401
import autograd_graph_cases  # noqa: F401
import autograd_hooks_cases  # noqa: F401
import autograd_modes_cases  # noqa: F401
import autograd_passes_cases  # noqa: F401
import autograd_transforms_cases  # noqa: F401
import autograd_writes_cases  # noqa: F401
from autograd_kit import SCENARIOS, run

__all__ = ["SCENARIOS", "run"]
