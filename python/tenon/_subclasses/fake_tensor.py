# SPDX-License-Identifier: MIT
"""Fake tensors: shapes, dtypes, strides and devices without memory. They are the library's (tenon/fake.h); this module
gives them the names that they have in PyTorch."""

import contextlib
import weakref

import tenon
from tenon import _C
from tenon.autograd._in_parts import InParts
from tenon.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass
from tenon.utils.weak import WeakIdKeyDictionary


class UnsupportedFakeTensorException(RuntimeError):
    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class _OfOperator(RuntimeError):
    """Says which operator: `str()` is its name."""

    def __init__(self, func):
        super().__init__(func)
        self.func = func


class DynamicOutputShapeException(_OfOperator):
    """The size of a result depends on values."""


class DataDependentOutputException(_OfOperator):
    """A result that is no tensor depends on values."""


class UnsupportedOperatorException(_OfOperator):
    """An operator has no fake kernel."""


class UnsupportedMutationAliasingException(RuntimeError):
    pass


class MetadataMismatchError(RuntimeError):
    pass


def _exception(text):
    """The exception of the library's message about an operator and values. Called by the extension."""
    name, _, rest = text.partition(": ")
    kind = DynamicOutputShapeException if rest.startswith("the size") else DataDependentOutputException
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    try:
        func = getattr(getattr(getattr(tenon.ops, namespace), packet), overload or "default")
    except AttributeError:
        func = name
    return kind(func)


class _FakeMeta(type(tenon.Tensor)):
    def __instancecheck__(cls, instance):
        return _C._is_fake(instance) or isinstance(instance, InParts) and instance.layout not in (
            tenon.strided, tenon.jagged) and all(map(_C._is_fake, instance._history_parts()))


class FakeTensor(tenon.Tensor, metaclass=_FakeMeta):
    """What `isinstance(x, FakeTensor)` asks. `FakeTensor(mode, elem, device)` makes one."""

    def __new__(cls, fake_mode, elem, device=None, constant=None):
        made = fake_mode.from_tensor(elem)
        return made if device is None or made.device == tenon.device(device) else _on(fake_mode, made, device)

    @staticmethod
    def from_tensor(t, fake_mode):
        return fake_mode.from_tensor(t)


def _on(mode, t, device):
    with mode:
        return tenon.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)


class FakeTensorMode(_C._Scope):
    """Inside it factories make fake tensors, and operators run on their shapes alone."""

    _leaves = _C._fake_leave

    def __init__(self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None,
                 static_shapes=None, export=False):
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = True if static_shapes is None else static_shapes
        self.export = export
        self._mode = _C._FakeMode(allow_non_fake_inputs)
        self._mode.belongs_to(self)
        self._enters = self._mode.enter
        self._guards = []
        self._made = WeakIdKeyDictionary()  # of tensors made of others

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The fake tensor that stands for a tensor; the same one while somebody holds it. What is made of tensors becomes one
        made of fake ones, of its class."""
        if type(tensor) in (tenon.Tensor, tenon.nn.Parameter):
            fake = self._mode.from_tensor(tensor)
        elif isinstance(tensor, InParts) or is_traceable_wrapper_subclass(tensor):
            fake = self._of_parts(tensor)
        else:
            fake = self._mode.from_tensor(tensor)
        if isinstance(tensor, tenon.nn.Parameter) and not isinstance(fake, tenon.nn.Parameter):
            fake._is_param = True
        return fake

    def _of_parts(self, tensor):
        made = self._made.get(tensor, lambda: None)()
        if made is not None:
            return made
        if not isinstance(tensor, InParts):
            made = transform_subclass(tensor, lambda name, part: self.from_tensor(part))
        elif hasattr(tensor, "__tensor_flatten__"):
            names, context = tensor.__tensor_flatten__()
            made = type(tensor).__tensor_unflatten__({n: self.from_tensor(getattr(tensor, n)) for n in names}, context,
                                                     tensor.shape, None)
        else:
            made = tensor._from_fakes([self.from_tensor(part) for part in tensor._parts])
        if tensor.requires_grad and not made.requires_grad:
            made.requires_grad_()
        self._made[tensor] = weakref.ref(made)
        return made

    def fake_tensor_converter(self, tensor):
        return self.from_tensor(tensor)

    @classmethod
    def is_infra_mode(cls):
        return True


def is_fake(x):
    """Whether a tensor is fake."""
    return _C._is_fake(x)


def maybe_get_fake_mode(t):
    return _C._fake_mode_of(t)


def get_plain_tensors(subclass, *, out):
    """Add the tensors that a wrapper is made of to `out`."""
    if not hasattr(subclass, "__tensor_flatten__"):
        out.append(subclass)
        return out
    for name in subclass.__tensor_flatten__()[0]:
        get_plain_tensors(getattr(subclass, name), out=out)
    return out


@contextlib.contextmanager
def unset_fake_temporarily():
    """No fake mode inside; gives the one that was on."""
    before = _C._fake_mode_current()
    guard = _C._fake_enter_none()
    try:
        yield before
    finally:
        _C._fake_leave(guard)
