# SPDX-License-Identifier: MIT
"""What a Python callable is called and where it is written, for people: what the doctor, profiles and errors show for
kernels and modes. Never fails: a callable may be anything, and may answer anything when it is asked."""

import functools
import os
import sys
import types

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MOST = 32  # wrappers around a function: a chain of them may be a circle


def plain(text):
    """The text as one line of any output."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _get(o, name, kind):
    """An attribute, if it is there and of this kind."""
    try:
        value = getattr(o, name)
    except Exception:  # of the object's own code
        return None
    return value if type(value) is kind else None


def _inside(fn):
    """The function that is behind a callable: itself when there is none. And how often a partial is around it."""
    partials = 0
    for _ in range(_MOST):
        further = _get(fn, "__wrapped__", types.FunctionType)
        if isinstance(fn, functools.partial):
            partials += 1
            further = fn.func
        elif isinstance(fn, types.MethodType):
            further = fn.__func__
        elif further is None and not isinstance(fn, (type, types.FunctionType)):
            further = _get(type(fn), "__call__", types.FunctionType)
        if further is None:
            break
        fn = further
    return fn, partials


def _name(o):
    name = _get(o, "__qualname__", str) or _get(o, "__name__", str)
    if name is None:
        return "%s object" % _name(type(o))
    module = _get(o, "__module__", str) if isinstance(o, types.BuiltinFunctionType) else None
    return "%s.%s" % (module, name) if module else name


def where():
    """File and line of the innermost caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return plain(frame.f_code.co_filename), frame.f_lineno


def of(fn):
    """(name, file, line) of the function; for one that has no code in Python, file and line of who registers it."""
    fn, partials = _inside(fn)
    name = plain("partial(" * partials + _name(fn) + ")" * partials)
    code = _get(fn, "__code__", types.CodeType)
    if code is None:
        return (name,) + where()
    return name, plain(code.co_filename), code.co_firstlineno
