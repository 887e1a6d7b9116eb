# SPDX-License-Identifier: MIT
"""Questions about shapes that may be symbols. Tenon's shapes are numbers: each question has its plain answer."""

__all__ = ["GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_int", "guard_or_false",
           "guard_or_true", "guard_size_oblivious", "has_free_symbols", "hint_int", "is_concrete_bool",
           "is_concrete_float", "is_concrete_int", "statically_known_true", "sym_eq"]


class GuardOnDataDependentSymNode(RuntimeError):
    """A question that only data answers."""


def guard_or_false(a):
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def guard_int(a):
    return int(a)


def hint_int(a, fallback=None):
    return int(a)


def sym_eq(x, y):
    return x == y


def is_concrete_bool(a):
    return isinstance(a, bool)


def is_concrete_int(a):
    return isinstance(a, int)


def is_concrete_float(a):
    return isinstance(a, float)


def free_symbols(val):
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val):
    return False
