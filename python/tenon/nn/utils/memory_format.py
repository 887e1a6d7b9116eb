# SPDX-License-Identifier: MIT
"""The memory format of convolution weights."""


def _convert(module, memory_format, kinds):
    for child in module.modules():
        if isinstance(child, kinds):
            child.weight.data = child.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module with the weights of its 2d convolutions in `memory_format`."""
    from tenon.nn.modules.conv import Conv2d, ConvTranspose2d

    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """The module with the weights of its 3d convolutions in `memory_format`."""
    from tenon.nn.modules.conv import Conv3d, ConvTranspose3d

    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
