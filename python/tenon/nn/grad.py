# SPDX-License-Identifier: MIT
"""The gradients of convolutions for their input and their weight, as functions."""

import tenon
from tenon.nn.modules.utils import _ntuple


def _backward(n, grad_output, input, weight, stride, padding, dilation, groups, which):
    each = _ntuple(n)
    mask = [which == 0, which == 1, False]
    return tenon._C._nn.convolution_backward(
        grad_output, input, weight, None, each(stride), each(padding), each(dilation), False, [0], groups, mask
    )[which]


def _make(n):
    def conv_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        input = grad_output.new_empty(1).expand(input_size)
        return _backward(n, grad_output, input, weight, stride, padding, dilation, groups, 0)

    def conv_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        weight = grad_output.new_empty(1).expand(weight_size)
        return _backward(n, grad_output, input, weight, stride, padding, dilation, groups, 1)

    for fn, what in ((conv_input, "input"), (conv_weight, "weight")):
        fn.__name__ = fn.__qualname__ = f"conv{n}d_{what}"
        fn.__doc__ = f"The gradient of conv{n}d for its {what}, given the gradient of its output."
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _make(1)
conv2d_input, conv2d_weight = _make(2)
conv3d_input, conv3d_weight = _make(3)
