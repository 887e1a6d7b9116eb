# SPDX-License-Identifier: MIT
"""Gradients: backward passes, functions with a gradient of their own, the graph, and checks.

What is rarely needed (functional, gradcheck, forward_ad, profiler) is loaded on first use.
"""
import sys
import types

import tenon
from tenon import _C

from . import _in_parts, anomaly_mode, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .variable import Variable
from tenon._typing import Any as _Any

# Without what is loaded on first use: importing a name from here would load it.
__all__ = ["Variable", "Function", "backward", "NestedIOFunction", "detect_anomaly", "grad", "set_detect_anomaly",
           "graph"]

_MODULES = ("functional", "forward_ad", "profiler", "grad_mode", "function", "variable")
_CHECKS = ("gradcheck", "gradgradcheck", "GradcheckError")
_MODES = ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode")


class _Autograd(types.ModuleType):
    def __setattr__(self, name, value):
        """Whoever imports from the module gradcheck leaves its name here to the function."""
        if name == "gradcheck" and isinstance(value, types.ModuleType):
            value = value.gradcheck
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Autograd


def __dir__():
    return sorted({*globals(), *_MODULES, *_MODES, "gradcheck", "gradgradcheck", "is_multithreading_enabled",
                   "set_multithreading_enabled"})


def __getattr__(name) -> _Any:
    import importlib
    if name in _MODES:
        return getattr(tenon, name)
    if name in _CHECKS:
        module = importlib.import_module(__name__ + ".gradcheck")
        globals().update((each, getattr(module, each)) for each in _CHECKS)  # the function, over the module of the same name
        return globals()[name]
    if name in ("set_multithreading_enabled", "is_multithreading_enabled"):
        return getattr(importlib.import_module(__name__ + ".grad_mode"), name)
    if name in _MODULES:
        return importlib.import_module(__name__ + "." + name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def _profiler_enabled():
    """Whether a profiler records."""
    return _C._profiler_running()


def _disable_profiler():
    """End the recording that another profiler began; that one finds nothing."""
    if not _C._profiler_running():
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    return _C._profiler_stop()


def _tuple_of(tensors):
    if tensors is None:
        return ()
    one = isinstance(tensors, (tenon.Tensor, graph.GradientEdge)) or hasattr(type(tensors), "__torch_function__")
    return (tensors,) if one else tuple(tensors)


def _at_edges(tensors):
    """Tensors in the place of edges: ones whose gradients go there."""
    if not any(type(t) is graph.GradientEdge for t in tensors):
        return tensors
    return tuple(_C._tensor_at_edge(t.node, t.output_nr) if type(t) is graph.GradientEdge else t for t in tensors)


def _check_gradients(given, grads, tensors):
    if given is not None and not grads and tensors:
        raise RuntimeError("got %d tensors and 0 gradients" % len(tensors))
    for grad in grads:
        if grad is not None and not isinstance(grad, tenon.Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)


def _check_inputs(inputs):
    for t in inputs:
        if not isinstance(t, (tenon.Tensor, graph.GradientEdge)):
            raise RuntimeError("all inputs have to be Tensors or GradientEdges, but got " + type(t).__name__)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of the sum of ``tensors`` to ``.grad`` of the leaves that they came from."""
    if grad_variables is not None:
        import warnings
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    tensors, grads = _tuple_of(tensors), _tuple_of(grad_tensors)
    if _C._has_torch_function(_in_parts.whole(tensors)):
        return _C._override_call(backward, (tensors,), dict(
            grad_tensors=grad_tensors, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs))
    _check_gradients(grad_tensors, grads, tensors)
    if inputs is not None:
        inputs = _tuple_of(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        _check_inputs(inputs)
        inputs = _at_edges(_in_parts.inputs_of(inputs))
    tensors, grads = _in_parts.spread(tensors, grads)
    _C._run_backward(_at_edges(tensors), grads or None, retain_graph, create_graph, inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of the sum of ``outputs`` with respect to ``inputs``, as a tuple; touches no ``.grad``."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    outputs, inputs, grads = _tuple_of(outputs), _tuple_of(inputs), _tuple_of(grad_outputs)
    if not inputs:
        raise ValueError("grad requires non-empty inputs.")
    if _C._has_torch_function(_in_parts.whole(outputs + inputs)):
        return _C._override_call(grad, (outputs, inputs), dict(
            grad_outputs=grad_outputs, retain_graph=retain_graph, create_graph=create_graph, only_inputs=only_inputs,
            allow_unused=materialize_grads if allow_unused is None else allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads), (*outputs, *inputs))
    _check_gradients(grad_outputs, grads, outputs)
    _check_inputs(inputs)
    if not is_grads_batched and any(map(_in_parts.is_in_parts, outputs + inputs)):
        outputs, grads = _in_parts.spread(outputs, grads)
        return _in_parts.gathered(inputs, grad(outputs, _in_parts.inputs_of(inputs), grads or None, retain_graph, create_graph,
                                               only_inputs, allow_unused, False, materialize_grads))
    outputs, inputs = _at_edges(outputs), _at_edges(inputs)
    if not only_inputs:
        import warnings
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
                      "gradient for other parts of the graph, please use torch.autograd.backward.",
                      FutureWarning, stacklevel=2)
    if is_grads_batched:
        return _batched_grad(outputs, inputs, grads, retain_graph, create_graph, allow_unused, materialize_grads)
    return _C._run_grad(outputs, inputs, grads or None, retain_graph, create_graph, allow_unused, materialize_grads)


def _batched_grad(outputs, inputs, grads, retain_graph, create_graph, allow_unused, materialize_grads):
    """One pass for each slice of the gradients, which have a dimension more than the outputs."""
    for i, (out, g) in enumerate(zip(outputs, grads)):
        if g is not None and (g.dim() == 0 or g.shape[1:] != out.shape):
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                               "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                               f"output, but a mismatch was detected: grad_output[{i}] has a shape of {g.shape} and output[{i}] has "
                               f"a shape of {out.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                               "consider using vmap.")
    sizes = [g.shape[0] for g in grads if g is not None]
    if not sizes:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if len(set(sizes)) != 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{sizes} for the mapped dimension")
    n = sizes[0]
    keep = create_graph if retain_graph is None else retain_graph
    rows = [_C._run_grad(outputs, inputs, tuple(None if g is None else g[i] for g in grads), keep or i + 1 < n,
                         create_graph, allow_unused, materialize_grads) for i in range(n)]
    return tuple(None if column[0] is None else tenon.stack(column) for column in zip(*rows))


def variable(*args, **kwargs):
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")
