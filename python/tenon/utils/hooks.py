# SPDX-License-Identifier: MIT
"""Handles of registered hooks, and the autograd plumbing of a module's full backward hooks."""

import warnings
import weakref
from collections import OrderedDict

import tenon
from tenon import _C

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]


class _HandleMeta(type):
    def __instancecheck__(cls, other):
        return type.__instancecheck__(cls, other) or (cls is RemovableHandle and isinstance(other, _C._HookHandle))


class RemovableHandle(metaclass=_HandleMeta):
    """What a `register_*_hook` returns: `remove()` takes the hook out of its table, and out of every table of `extra_dict`."""

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = ()
        elif not isinstance(extra_dict, list):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self):
        """Take the hook out; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None and self.id in table:
                del table[self.id]

    def __getstate__(self):
        tables = tuple(ref() for ref in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, tables) if tables else (self.hooks_dict_ref(), self.id)

    def __setstate__(self, state):
        # A table that was already gone is replaced by an empty one, so that the references stay alive objects.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if state[0] is None else state[0])
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self):
        return self

    def __exit__(self, type, value, tb):
        self.remove()


def _register(table, hook, *marks, prepend=False):
    """Put a hook into a table, and its number into each of `marks`; returns the handle that takes it out."""
    handle = RemovableHandle(table, extra_dict=list(marks) or None)
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def unserializable_hook(f):
    """Mark a tensor hook that pickling a tensor should warn about."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warn that hooks of a tensor are not pickled with it."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class BackwardHook:
    """Brackets one call of a module with two identity nodes, whose hooks see the gradients of its outputs and inputs."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index = None
        self.output_tensors_index = None

    @staticmethod
    def _spread(indices, values, size):
        room = [None] * size
        for i, v in zip(indices, values):
            room[i] = v
        return tuple(room)

    @staticmethod
    def _counted(value, expected, what):
        """What a hook returned, a sequence; a tensor alone is one of its rows."""
        if len(value) != expected:
            raise RuntimeError(
                f"{what} returned an invalid number of grad_{'output' if 'pre' in what else 'input'}, "
                f"got {len(value)}, but expected {expected}"
            )
        return value

    def _bracket(self, args):
        """(args through the identity node, indices of the tensors, the node), or (args, None, None) where nothing needs gradients."""
        where = [i for i, a in enumerate(args) if isinstance(a, tenon.Tensor)]
        tensors = [args[i] for i in where]
        if not (tenon.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return args, None, None
        from tenon.nn.modules._functions import BackwardHookFunction

        through = BackwardHookFunction.apply(*tensors)
        nodes = [t.grad_fn for t in through if t.grad_fn is not None]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks. Please open an issue with a code sample to reproduce this.")
        new = list(args)
        for i, t in zip(where, through):
            new[i] = t
        same = tuple(new) if type(args) is tuple else type(args)(*new)
        return same, where, nodes[0]

    def setup_input_hook(self, args):
        """The arguments behind an identity node that calls the user's hooks once their gradients are known."""
        self.n_inputs = len(args)
        args, self.input_tensors_index, node = self._bracket(args)
        if node is not None:
            node.register_hook(self._on_grad_input)
        return args

    def _on_grad_input(self, grad_input, _):
        if self.grad_outputs is None:
            return None  # backward of a subgraph that never passed the outputs
        grads = self._spread(self.input_tensors_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            out = tenon._C._call_user(hook, self.module, grads, self.grad_outputs)
            if out is not None:
                grads = self._counted(out, len(grads), "Backward hook")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_tensors_index)

    def setup_output_hook(self, args):
        """The result behind an identity node that takes note of the gradients of the outputs before anything else runs."""
        alone = isinstance(args, tenon.Tensor)
        if alone:
            args = (args,)
        self.n_outputs = len(args)
        args, self.output_tensors_index, node = self._bracket(args)
        if node is not None:
            node.register_prehook(self._on_grad_output)
        return args[0] if alone else args

    def _on_grad_output(self, grad_output):
        self.grad_outputs = self._spread(self.output_tensors_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks or ():
            out = tenon._C._call_user(hook, self.module, self.grad_outputs)
            if out is not None:
                self.grad_outputs = self._counted(out, len(self.grad_outputs), "Backward pre hook")
        seen = self.grad_outputs
        if self.input_tensors_index is None:
            # No input needs a gradient: the hooks run here, the only place that backward passes.
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                "register_full_backward_hook for more details.",
                stacklevel=5,
            )
            nothing = (None,) * self.n_inputs
            for hook in self.user_hooks:
                out = tenon._C._call_user(hook, self.module, nothing, self.grad_outputs)
                if out is not None and not (isinstance(out, tuple) and all(o is None for o in out)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for "
                        "all gradients."
                    )
            self.grad_outputs = None
        return tuple(seen[i] for i in self.output_tensors_index)

    # What messages call them.
    _on_grad_input.__name__ = _on_grad_output.__name__ = "hook"
