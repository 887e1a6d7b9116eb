# SPDX-License-Identifier: MIT
"""Modules whose forward is checkpointed, or keeps what it saves in the CPU's memory. Names of parameters stay."""
import enum
import functools

from tenon import nn
from tenon.autograd.graph import save_on_cpu
from tenon.utils.checkpoint import checkpoint

__all__ = ["ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
           "checkpoint_wrapper", "offload_wrapper"]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(nn.Module):
    """Around a module: its attributes and the names of its parameters are the module's own."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self._register_load_state_dict_pre_hook(self._pre_load_state_dict_hook, with_module=True)

    def forward(self, *args, **kwargs):
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module, state_dict, prefix, *args):
        _replace(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module, state_dict, prefix, *args):
        _replace(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


def _replace(state, old, new):
    for key in [key for key in state if key.startswith(old)]:
        if not key.startswith(new) or len(new) < len(old):
            state[new + key[len(old):]] = state.pop(key)


class OffloadWrapper(ActivationWrapper):
    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What the module's operators save is forgotten; the backward pass calls it again."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=checkpoint_impl == CheckpointImpl.REENTRANT)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        if kwargs and self.checkpoint_impl == CheckpointImpl.REENTRANT:  # that form passes positions alone
            return self.checkpoint_fn(lambda *inputs: self._checkpoint_wrapped_module(
                *inputs[:len(args)], **dict(zip(kwargs, inputs[len(args):]))), *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def offload_wrapper(module):
    return OffloadWrapper(module)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """The module in a CheckpointWrapper."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True,
                                   auto_wrap_policy=None):
    """Wrap, in place, every module inside ``model`` that ``check_fn`` chooses."""
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: auto_wrap_policy is not supported; use check_fn")

    def visit(parent):
        for name, child in list(parent.named_children()):
            visit(child)
            if check_fn(child):
                setattr(parent, name, checkpoint_wrapper_fn(child))
    visit(model)
