# SPDX-License-Identifier: MIT
"""Parameters as one flat vector and back."""

import tenon


def _check_param_device(param, old_param_device):
    device = param.get_device() if param.is_cuda else -1
    if old_param_device is not None and device != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return device


def parameters_to_vector(parameters):
    """All parameters flattened, one after the other."""
    device = None
    vec = []
    for param in parameters:
        device = _check_param_device(param, device)
        vec.append(param.view(-1))
    return tenon.cat(vec)


def vector_to_parameters(vec, parameters):
    """Make every parameter the next piece of `vec`."""
    if not isinstance(vec, tenon.Tensor):
        from tenon.nn.modules.module import _typename

        raise TypeError(f"expected torch.Tensor, but got: {_typename(vec)}")
    device = None
    at = 0
    for param in parameters:
        device = _check_param_device(param, device)
        n = param.numel()
        param.data = vec[at : at + n].view_as(param).data
        at += n
