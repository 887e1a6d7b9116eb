# SPDX-License-Identifier: MIT
"""The device that new tensors are made on, under the names by which packages ask for it."""

import tenon

__all__ = ["CURRENT_DEVICE", "DeviceContext", "device_decorator", "set_device"]


def __getattr__(name):
    if name == "CURRENT_DEVICE":  # None stands for the processor, which is the default
        device = tenon.get_default_device()
        return None if device.type == "cpu" else device
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class DeviceContext:
    """Inside, new tensors are made on a device."""

    def __init__(self, device):
        self.device = tenon.device(device)

    def __enter__(self):
        self.device.__enter__()
        return self

    def __exit__(self, *error):
        return self.device.__exit__(*error)


def device_decorator(device, func):
    """`func`, whose new tensors are made on a device."""
    from tenon.utils._contextlib import context_decorator

    return context_decorator(lambda: tenon.device(device), func)


def set_device(device):
    """A decorator: new tensors of the function are made on `device`."""
    return lambda func: device_decorator(device, func)


def _device_constructors():
    """The functions that make tensors and take a device."""
    names = ("arange", "asarray", "as_tensor", "bartlett_window", "blackman_window", "empty", "empty_permuted", "empty_strided",
             "eye", "from_file", "full", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "ones", "rand",
             "randint", "randn", "randperm", "range", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
             "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "vander",
             "zeros")
    return {getattr(tenon, name) for name in names} | {tenon.nested.nested_tensor}
