# SPDX-License-Identifier: MIT
"""Special functions: the operators whose names begin with special_."""

import tenon

_operators = {name[8:]: f for name, f in vars(tenon._C._nn).items() if name.startswith("special_")}
globals().update(_operators)
TYPE_CHECKING = False  # type checkers take it for True
if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...  # the operators
__all__ = sorted(_operators)
