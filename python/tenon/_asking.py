# SPDX-License-Identifier: MIT
"""Functions that are written in Python and let a class of arguments, or a mode, take over the call."""

import functools
import inspect

import tenon

_overridden = tenon._C._has_torch_function


def overridable(fn):
    """Let an argument with `__torch_function__`, or a mode, take over the call as it does for an operator."""

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if _overridden(args) or (kwargs and _overridden(tuple(kwargs.values()))):
            return hand_over(call, fn, (*args, *kwargs.values()), args, kwargs)
        return fn(*args, **kwargs)

    return call


def hand_over(public, fn, relevant, args, kwargs):
    """Ask those of `relevant` that override `public`, whose body is `fn`. They get each argument the same way however
    it was given: what has no default by position, the others by keyword, and all of them."""
    plan = _plan(fn)
    if plan:
        sorted_out = _sorted(plan, args, kwargs)
        if sorted_out is None:
            return fn(*args, **kwargs)  # a TypeError, in Python's words
        args, kwargs = sorted_out
    return tenon._C._override_call(public, args, kwargs, relevant)


@functools.lru_cache(None)
def _plan(fn):
    """(names in order, those without a default, {name: default}, whether more may come by position); None: another kind."""
    parameters = inspect.signature(fn).parameters.values()
    by_name = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if any(p.kind in (p.POSITIONAL_ONLY, p.VAR_KEYWORD) for p in parameters) or (rest and by_name):
        return None
    named = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
    return (tuple(p.name for p in by_name), tuple(p.name for p in named if p.default is p.empty),
            {p.name: p.default for p in named if p.default is not p.empty}, rest)


def _sorted(plan, args, kwargs):
    """The call's (args, kwargs) by the plan; None: the function takes no such call."""
    names, needed, defaults, rest = plan
    if rest:
        return (args, {**defaults, **kwargs}) if kwargs.keys() <= defaults.keys() else None
    given = dict(zip(names, args))
    if len(args) > len(names) or given.keys() & kwargs.keys():
        return None
    given.update(kwargs)
    if any(name not in given for name in needed) or any(name not in defaults and name not in needed for name in kwargs):
        return None
    first = tuple(given.pop(name) for name in needed)
    return first, {**defaults, **given}
