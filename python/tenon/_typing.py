# SPDX-License-Identifier: MIT
"""What annotations name, without the time that it takes to import typing."""

TYPE_CHECKING = False  # type checkers take it for True
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object
