# SPDX-License-Identifier: MIT
"""How this build was made, for logs."""

import tenon

__all__ = ["parallel_info", "show"]


def show():
    """The version and what kernels choose from."""
    return "Tenon built with:\n  - Tenon %s\n  - C17\n  - CPU capability usage: %s\n" % (
        tenon.__version__, tenon.backends.cpu.get_cpu_capability())


def parallel_info():
    """How many threads kernels use."""
    return "at::get_num_threads() : %d\nat::get_num_interop_threads() : %d\n" % (
        tenon.get_num_threads(), tenon.get_num_interop_threads())


def _cxx_flags():
    return ""
