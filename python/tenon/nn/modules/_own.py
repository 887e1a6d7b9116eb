# SPDX-License-Identifier: MIT
"""Constructors that classes share and that each names itself in: what a wrong call is told has the name of the class."""

import types


def own_constructor(cls):
    """Give `cls` the constructor that it inherits as one of its own, so that a missing argument is one of
    `Conv2d.__init__()` and not of a base that nobody wrote down."""
    shared = cls.__init__
    own = types.FunctionType(shared.__code__, shared.__globals__, "__init__", shared.__defaults__, shared.__closure__)
    own.__kwdefaults__ = shared.__kwdefaults__
    own.__doc__ = shared.__doc__
    own.__qualname__ = cls.__qualname__ + ".__init__"
    own.__module__ = cls.__module__
    cls.__init__ = own
    return cls
