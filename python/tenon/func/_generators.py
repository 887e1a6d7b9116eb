# SPDX-License-Identifier: MIT
"""Which generators a function draws from: vmap sets them back before each slice that is to get the same numbers."""
import tenon
from tenon.overrides import TorchFunctionMode


class Generators(TorchFunctionMode):
    """Notes the state of each generator that is handed to a call, before its first one."""

    def __init__(self):
        super().__init__()
        self.starts = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for x in (*args, *(kwargs or {}).values()):
            if isinstance(x, tenon.Generator) and x not in self.starts:
                self.starts[x] = x.get_state()
        return func(*args, **(kwargs or {}))
