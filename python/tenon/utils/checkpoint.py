# SPDX-License-Identifier: MIT
"""Activation checkpointing: compute again in the backward pass instead of keeping.

The form without re-entry is the core's: saved-tensor hooks forget what operators save, and the first time that a pass
asks for one, the function runs again. The re-entrant form is a Function whose backward runs a pass of its own.
"""
import contextlib
import warnings

import tenon
from tenon import _C
from tenon.autograd import Function
from tenon._typing import Any as _Any

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction", "check_backward_validity",
           "detach_variable", "get_device_states", "set_device_states", "noop_context_fn",
           "set_checkpoint_early_stop", "set_checkpoint_debug_enabled", "DefaultDeviceType"]

_early_stop = None  # whatever checkpoint() was told
_SELECTIVE = ("CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext",
              "create_selective_checkpoint_contexts")
__all__ += _SELECTIVE


def __getattr__(name) -> _Any:
    if name not in _SELECTIVE:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from tenon.utils import _selective_checkpoint
    return getattr(_selective_checkpoint, name)


class CheckpointError(RuntimeError):
    """What is computed again differs from the first time."""


class DefaultDeviceType:
    """The kind of device whose random state is kept when no argument says."""

    _default = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type():
        return DefaultDeviceType._default


def noop_context_fn():
    """No context for either run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether running again ends once what is needed is there."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Accepted: messages always say what differs."""
    yield


def detach_variable(inputs):
    """Tensors without history, other things as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, tenon.Tensor) else x for x in inputs)


def check_backward_validity(inputs):
    if not any(x.requires_grad for x in inputs if isinstance(x, tenon.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """Devices and their random states; there are none but the CPU's."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    pass


# ---- what is the same in both runs ----

class _Autocast:
    """The autocast state of the first run, for the second."""

    def __init__(self):
        self.cpu = {"enabled": tenon.is_autocast_enabled("cpu"), "dtype": tenon.get_autocast_dtype("cpu"),
                    "cache_enabled": tenon.is_autocast_cache_enabled()}

    def again(self):
        return tenon.amp.autocast("cpu", **self.cpu)


# ---- re-entrant ----

class CheckpointFunction(Function):
    """checkpoint(use_reentrant=True)."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.preserve_rng_state = preserve_rng_state
        ctx.autocast = _Autocast()
        if preserve_rng_state:
            ctx.rng_state = tenon.get_rng_state()
        ctx.inputs = [None if isinstance(a, tenon.Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, tenon.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with tenon.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _C._passes_are_whole():
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing "
                               "an `inputs` parameter to .backward(). To resolve this error, you can either set "
                               "use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        if tenon.is_grad_enabled():
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with create_graph=True: the "
                               "gradients of the pass inside have no history, and what is computed from them would miss a "
                               "term. To resolve this error, set use_reentrant=False.")
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[i] = t
        inputs = detach_variable(tuple(inputs))
        now = tenon.get_rng_state() if ctx.preserve_rng_state else None
        if now is not None:
            tenon.set_rng_state(ctx.rng_state)
        try:
            with tenon.enable_grad(), ctx.autocast.again():
                outputs = ctx.run_function(*inputs)
        finally:
            if now is not None:
                tenon.set_rng_state(now)
        if isinstance(outputs, tenon.Tensor):
            outputs = (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, tenon.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        tenon.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None) + tuple(x.grad if isinstance(x, tenon.Tensor) else None for x in inputs)


# ---- not re-entrant ----

def _split(value, tensors):
    """The same with a place for each tensor, which goes to the list. Tuples, lists and dicts are opened."""
    if isinstance(value, tenon.Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if type(value) in (tuple, list):
        return type(value)(_split(v, tensors) for v in value)
    if type(value) is dict:
        return {k: _split(v, tensors) for k, v in value.items()}
    return value


def _join(value, tensors):
    if isinstance(value, _Place):
        return tensors[value.index]
    if type(value) in (tuple, list):
        return type(value)(_join(v, tensors) for v in value)
    if type(value) is dict:
        return {k: _join(v, tensors) for k, v in value.items()}
    return value


class _Place:
    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


def _checkpoint_again(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, early_stop):
    contexts = context_fn() if context_fn is not noop_context_fn else None
    if contexts is not None and len(contexts) != 2:
        raise RuntimeError("Expected context_fn to return a tuple of two context managers")
    tensors = []
    shapes = _split((args, kwargs), tensors)
    autocast = _Autocast()
    runs = [0]

    def piece(*given):
        first = runs[0] == 0
        runs[0] += 1
        again_args, again_kwargs = _join(shapes, given)
        with contextlib.ExitStack() as stack:
            if not first:
                stack.enter_context(autocast.again())
            if contexts is not None:
                stack.enter_context(contexts[0 if first else 1])
            return function(*again_args, **again_kwargs)

    piece.__wrapped__ = function  # whose name a report of a hang has
    return _C._checkpoint(piece, tensors, preserve_rng_state, early_stop, determinism_check != "none")


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, **kwargs):
    """Call ``function`` and forget what its operators would save; the backward pass calls it again."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
                      "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if determinism_check not in ("default", "none"):
        raise ValueError("determinism_check should be one of ['default', 'none'], but got %s" % determinism_check)
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    return _checkpoint_again(function, args, kwargs, preserve, context_fn, determinism_check,
                             early_stop if _early_stop is None else _early_stop)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Checkpoint all but the last of ``segments`` parts of a sequence of modules."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
                      "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start, end):
        def forward(x):
            for part in parts[start:end]:
                x = part(x)
            return x
        return forward

    size, start = len(parts) // segments, 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    done = size * (segments - 1)
    return run(done, len(parts))(input)
