# SPDX-License-Identifier: MIT
"""Special functions: the operators whose names begin with special_."""

import tenon
from tenon._typing import TYPE_CHECKING, Any

_operators = {name[8:]: f for name, f in vars(tenon._C._nn).items() if name.startswith("special_")}
globals().update(_operators)
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...  # the operators
__all__ = sorted(_operators)
