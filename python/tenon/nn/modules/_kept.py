# SPDX-License-Identifier: MIT
"""Layers whose constructor does no more than keep its arguments, which most layers without parameters are."""

from tenon.nn.modules.module import Module


def names_of(args):
    """The names in a parameter list such as "dim=1, *, eps=1e-8"."""
    return [a.split("=")[0].strip() for a in args.split(", ") if a != "*"]


def constructor(cls, args, keep):
    """An `__init__` with the parameter list `args` that keeps the arguments `keep` as attributes."""
    body = "".join(f"    self.{name} = {name}\n" for name in keep)
    room = {"cls": cls}
    exec(f"def __init__(self, {args}) -> None:\n    super(cls, self).__init__()\n{body}", room)
    made = room["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


class Kept(Module):
    """The base: `class ELU(Kept, args="alpha=1.0, inplace=False")` has that constructor, attributes and text.

    In the text every argument stands as `name=value`, `inplace` only when it is true.
    """

    def __init_subclass__(cls, args=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if args is not None:
            names = names_of(args)
            cls.__constants__ = names
            cls.__init__ = constructor(cls, args, names)

    def extra_repr(self):
        shown = [n for n in getattr(self, "__constants__", ()) if n != "inplace" or self.inplace]
        return ", ".join("inplace=True" if n == "inplace" else f"{n}={getattr(self, n)!r}" for n in shown)
