# SPDX-License-Identifier: MIT
"""``tenon._C._profiler``: ranges of one's own in a recording, as code that runs often writes them."""

from tenon import _python_stack


class _RecordFunctionFast:
    """A range in the recording of a profiler: a context manager that costs next to nothing while nobody records."""

    __slots__ = ("name",)

    def __init__(self, name, input_values=None, keyword_values=None):
        self.name = name

    def __enter__(self):
        _python_stack.range_begin(self.name)
        return self

    def __exit__(self, *args):
        _python_stack.range_end()
