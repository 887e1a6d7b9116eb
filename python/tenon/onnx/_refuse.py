# SPDX-License-Identifier: MIT
"""A module whose every name is a function that says that Tenon writes no ONNX."""

from tenon.onnx import export


def refuse_all(module):
    """The `__getattr__` of such a module."""

    def __getattr__(name):
        if name[:2] == "__":
            raise AttributeError("module %r has no attribute %r" % (module, name))
        return lambda *args, **kwargs: export()

    return __getattr__
