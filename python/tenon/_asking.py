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


# Operators that are functions in Python for PyTorch: what they are given is told in one form.
_FORMS = {
    "split": lambda tensor, split_size_or_sections, dim=0: None,
    "norm": lambda self, p="fro", dim=None, keepdim=False, dtype=None: None,
    "unflatten": lambda self, dim, sizes: None,
    "unique": lambda self, sorted=True, return_inverse=False, return_counts=False, dim=None: None,
    "unique_consecutive": lambda self, return_inverse=False, return_counts=False, dim=None: None,
    "stft": lambda input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
    onesided=None, return_complex=None, align_to_window=None: None,
    "istft": lambda input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
    return_complex=False: None,
    "__repr__": lambda self, *, tensor_contents=None: None,
    "__array__": lambda self, dtype=None: None,
}


def in_one_form(name, args, kwargs):
    """(args, kwargs) as PyTorch tells them; None: as they are."""
    form = _FORMS.get(name)
    return form and _sorted(_plan(form), args, kwargs)


def asked_as_given(fn):
    """Let an argument with `__torch_function__`, or a mode, take over the call: they get it as it was written."""

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if _overridden(args) or (kwargs and _overridden(tuple(kwargs.values()))):
            return tenon._C._override_call(call, args, kwargs)
        return fn(*args, **kwargs)

    return call
