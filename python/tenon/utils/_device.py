# SPDX-License-Identifier: MIT
"""The device that new tensors are made on: a mode that gives it to the functions that make them. `with torch.device(…)` is one, too, for
which an object is made when another mode, or somebody who looks at the stack, sees it."""

import functools
import threading

import tenon
from tenon import _C
from tenon.overrides import TorchFunctionMode

__all__ = ["CURRENT_DEVICE", "DeviceContext", "device_decorator", "set_device"]

CURRENT_DEVICE = None  # of the innermost DeviceContext that was entered as such
_default = threading.local()  # .context: what set_default_device entered on this thread


class DeviceContext(TorchFunctionMode):
    """Inside, new tensors are made on a device. It lies under all other modes, in the place of one that is there already."""

    def __init__(self, device):
        self.device = tenon.device(device)
        self.prev_mode = None

    def __enter__(self):
        global CURRENT_DEVICE
        self.old_device, CURRENT_DEVICE = CURRENT_DEVICE, self.device
        above = _all_off()
        _C._push_on_torch_function_stack(self)
        for mode in above:
            if isinstance(mode, DeviceContext):
                self.prev_mode = mode
            else:
                _C._push_on_torch_function_stack(mode)

    def __exit__(self, kind, value, trace):
        global CURRENT_DEVICE
        CURRENT_DEVICE = self.old_device
        above = _all_off()
        if any(isinstance(mode, DeviceContext) for mode in above[1:]):
            _on_again(above)
            raise AssertionError("Found nested DeviceContext on the mode stack where none expected")
        if above and not isinstance(above[0], DeviceContext):
            _on_again(above)
            raise AssertionError("Expected a DeviceContext at the bottom of the mode stack")
        if self.prev_mode is not None:
            _C._push_on_torch_function_stack(self.prev_mode)
        _on_again(above[1:])

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if kwargs.get("device") is None and func in _device_constructors():
            kwargs["device"] = self.device
        return func(*args, **kwargs)


_C._set_device_context_type(DeviceContext)


def _all_off():
    """The modes that were on, the outermost first."""
    return [_C._pop_torch_function_stack() for _ in range(_C._len_torch_function_stack())][::-1]


def _on_again(modes):
    for mode in modes:
        _C._push_on_torch_function_stack(mode)


def _context_of(device):
    """What `with device:` looks like on the stack."""
    context = DeviceContext.__new__(DeviceContext)
    context.device, context.prev_mode = device, None
    return context


def device_decorator(device, func):
    """`func`, whose new tensors are made on a device."""
    from tenon.utils._contextlib import context_decorator

    return context_decorator(lambda: device, func)


def set_device(device):
    """A decorator: new tensors of the function are made on `device`."""
    return lambda func: device_decorator(tenon.device(device), func)


def set_default_device(device):
    """Where factories of this thread put tensors, from now on; None: on the CPU."""
    before = getattr(_default, "context", None)
    if before is not None:
        before.__exit__(None, None, None)
    _default.context = None
    if device is not None:
        context = DeviceContext(device)
        context.__enter__()
        _default.context = context


def get_default_device():
    """Where a tensor would be made that nobody names a device for."""
    modes = [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]
    found = next((mode for mode in reversed(modes) if isinstance(mode, DeviceContext)), getattr(_default, "context", None))
    if found is None:
        return tenon.device("cpu")
    return found.device if found.device.index is not None else tenon.tensor([]).device


@functools.lru_cache(None)
def _device_constructors():
    """The functions that make tensors and take a device."""
    names = ("arange", "asarray", "as_tensor", "bartlett_window", "blackman_window", "empty", "empty_permuted", "empty_strided",
             "eye", "full", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "ones", "rand", "randint",
             "randn", "randperm", "range", "scalar_tensor", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
             "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "zeros")
    return frozenset([getattr(tenon, name) for name in names] + [tenon.fft.fftfreq, tenon.fft.rfftfreq, tenon.nested.nested_tensor])
