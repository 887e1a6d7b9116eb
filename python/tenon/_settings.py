# SPDX-License-Identifier: MIT
"""Modules of settings: `patch`, which sets some of them for a while."""

from contextlib import ContextDecorator
import sys


def patch_of(module_name):
    """A `patch` for a module: a context manager and decorator; takes a name and a value, a dict, or keywords."""

    class patch(ContextDecorator):
        def __init__(self, first=None, value=None, **settings):
            if isinstance(first, str):
                settings[first] = value
            elif first is not None:
                settings.update(first)
            self.settings = settings

        def __enter__(self):
            module = sys.modules[module_name].__dict__
            self.before = {name: module[name] for name in self.settings if name in module}
            module.update(self.settings)
            return self

        def __exit__(self, *exception):
            module = sys.modules[module_name].__dict__
            for name in self.settings:
                module.pop(name, None)
            module.update(self.before)
            return False

    return patch
