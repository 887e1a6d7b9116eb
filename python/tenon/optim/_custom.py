# SPDX-License-Identifier: MIT
"""Names of `tenon.optim.optimizer` that optimizers written elsewhere import: types for annotations, and the small
functions between an option and the form of a step. Loaded when one of them is first asked for."""

from collections.abc import Callable, Iterable
import functools
from typing import Any, TypeAlias

import tenon
from tenon.utils._foreach_utils import _get_foreach_kernels_supported_devices, _get_fused_kernels_supported_devices

ParamsT: TypeAlias = Iterable[tenon.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, tenon.Tensor]]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict = dict[tenon.device | None, tenon.Tensor]
DeviceDtypeDict = dict[tuple[tenon.device, tenon.dtype] | None, tenon.Tensor]
GlobalOptimizerPreHook: TypeAlias = Callable[["tenon.optim.Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["tenon.optim.Optimizer", Args, Kwargs], None]

_params_doc = "params: the parameters, with their names or in groups, that are optimized"
_foreach_doc = "foreach: whether a step goes over lists of tensors"
_fused_doc = "fused: whether a step is one kernel"
_capturable_doc = "capturable: whether a step may be recorded in a graph of a GPU"
_differentiable_doc = "differentiable: whether gradients go through a step"
_maximize_doc = "maximize: whether the objective is to grow"



def _use_grad_for_differentiable(step):
    """`step` with gradients recorded when the optimizer is differentiable, and without otherwise."""

    @functools.wraps(step)
    def run(*args, **kwargs):
        with tenon.set_grad_enabled(args[0].defaults["differentiable"]):
            return step(*args, **kwargs)

    return run


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """Marks a step that a compiler leaves alone: steps are as they are written here."""
    return lambda step: step


def _get_value(x):
    """The number in a tensor of one element; a number is itself."""
    return x.item() if isinstance(x, tenon.Tensor) else x


def _to_scalar(x):
    """A tensor of one element without its dimensions; anything else is itself."""
    return x.squeeze() if isinstance(x, tenon.Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x):
    """Numbers stay numbers: nothing is compiled."""
    return x


def _get_scalar_dtype(is_fused=None):
    """The dtype of a count of steps."""
    return tenon.float64 if not is_fused and tenon.get_default_dtype() == tenon.float64 else tenon.float32


def _get_capturable_supported_devices(supports_xla=True):
    devices = ["cuda", "xpu", "hpu", tenon._C._get_privateuse1_backend_name()]
    return devices + ["xla"] if supports_xla else devices


#: What a capturable step needs on a GPU beside the parameters, for one tensor at a time and for lists.
_CAPTURED = {
    "ASGD": ("params, mus, etas, and state_steps",) * 2,
    "NAdam": ("params, mu_products and state_steps", "params, mu_products, and state_steps"),
}


def check_form(cls, params, group):
    """Refuse forms of a step that the optimizer `cls` has not: a capturable one on the CPU, gradients through lists."""
    name = next((c.__name__ for c in cls.__mro__ if c.__module__.startswith("tenon.optim.")), cls.__name__)
    foreach = bool(group.get("foreach"))
    through = foreach and group.get("differentiable") and name != "SGD"
    if through and name not in ("Adam", "AdamW"):
        raise AssertionError("_foreach ops don't support autograd")
    if group.get("capturable") and not group.get("fused"):
        devices = _get_capturable_supported_devices(name in ("RMSprop", "Rprop") or not foreach and name != "Adadelta")
        if not all(p.device.type in devices for p in params):
            what = _CAPTURED.get(name, ("params and state_steps",) * 2)[foreach]
            raise AssertionError("If capturable=True, %s must be on supported devices: %s." % (what, devices))
    if through:
        raise AssertionError("_foreach ops don't support autograd")


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach): the form of a step for which nothing was asked. Lists of tensors are for GPUs."""
    if differentiable:
        return False, False
    def all_on(devices):
        return all(p is None or (type(p) in (tenon.Tensor, tenon.nn.Parameter) and p.device.type in devices) for p in params)

    fused = use_fused and all_on(_get_fused_kernels_supported_devices()) and all(
        p is None or p.is_floating_point() for p in params)
    return fused, not fused and all_on(_get_foreach_kernels_supported_devices())


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.device.type in devices and p.is_floating_point()):
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported devices: %s but %s "
                           "and %s" % (devices, p.dtype, p.device.type))


def _view_as_real(params, *state_and_grads):
    """Complex parameters become their pairs of numbers, and so do their places in each list of states and gradients."""
    for i, p in enumerate(params):
        if tenon.is_complex(p):
            params[i] = tenon.view_as_real(p)
            for each in state_and_grads:
                each[i] = tenon.view_as_real(each[i])
