# SPDX-License-Identifier: MIT
"""Classes that are named together with what they have in them, `Dataset[int]`: so for type checkers; when a program runs,
it is the class itself, and what costs time to import stays out."""

from tenon._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Generic, TypeVar

    T_co = TypeVar("T_co", covariant=True)

    class Of(Generic[T_co]):
        pass
else:
    class Of:
        def __class_getitem__(cls, item):
            return cls
