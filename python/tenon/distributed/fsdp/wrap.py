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


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Whether the function says so."""
    return recurse or lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


class ModuleWrapPolicy:
    """Whether the module is of the classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)

    def __call__(self, module, recurse, *args, **kwargs):
        return recurse or isinstance(module, tuple(self._module_classes))


@contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    yield


def wrap(module, **wrap_overrides):
    return module
