# SPDX-License-Identifier: MIT
"""Hooks of modules: those that hold for every module, and the methods that register one on a module."""

import functools
import warnings
import weakref
from collections import OrderedDict

import tenon
from tenon.utils.hooks import _register

_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_is_full_backward_hook = None


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` for every buffer that any module registers; what it returns replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` for every submodule that any module registers."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, param)` for every parameter that any module registers."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before the forward of every module."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, output)` after the forward of every module."""
    marks = []
    if with_kwargs:
        marks.append(_global_forward_hooks_with_kwargs)
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return _register(_global_forward_hooks, hook, *marks)


def _choose_global_backward(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is not None and _global_is_full_backward_hook != full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` in the backward of every module (the old, partial kind)."""
    _choose_global_backward(False)
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before the backward of every module."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` once the gradients of every module's inputs are known."""
    _choose_global_backward(True)
    return _register(_global_backward_hooks, hook)


class _WrappedHook:
    """A hook that gets its module first, without keeping the module alive; it pickles with the module."""

    def __init__(self, hook, module=None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _warn_non_full(inputs, result, grad_fn):
    """The old backward hooks see part of the gradients where a module is more than one node: say so."""
    for what, value, side in (("return a", result, "grad_output"), ("take as input a", inputs, "grad_input")):
        if not isinstance(value, tenon.Tensor) and not (
            isinstance(value, tuple) and all(isinstance(v, tenon.Tensor) for v in value)
        ):
            warnings.warn(
                f"Using non-full backward hooks on a Module that does not {what} single Tensor or a tuple of Tensors is "
                "deprecated and will be removed in future versions. This hook will be missing some of the "
                f"{side}. Please use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=3,
            )
            return
    results = (result,) if isinstance(result, tenon.Tensor) else result
    inputs = (inputs,) if isinstance(inputs, tenon.Tensor) else inputs
    out_nodes = {r.grad_fn for r in results if r.grad_fn is not None}
    if len(out_nodes) == 0 or (len(out_nodes) == 1 and grad_fn not in out_nodes):
        text = (
            "Using a non-full backward hook when outputs are nested in python data structure is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_output."
        )
    elif len(out_nodes) > 1:
        text = (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_output. Please use "
            "register_full_backward_hook to get the documented behavior."
        )
    else:
        in_nodes = {i.grad_fn for i in inputs if i.grad_fn is not None}
        if {n[0] for n in grad_fn.next_functions} == in_nodes:
            return
        text = (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_input. Please use "
            "register_full_backward_hook to get the documented behavior."
        )
    warnings.warn(text, FutureWarning, stacklevel=3)


class HookMethods:
    """The part of `Module` that registers hooks on one module."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(module, args)` before forward; what it returns replaces the arguments. With `with_kwargs`
        it is `hook(module, args, kwargs)` and returns None or both."""
        marks = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _register(self._forward_pre_hooks, hook, *marks, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call `hook(module, args, output)` after forward; what it returns replaces the output. With `always_call` it
        runs also when forward raised."""
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return _register(self._forward_hooks, hook, *marks, prepend=prepend)

    def _choose_backward(self, full):
        if self._is_full_backward_hook is not None and self._is_full_backward_hook != full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_backward_hook(self, hook):
        """The old kind of backward hook, which sees the last node alone. Prefer `register_full_backward_hook`."""
        self._choose_backward(False)
        return _register(self._backward_hooks, hook)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call `hook(module, grad_output)` before the module's backward; what it returns replaces the gradients."""
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known; what it returns
        replaces `grad_input`."""
        self._choose_backward(True)
        return _register(self._backward_hooks, hook, prepend=prepend)

    def _get_backward_hooks(self):
        """(full, not full), those of all modules first."""
        full, partial = [], []
        if _global_is_full_backward_hook is not None:
            (full if _global_is_full_backward_hook else partial).extend(_global_backward_hooks.values())
        if self._is_full_backward_hook is not None:
            (full if self._is_full_backward_hook else partial).extend(self._backward_hooks.values())
        return full, partial

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def register_state_dict_post_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` collected; it changes in place."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """Like `register_state_dict_post_hook`; what the hook returns, if not None, replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects."""
        return _register(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before this module loads."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after this module loaded; it may change the keys in place."""
        return _register(self._load_state_dict_post_hooks, hook)
