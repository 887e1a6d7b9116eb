# SPDX-License-Identifier: MIT
"""The gradient graph: nodes, edges, hooks on what is saved, hooks on several gradients."""
import contextlib
import weakref

import tenon
from tenon import _C

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "increment_version", "saved_tensors_hooks", "save_on_cpu",
           "disable_saved_tensors_hooks", "register_multi_grad_hook", "allow_mutation_on_saved_tensors"]


class _NodeMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, (_C._Node, _C._FunctionBase))

    def __subclasscheck__(cls, other):
        return issubclass(other, (_C._Node, _C._FunctionBase))


class Node(metaclass=_NodeMeta):
    """Every ``grad_fn`` is one: ``name()``, ``next_functions``, ``metadata``, ``register_hook``, ``register_prehook``."""


class GradientEdge(tuple):
    """Where the gradient of a tensor goes: a node and which of its inputs."""

    __slots__ = ()

    def __new__(cls, node, output_nr, ownership_token=None):
        return tuple.__new__(cls, (node, output_nr, ownership_token))

    node = property(lambda self: self[0])
    output_nr = property(lambda self: self[1])
    ownership_token = property(lambda self: self[2])

    def __repr__(self):
        return "GradientEdge(node=%r, output_nr=%r, ownership_token=%r)" % tuple(self)


def get_gradient_edge(tensor):
    """The edge that the gradient of ``tensor`` would take."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = GradientEdge(*_C._gradient_edge(tensor))
    if isinstance(edge.node, _C._FunctionBase):  # a Function does not keep its node: the graph does
        return GradientEdge(edge.node, edge.output_nr, _C._tensor_at_edge(edge.node, edge.output_nr))
    return edge


def increment_version(tensor):
    """Count a write that no operator made, so that those who saved the tensor notice."""
    for t in ((tensor,) if isinstance(tensor, tenon.Tensor) else tensor):
        if not t.is_inference():
            _C._increment_version(t)


class saved_tensors_hooks:
    """While inside, ``pack_hook`` decides what is kept of a tensor that is saved, ``unpack_hook`` gives it back."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args):
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved in the CPU's memory, and bring it back for the backward pass."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack_to_cpu(tensor):
            return tensor.device, tensor.cpu()

        def unpack_from_cpu(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack_to_cpu, unpack_from_cpu)


class disable_saved_tensors_hooks:
    """While inside, using saved-tensor hooks fails with this message."""

    def __init__(self, error_message):
        self.message = error_message

    def __enter__(self):
        self.before = _C._disable_saved_hooks(self.message)

    def __exit__(self, *args):
        _C._disable_saved_hooks(self.before)

    def __call__(self, fn):
        import functools

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with type(self)(self.message):
                return fn(*args, **kwargs)
        return wrapper


class _Saved:
    """Stands for a tensor that was saved inside allow_mutation_on_saved_tensors."""


class _MutableSaved:
    """What was saved: as it is (``original``), or a copy, made before it was written (``cloned``)."""

    def __init__(self):
        self.original = weakref.WeakKeyDictionary()
        self.cloned = weakref.WeakKeyDictionary()
        self.in_memory = {}  # where elements lie -> what was saved of them
        self.known = weakref.WeakValueDictionary()

    def pack(self, tensor):
        memory = _memory_of(tensor)
        key = memory, tensor._version, tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()
        saved = self.known.get(key)
        if saved is None or saved not in self.original:
            saved = self.known[key] = _Saved()
            self.original[saved] = tensor
            self.in_memory.setdefault(memory, weakref.WeakSet()).add(saved)
        return saved

    def unpack(self, saved):
        if saved in self.cloned:
            return self.cloned[saved]
        assert saved in self.original, ("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                                        "in which the graph was originally recorded.")
        return self.original[saved]

    def about_to_write(self, tensor):
        with tenon.no_grad():
            for saved in list(self.in_memory.pop(_memory_of(tensor), ())):
                if saved in self.original:
                    self.cloned[saved] = self.original.pop(saved).clone()

    def clear(self):
        self.original.clear()
        self.cloned.clear()
        self.in_memory.clear()


def _memory_of(tensor):
    return tensor.untyped_storage()._cdata


_mutable_saved: list = []  # the context that is entered, if one is


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """While inside, what was saved may be written: it is copied before. The backward pass must run inside, too."""
    from tenon.utils._python_dispatch import TorchDispatchMode
    from tenon.utils._pytree import tree_leaves

    class CopyBeforeWrites(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            for i, argument in enumerate(func._schema.arguments):
                if argument.alias_info is None or not argument.alias_info.is_write:
                    continue
                given = args[i] if i < len(args) else kwargs.get(argument.name)
                for t in tree_leaves(given):
                    if isinstance(t, tenon.Tensor):
                        context.about_to_write(t)
            return func(*args, **kwargs)

    if _mutable_saved:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutableSaved()
    with saved_tensors_hooks(context.pack, context.unpack), CopyBeforeWrites():
        _mutable_saved.append(context)
        try:
            yield context
        finally:
            _mutable_saved.clear()
            context.clear()


class _MultiHandle:
    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn`` in every pass: with all gradients once the last has come ("all"), or with the first ("any")."""
    import threading
    if mode not in ("all", "any"):
        raise ValueError("Expects mode to be one of ('all', 'any') but got %s" % mode)
    tensors = tuple(tensors)
    if mode == "all" and not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    lock = threading.Lock()
    passes = {}  # of each pass that runs: gradients so far, how many are to come
    marks = [_C._mark_gradient(t) for t in tensors] if mode == "all" else []

    def at_end(number):
        state = passes.pop(number, None)
        if state and state[1] > 0:  # for some there was nothing to come
            fn(state[0])

    def hook_all(index):
        def hook(grad):
            number = _C._current_pass()
            with lock:
                state = passes.get(number)
                if state is None:
                    state = passes[number] = [[None] * len(tensors), sum(map(_C._hook_in_pass, marks))]
                    _C._queue_callback(lambda: at_end(number))
                state[0][index] = grad
                state[1] -= 1
                complete = state[1] == 0
            if complete:
                fn(state[0])
        return hook

    def hook_any(grad):
        number = _C._current_pass()
        with lock:
            if number in passes:
                return
            passes[number] = True
        _C._queue_callback(lambda: passes.pop(number, None))
        fn(grad)

    handles = [t.register_hook(hook_all(i) if mode == "all" else hook_any) for i, t in enumerate(tensors)
               if mode == "all" or t.requires_grad]
    return _MultiHandle(handles + marks)
