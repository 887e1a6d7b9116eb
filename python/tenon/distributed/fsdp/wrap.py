# SPDX-License-Identifier: MIT
"""Policies that would say which modules to wrap. With one process none is wrapped."""

from contextlib import contextmanager


def always_wrap_policy(*args, **kwargs):
    return True


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Whether the module is one of the layers named."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=int(1e8), **options):
    """Whether the module has parameters enough."""
    return nonwrapped_numel >= min_num_params


class ModuleWrapPolicy:
    def __init__(self, module_classes):
        self._module_classes = set(module_classes)


@contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    yield


def wrap(module, **wrap_overrides):
    return module
