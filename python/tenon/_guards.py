# SPDX-License-Identifier: MIT
"""Which fake mode a program is in."""

from tenon import _C


def detect_fake_mode(inputs=None):
    """The fake mode that is on, else that of the first fake tensor of `inputs`; None where there is none."""
    mode = _C._fake_mode_current()
    if mode is not None or inputs is None:
        return mode
    from tenon.utils._pytree import tree_leaves
    for leaf in tree_leaves(inputs):
        if _C._is_fake(leaf):
            return _C._fake_mode_of(leaf)
    return None


def active_fake_mode():
    return _C._fake_mode_current()
