# SPDX-License-Identifier: MIT
"""Trees of anything, as a list of leaves and a way back: what the transforms need of tenon.utils._pytree."""
from tenon.utils import _pytree


def flatten(value, leaves):
    """Append the leaves; the result makes the same structure from an iterator of new ones."""
    return _pytree._flatten(value, leaves)._build


def tree_map(fn, value):
    leaves = []
    build = flatten(value, leaves)
    return build(iter([fn(v) for v in leaves]))
