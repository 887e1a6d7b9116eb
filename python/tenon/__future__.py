# SPDX-License-Identifier: MIT
"""Switches for how `nn.Module` converts its parameters."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value):
    """Whether `module.to()` and its kin make new parameters instead of changing the data of those there are."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion():
    """The setting of `set_overwrite_module_params_on_conversion`."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value):
    """Whether `module.to()` and its kin, and `load_state_dict`, swap parameters with new ones by `utils.swap_tensors`: whoever
    holds a parameter then sees the new one, also of another class or on another device."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion():
    """The setting of `set_swap_module_params_on_conversion`."""
    return _swap_module_params_on_conversion
