# SPDX-License-Identifier: MIT
"""Nested tuples, lists and dicts of anything, as a list of leaves and a way back."""


def is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def flatten(value, leaves):
    """Append the leaves; the result makes the same structure from an iterator of new ones."""
    if is_namedtuple(value):
        parts, kind = [flatten(v, leaves) for v in value], type(value)
        return lambda it: kind(*[p(it) for p in parts])
    if type(value) in (tuple, list):
        parts, kind = [flatten(v, leaves) for v in value], type(value)
        return lambda it: kind([p(it) for p in parts])
    if isinstance(value, dict):
        parts, kind = [(k, flatten(v, leaves)) for k, v in value.items()], type(value)
        return lambda it: kind((k, p(it)) for k, p in parts)
    leaves.append(value)
    return next


def tree_map(fn, value):
    leaves = []
    build = flatten(value, leaves)
    return build(iter([fn(v) for v in leaves]))


def broadcast(prefix, value, name):
    """One entry of ``prefix`` for each leaf of ``value``; a prefix that is no structure stands for all below it."""
    if prefix is None or isinstance(prefix, int):
        leaves = []
        flatten(value, leaves)
        return [prefix] * len(leaves)
    if isinstance(prefix, dict):
        if not isinstance(value, dict) or prefix.keys() != value.keys():
            raise ValueError("%s is not compatible with the structure of inputs" % name)
        return [e for k in value for e in broadcast(prefix[k], value[k], name)]
    if not isinstance(prefix, (tuple, list)) or not isinstance(value, (tuple, list)) or len(prefix) != len(value):
        raise ValueError("%s is not compatible with the structure of inputs" % name)
    return [e for p, v in zip(prefix, value) for e in broadcast(p, v, name)]
