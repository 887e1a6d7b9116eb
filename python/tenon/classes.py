# SPDX-License-Identifier: MIT
"""Classes of TorchScript libraries. None can be loaded: each name says so."""

loaded_libraries = set()


def load_library(path):
    """A library of PyTorch's classes is code for PyTorch's own runtime."""
    raise OSError("%s: libraries of TorchScript classes cannot be loaded" % path)


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, attr):
        raise RuntimeError("Class %s.%s not registered!" % (self._name, attr))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return _Namespace(name)
