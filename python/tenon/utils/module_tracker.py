# SPDX-License-Identifier: MIT
"""ModuleTracker: in which modules a call is made, in the forward pass and in the backward pass."""
import weakref

import tenon
from tenon import _C
from tenon.autograd.graph import register_multi_grad_hook
from tenon.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from tenon.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """While inside, ``parents`` are the names of the modules that run, by where they are: "Net.layer.0"; always
    "Global"."""

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._seen = weakref.WeakSet()
        self._ends = False

    def _name(self, module):
        if module not in self._names:
            self._names[module] = type(module).__name__
        name = self._names[module]
        if module not in self._seen:
            for child_name, child in module.named_children():
                self._names[child] = "%s.%s" % (name, child_name)
            self._seen.add(module)
        return name

    @property
    def is_bw(self):
        """Whether a backward pass runs on this thread."""
        return _C._current_pass() != 0

    def _begin(self, name):
        def begin(*unused):
            if not self._ends and self.is_bw:  # what begins in a pass is over when the pass is
                self._ends = True
                _C._queue_callback(self._forget)
            self.parents.add(name)
        return begin

    def _end(self, name):
        return lambda *unused: self.parents.discard(name)

    def _forget(self):
        self._ends = False
        self.parents = {"Global"}

    def _before(self, module, inputs):
        name = self._name(module)
        self._begin(name)()
        tensors = [t for t in tree_leaves(inputs) if isinstance(t, tenon.Tensor) and t.requires_grad]
        if not self.is_bw and tensors:
            self._hooks.append(register_multi_grad_hook(tensors, self._end(name)))

    def _after(self, module, inputs, outputs):
        name = self._name(module)
        self._end(name)()
        tensors = [t for t in tree_leaves(outputs) if isinstance(t, tenon.Tensor) and t.requires_grad]
        if not self.is_bw and tensors:
            self._hooks.append(register_multi_grad_hook(tensors, self._begin(name), mode="any"))

    def __enter__(self):
        self._hooks = []
        self._handles = (register_module_forward_pre_hook(self._before),
                         register_module_forward_hook(self._after, always_call=True))
        return self

    def __exit__(self, *args):
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._forget()
