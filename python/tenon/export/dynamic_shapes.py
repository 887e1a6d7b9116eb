# SPDX-License-Identifier: MIT
"""Names of sizes that may change. All may."""

__all__ = ["Dim", "ShapesCollection", "dims"]


class Dim:
    """A size with a name and limits, which nobody checks: a program runs as it is written, for any size."""

    def __init__(self, name, *, min=None, max=None):
        if not str(name).isidentifier():
            raise AssertionError("Dim name must be a valid identifier, got %s" % name)
        self.min, self.max = 0 if min is None else min, max
        if self.max is not None and self.max <= self.min:
            raise AssertionError("Cannot create Dim with inconsistent min=%s, max=%s" % (min, max))
        self.__name__ = name

    def __repr__(self):
        return "Dim('%s', min=%s%s)" % (self.__name__, self.min, "" if self.max is None else ", max=%s" % self.max)

    def _derived(self, text):
        return Dim.__new__(Dim)._named(text)

    def _named(self, name):
        self.__name__, self.min, self.max = name, 0, None
        return self

    def __add__(self, n):
        return self._derived("%s + %s" % (self.__name__, n))

    def __sub__(self, n):
        return self._derived("%s - %s" % (self.__name__, n))

    def __mul__(self, n):
        return self._derived("%s*%s" % (n, self.__name__))

    __radd__, __rmul__ = __add__, __mul__


class _Hint:
    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return "_DimHint(type=_DimHintType.%s)" % self.kind

    def __call__(self, min=None, max=None):
        return self


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")


def dims(*names, min=None, max=None):
    """Several at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """What was said of the sizes of tensors, one by one."""

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, tensor, shape):
        self._shapes[id(tensor)] = shape

    def __getitem__(self, tensor):
        return self._shapes.setdefault(id(tensor), {})

    def __len__(self):
        return len(self._shapes)
