# SPDX-License-Identifier: MIT
"""The path under which some scripts look for what tenon.distributed has."""

from tenon import distributed as _distributed
from tenon.distributed import *  # noqa: F401,F403


def __getattr__(name):
    if name in ("GroupMember", "ProcessGroup", "Work", "Backend", "_nobody"):
        return getattr(_distributed, name)
    if name == "_get_default_group":
        return _distributed._need
    if name == "_get_global_rank":
        return _distributed.get_global_rank
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
