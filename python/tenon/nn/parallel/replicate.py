# SPDX-License-Identifier: MIT
"""Copies of a module whose gradients arrive at the module that was copied."""

__all__ = ["replicate"]


def _copy(module, detach, made):
    if module not in made:
        new = module._replicate_for_data_parallel()
        made[module] = new
        for name, p in module._parameters.items():
            new._parameters[name] = p if p is None else p.detach() if detach else p.view_as(p)
        new._buffers = dict(module._buffers)
        new._modules = {name: child if child is None else _copy(child, detach, made)
                        for name, child in module._modules.items()}
    return made[module]


def replicate(network, devices, detach=False):
    """One copy for each device. Parameters of a copy are views of the module's, so that it learns through them."""
    return [_copy(network, detach, {}) for _ in devices]
