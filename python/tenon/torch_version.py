# SPDX-License-Identifier: MIT
"""TorchVersion: a version string that compares as versions do, with strings and tuples too."""

__all__ = ["TorchVersion"]


def _parts(version):
    """What orders versions: the release numbers without zeros at the end, then how final it is, then the local part."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    text, _, local = str(version).strip().lower().lstrip("v").partition("+")
    numbers, at = [], 0
    while at < len(text) and text[at].isdigit():
        end = at
        while end < len(text) and text[end].isdigit():
            end += 1
        numbers.append(int(text[at:end]))
        at = end + 1 if text[end:end + 1] == "." and text[end + 1:end + 2].isdigit() else end
    if not numbers:
        raise ValueError("Invalid version: %r" % (version,))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    rest = text[at:].lstrip(".-_")
    letters = rest.rstrip("0123456789.-_")
    count = "".join(c for c in rest[len(letters):] if c.isdigit())
    stages = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "": 0, "post": 1}
    if letters not in stages:
        raise ValueError("Invalid version: %r" % (version,))
    return numbers, stages[letters], int(count or 0), local


class TorchVersion(str):
    """Compares with anything that can be read as a version; with other strings as a string."""

    def _order(self, other):
        try:
            return _parts(self), _parts(other)
        except ValueError:
            return str(self), str(other)

    def __lt__(self, other):
        mine, theirs = self._order(other)
        return mine < theirs

    def __le__(self, other):
        mine, theirs = self._order(other)
        return mine <= theirs

    def __gt__(self, other):
        mine, theirs = self._order(other)
        return mine > theirs

    def __ge__(self, other):
        mine, theirs = self._order(other)
        return mine >= theirs

    def __eq__(self, other):
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        mine, theirs = self._order(other)
        return mine == theirs

    __hash__ = str.__hash__
