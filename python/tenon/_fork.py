# SPDX-License-Identifier: MIT
"""What this package has to do with fork.

Modules are loaded when they are first used. A child of fork has one thread: an import that another thread was in at
that moment never ends there, and who then needs the module waits for ever for the lock that the import system holds
for it. A fork therefore waits until other threads have loaded what they are loading of this package."""

import os
import time
from _frozen_importlib import _module_locks  # type: ignore  # importlib itself would have to be loaded first
from _thread import get_ident

# Seconds. Loading the whole package takes less, also on a slow and busy machine; who loads may itself be waiting for the
# thread that forks.
_LONGEST_WAIT = 30.0

# What the package is imported as; tenon.as_torch adds the other name.
names = [__package__]


def _another_thread_loads():
    me = get_ident()
    for name, lock in list(_module_locks.items()):
        if name.partition(".")[0] in names:
            lock = lock()
            if lock is not None and lock.owner not in (None, me):
                return True
    return False


def _wait_for_imports():
    until = time.monotonic() + _LONGEST_WAIT
    while _another_thread_loads() and time.monotonic() < until:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)
