# SPDX-License-Identifier: MIT
"""Parametrizations: a tensor of a module computed from others by modules, each time it is read."""

import copyreg
from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy

import tenon
from tenon import Tensor
from tenon.__future__ import get_swap_module_params_on_conversion
from tenon.nn.modules.container import ModuleDict, ModuleList
from tenon.nn.modules.module import Module
from tenon.nn.parameter import Parameter
from tenon.utils import swap_tensors
from tenon.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_enabled = 0
_cache = {}


@contextmanager
def cached():
    """Within the block a parametrized tensor is computed once, however often it is read."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module, name, X):
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _maybe_set(dest, src):
    """`dest` takes the data of `src`, keeping its identity. Where one of them wraps other tensors, those are what it takes."""
    if dest is src:
        return
    if get_swap_module_params_on_conversion() or is_traceable_wrapper_subclass(dest) or is_traceable_wrapper_subclass(src):
        if isinstance(dest, Parameter) and not isinstance(src, Parameter):
            src = Parameter(src, requires_grad=dest.requires_grad)
        swap_tensors(dest, src)
    elif dest.data_ptr() != src.data_ptr() or dest.shape != src.shape or dest.dtype != src.dtype:
        dest.data = src.data


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the tensor (`original`) or tensors (`original0` …) they start from."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype, device = original.shape, original.dtype, original.device
        with tenon.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:  # it can be computed, and not be set
                        pass
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: "
                        f"{getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                    )
            _maybe_set(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, one in enumerate(new):
                if not isinstance(one, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(one).__name__}."
                    )
                if isinstance(original, Parameter):
                    one = Parameter(one, original.requires_grad)
                one.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", one)
        if not self.unsafe:
            Z = self()
            if not isinstance(Z, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(Z).__name__}.")
            for what, had in (("dtype", dtype), ("shape", shape)):
                if getattr(Z, what) != had:
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                        f"enabled.\nunparametrized {what}: {had}\nparametrized {what}: {getattr(Z, what)}"
                    )

    def right_inverse(self, value):
        """Set what the tensor is computed from, so that it becomes `value`; goes through the inverses in reverse order."""
        with tenon.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _maybe_set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                    f"{len(value)}."
                )
            for i, tensor in enumerate(value):
                _maybe_set(getattr(self, f"original{i}"), tensor)

    def forward(self):
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            x = module(x)
        return x


def _inject_new_class(module):
    """Give the module a class of its own, which properties can be put on."""
    cls = module.__class__

    def default_deepcopy(self, memo):
        obj = memo.get(id(self))
        if obj is not None:
            return obj
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        for name in copyreg._slotnames(self.__class__):
            if hasattr(self, name):
                setattr(replica, name, deepcopy(getattr(self, name), memo))
        return replica

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    body = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _inject_property(module, tensor_name):
    """Reading the tensor computes it, setting it goes through the right inverses."""

    def get(self):
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def put(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(module.__class__, tensor_name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute the parameter or buffer `tensor_name` by `parametrization` from now on; several are applied in turn."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            Y = getattr(module, tensor_name)
            X = parametrization(Y)
            if not isinstance(X, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(X).__name__}.")
            for what in ("dtype", "shape"):
                if getattr(X, what) != getattr(Y, what):
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                        f"enabled.\nmodule.{tensor_name}.{what}: {getattr(Y, what)}\nparametrization(module.{tensor_name})."
                        f"{what}: {getattr(X, what)}"
                    )
            if hasattr(parametrization, "right_inverse"):
                Z = parametrization.right_inverse(X)
                if not isinstance(Z, Tensor):
                    raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(Z).__name__}")
                for what in ("dtype", "shape"):
                    if getattr(Z, what) != getattr(Y, what):
                        raise ValueError(
                            f"The tensor returned by parametrization.right_inverse must have the same {what} as module."
                            f"{tensor_name}, unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.{what}: "
                            f"{getattr(Y, what)}\nreturned {what}: {getattr(Z, what)}"
                        )
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        held = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = held
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module has parametrizations, or one of this tensor."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make the tensor an ordinary one again, with the value of now, or its original one unless `leave_parametrized`."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if held.is_tensor:
        original = held.original
        if leave_parametrized:
            with tenon.no_grad():
                value = getattr(module, tensor_name)
            _maybe_set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
            "tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class a module had before it was parametrized."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give `to_module` the parametrizations and values of `from_module`, of all its tensors or of one."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if name not in from_module.parametrizations:
            continue
        held = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            _register_parameter_or_buffer(to_module, name, getattr(from_module, name).detach().clone())
        for part in held:
            register_parametrization(to_module, name, deepcopy(part), unsafe=held.unsafe)
        with tenon.no_grad():
            to = to_module.parametrizations[name]
            if held.is_tensor:
                to.original.data = held.original.data.clone()
            else:
                for i in range(held.ntensors):
                    getattr(to, f"original{i}").data = getattr(held, f"original{i}").data.clone()
    return to_module
