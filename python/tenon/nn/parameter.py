# SPDX-License-Identifier: MIT
"""Parameters and buffers: tensors that a module registers when they are assigned to it; and their kinds without a shape yet."""

from collections import OrderedDict

import tenon
from tenon import Tensor

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]

# Operators on parameters and buffers give plain tensors.
_no_override = getattr(tenon._C, "_disabled_torch_function_impl", None)


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """A tensor of another class counts as a Parameter when it is marked with `_is_param`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module holds as a parameter, a leaf that requires gradients unless told otherwise."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = tenon.empty(0)
        if requires_grad.__class__ is not bool:
            raise TypeError("_make_subclass(): argument 'require_grad' (position 3) must be bool, not %s"
                            % type(requires_grad).__name__)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        new = data.detach().requires_grad_(requires_grad)
        if type(new) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(new).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
            )
        new._is_param = True
        return new

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=tenon.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        state = {k: v for k, v in getattr(self, "__dict__", {}).items() if k != "_backward_hooks"}
        if state:
            return (
                tenon._utils._rebuild_parameter_with_state,
                (self.data, self.requires_grad, OrderedDict(), state),
            )
        return (tenon._utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict()))

    if _no_override is not None:
        __torch_function__ = _no_override


tenon._C._know_parameter(Parameter)


class UninitializedTensorMixin:
    """A tensor without data or shape yet: it can be moved, cast and materialized, nothing else."""

    cls_to_become: "type | None" = None
    _allowed = frozenset(
        ("half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to", "get_device", "copy_", "is_complex")
        + ("is_floating_point", "_has_compatible_shallow_copy_type", "share_memory_", "__repr__", "__hash__", "__format__")
        + ("__get__", "__set__", "__delete__", "bfloat16", "requires_grad_", "__deepcopy__", "__reduce_ex__")
    )

    def materialize(self, shape, device=None, dtype=None):
        """Become the ordinary parameter or buffer with this shape, on this device and dtype (the ones so far by default)."""
        data = self.data
        self.data = tenon.empty(
            shape, device=data.device if device is None else device, dtype=data.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before "
            "calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return (type(self), (self.requires_grad,))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in cls._allowed:
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` "
            "with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param):
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape a lazy module finds from its first input."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, tenon.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """A tensor counts as a Buffer when it is marked with `_is_buffer`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned; in `state_dict` if `persistent`."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = tenon.empty(0)
        new = data.detach().requires_grad_(data.requires_grad)
        new.persistent = persistent
        new._is_buffer = True
        return new

    if _no_override is not None:
        __torch_function__ = _no_override


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape a lazy module finds from its first input."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        new = Tensor._make_subclass(cls, tenon.empty(0, device=device, dtype=dtype), requires_grad)
        new.persistent = persistent
        new._is_buffer = True
        return new
