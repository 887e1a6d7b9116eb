# SPDX-License-Identifier: MIT
"""What this build is, under the names that scripts ask for."""

import tenon

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

cuda = None
hip = None
rocm = None
xpu = None
debug = False
git_version = "unknown"


def __getattr__(name):
    if name == "__version__":
        return str(tenon.__version__)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
