# SPDX-License-Identifier: MIT
"""The order of contractions in einsum of three operands or more: what opt_einsum finds best where it is installed, else from
left to right."""

from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

_STRATEGIES = ("auto", "greedy", "optimal")
_available = find_spec("opt_einsum") is not None

enabled = _available
strategy = "auto" if _available else None


def is_available():
    return _available


def get_opt_einsum():
    """The package, or None. It is imported when it is first asked for."""
    return import_module("opt_einsum") if _available else None


def contraction_path(equation, operands):
    """Pairs of positions, one after the other, in the order in which they are contracted; None: from left to right."""
    if len(operands) <= 2 or not enabled or not _available:
        return None
    path = get_opt_einsum().contract_path(equation, *operands, optimize=strategy)[0]
    return [position for pair in path for position in pair]


def set_flags(_enabled=None, _strategy=None):
    """Set what is not None; returns what was set before."""
    global enabled, strategy
    before = (enabled, strategy if _available else None)
    if _enabled is not None:
        if _enabled and not _available:
            raise ValueError(f"opt_einsum is not available, so setting `enabled` to {_enabled} will not reap the benefits of "
                             "calculating an optimal path for einsum. torch.einsum will fall back to contracting from left to right. "
                             "To enable this optimal path calculation, please install opt-einsum.")
        enabled = _enabled
    if _strategy is not None:
        if not _available:
            raise ValueError(f"opt_einsum is not available, so setting `strategy` to {_strategy} will not be meaningful. "
                             "torch.einsum will bypass path calculation and simply contract from left to right. "
                             "Please install opt_einsum or unset `strategy`.")
        if not enabled:
            raise ValueError(f"opt_einsum is not enabled, so setting a `strategy` to {_strategy} will not be meaningful. "
                             "torch.einsum will bypass path calculation and simply contract from left to right. "
                             "Please set `enabled` to `True` as well or unset `strategy`.")
        if _strategy not in _STRATEGIES:
            raise ValueError(f"`strategy` must be one of the following: [{', '.join(_STRATEGIES)}] but is {_strategy}")
        strategy = _strategy
    return before


@contextmanager
def flags(enabled=None, strategy=None):
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
