# SPDX-License-Identifier: MIT
"""Keeping gradients small: by their total norm, or each element."""

import warnings
from types import GeneratorType

import tenon

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _groups(tensors):
    """The tensors by device and dtype, since one fused call takes one kind."""
    groups = {}
    for t in tensors:
        groups.setdefault((t.device, t.dtype), []).append(t)
    return groups.values()


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors taken as one vector, as a tensor without dimensions."""
    with tenon.no_grad():
        tensors = [tensors] if isinstance(tensors, tenon.Tensor) else list(tensors)
        norm_type = float(norm_type)
        if len(tensors) == 0:
            return tenon.tensor(0.0)
        first = tensors[0].device
        norms = []
        for group in _groups(tensors):
            norms.extend([t.norm(norm_type) for t in group] if foreach is False else tenon._foreach_norm(group, norm_type))
        total = tenon.stack([n.to(first) for n in norms]).norm(norm_type)
        if error_if_nonfinite and bool(tenon.logical_or(total.isnan(), total.isinf())):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
                "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients so that their total norm, which is `total_norm`, is at most `max_norm`."""
    with tenon.no_grad():
        parameters = [parameters] if isinstance(parameters, tenon.Tensor) else parameters
        grads = [p.grad for p in parameters if p.grad is not None]
        max_norm = float(max_norm)
        if len(grads) == 0:
            return
        # Scaling by 1 costs little and needs no look at the value, which would wait for a device.
        coef = tenon.clamp(max_norm / (total_norm + 1e-6), max=1.0)
        for group in _groups(grads):
            factor = coef.to(group[0].device)
            if foreach is False:
                for g in group:
                    g.mul_(factor)
            else:
                tenon._foreach_mul_(group, factor)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients so that the norm of all of them together is at most `max_norm`; returns the norm they had."""
    if isinstance(parameters, tenon.Tensor):
        parameters = [parameters]
    else:
        is_generator = isinstance(parameters, GeneratorType)
        parameters = list(parameters)
        if is_generator and len(parameters) == 0:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Keep every element of the gradients within [-clip_value, clip_value]."""
    parameters = [parameters] if isinstance(parameters, tenon.Tensor) else parameters
    clip_value = float(clip_value)
    with tenon.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.clamp_(min=-clip_value, max=clip_value)


_clip_grads_with_norm_ = clip_grads_with_norm_
_get_total_norm = get_total_norm
